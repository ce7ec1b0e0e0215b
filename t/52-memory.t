# A worker and policyd need no more memory after 100,000 calls than after 10,000.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Build;
use MCP::Log;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;

use constant SLACK_KIB => 1024;

my $calls = $ENV{MCP_TEST_CALLS} || 100_000;
my $first = int($calls / 10);

plan skip_all => 'sanitizers keep freed memory: its size says nothing' if MCP::Build::sanitized();
my ($wrk) = grep { -x } map { "$_/wrk" } split /:/, $ENV{PATH};
plan skip_all => 'there is no wrk (Debian package wrk)' if !defined $wrk;

# One child that is never replaced, so that the process measured is the one that did the work.
my $stack = MCP::Stack->new(
    log_level => 'info',
    policyd   => { log_level => 'info' },
    server    => <<'EOF'
StartServers 1
ServerLimit 1
ThreadsPerChild 16
MaxRequestWorkers 16
MinSpareThreads 1
MaxSpareThreads 16
MaxKeepAliveRequests 0
MaxConnectionsPerChild 0
MCPMaxCalls 64
MCPPolicyTimeout 20s
EOF
);
my $client = $stack->client;

my $script = $stack->root->write('calls.lua', <<'EOF');
local threads = {}
function setup(thread)
    table.insert(threads, thread)
end
function init(args)
    good, bad = 0, 0
    local body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"webdav__read_file",' ..
        '"arguments":{"path":"a.txt"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",' ..
        '"io.modelcontextprotocol/clientCapabilities":{}}}}'
    text = wrk.format('POST', '/mcp', {
        ['Authorization'] = 'Bearer ' .. os.getenv('TOKEN'),
        ['Content-Type'] = 'application/json',
        ['Accept'] = 'application/json, text/event-stream',
        ['MCP-Protocol-Version'] = '2026-07-28',
        ['Mcp-Method'] = 'tools/call',
        ['Mcp-Name'] = 'webdav__read_file',
    }, body)
end
function request()
    return text
end
function response(status, headers, body)
    if status == 200 and body:find('hello', 1, true) then
        good = good + 1
    else
        bad = bad + 1
    end
end
function done(summary, latency, requests)
    local good, bad = 0, 0
    for _, thread in ipairs(threads) do
        good = good + thread:get('good')
        bad = bad + thread:get('bad')
    end
    local errors = summary.errors
    print(string.format('GOOD %d BAD %d', good, bad + errors.connect + errors.read + errors.write + errors.timeout))
end
EOF

my $done = 0;

# wrk counts time, not calls: it runs for short whiles until there were enough.
sub run_until {
    my ($count) = @_;
    my $bad = 0;
    while ($done < $count && !$bad) {
        my ($status, $out) = MCP::Policyd::capture({ env => { TOKEN => $client->token } },
            $wrk, '-t', 2, '-c', 12, '-d', '2s', '--timeout', '30s', '-s', $script, $stack->gateway->origin);
        my ($good, $wrong) = $out =~ /^GOOD (\d+) BAD (\d+)$/m;
        $bad = !$good || $wrong;
        diag $out if $bad;
        $done += $good || 0;
    }
    ok !$bad, "$count calls, each answered well";
    return;
}

sub rss {
    my ($pid) = @_;
    my $status = MCP::Root::slurp("/proc/$pid/status");
    return defined $status && $status =~ /^VmRSS:\s+(\d+) kB/m ? $1 : undef;
}

my ($worker) = $stack->gateway->children;
my %pid = (worker => $worker, policyd => $stack->policyd->pid);

run_until($first);
my %early = map { $_ => rss($pid{$_}) } keys %pid;
run_until($calls);
my %late = map { $_ => rss($pid{$_}) } keys %pid;

is_deeply [$stack->gateway->children], [$worker], 'the worker is the same process';
for my $who (sort keys %pid) {
    note "$who: $early{$who} KiB after the first calls, $late{$who} KiB after $done";
    cmp_ok $late{$who}, '<=', $early{$who} + SLACK_KIB, "$who does not grow";
}
$stack->end;
done_testing;
