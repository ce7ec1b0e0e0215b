# conf/quickstart, the newcomer's one command: what it prints, that it works, that it can be run again and
# stopped. The tree is the one under test (MCP_BUILD_DIR), so nothing is built here.

use strict;
use warnings;
use Test::More;
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Log;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;

my $root = MCP::Root->new;
my $dir = $root->path('run');
my $port = MCP::Net::free_port();
my $quickstart = MCP::Build::source() . '/conf/quickstart';

sub quickstart {
    my (@words) = @_;
    return MCP::Policyd::capture({ apart => 1, env => { MCP_BUILD_DIR => MCP::Build::dir() } }, $quickstart, @words);
}

# A test that fails half-way leaves nothing running.
END { quickstart('--dir', $dir, '--stop') if -d $dir }

my ($status, $out, $err) = quickstart('--help');
is $status, 0, '--help is no failure';
like $out, qr/usage: conf\/quickstart/, '... and tells the usage';
($status, $out, $err) = quickstart('--port', '0');
is $status, 2, 'a port that is none is misuse';
($status, $out, $err) = quickstart('--dir', $dir, '--stop');
is $status, 0, '--stop where nothing is has nothing to do';

($status, $out, $err) = quickstart('--dir', $dir, '--port', $port, '--json', '--debug');
is $status, 0, 'the first run succeeds' or BAIL_OUT("quickstart fails:\n$err");
is +(my $lines = () = $out =~ /\n/g), 1, '--json prints one line and nothing else';
my $made = eval { MCP::Json::decode($out) } || {};
is_deeply [sort keys %$made],
    [sort qw(endpoint token owner_token auditor_token admin_socket policy_db audit_db policyctl dir)],
    '... an object with the fields of the contract';
like $err, qr/tools\/list: 9 tools.*tools\/call: webdav__read_file/s, 'it proves itself by a list and a call';
is $made->{endpoint}, "http://127.0.0.1:$port/mcp", 'the endpoint is at the given port';
ok -e $made->{$_}, "$_ exists" for qw(policy_db audit_db dir);
ok -S $made->{admin_socket}, 'the admin socket is one';
ok -x $made->{policyctl}, 'policyctl can be run';
my $mode = (stat "$made->{dir}/tokens.json")[2] & 0777;
is $mode, 0600, 'the tokens are kept for their owner alone';

my $client = MCP::Client->new(url => $made->{endpoint}, token => $made->{token});
is scalar(my @names = MCP::Client::connected($client->list)), 9, 'the Member lists the tools of webdav';
my $answer = $client->call('webdav__write_file', { path => 'new.txt', content => 'canary-7f3a' });
ok !defined MCP::Client::code($answer), 'the Member writes a file' or diag MCP::Client::text($answer);
is MCP::Root::slurp("$made->{dir}/webdav/files/new.txt"), 'canary-7f3a', '... which is on the disk';
is_deeply [MCP::Client::connected($client->with($made->{owner_token})->list)], [qw(execute_tool search_tools)],
    'for the Owner, whose operations are more, they are found by search';
is_deeply [MCP::Client::connected($client->with($made->{auditor_token})->list)], [], 'the Auditor lists nothing';

my @found;
for my $file (split /\0/, `find '$made->{dir}' -type f -print0`) {
    next if $file =~ m{^\Q$made->{dir}\E/webdav/(?:files/|access_log\z)};
    my $bytes = MCP::Root::slurp($file);
    push @found, $file if defined $bytes && index($bytes, 'canary-7f3a') >= 0;
}
is_deeply \@found, [], 'the written value is in no other file under the directory, at debug level';

# who listens where, by the kernel's own list
my %owner = map { $_ => 1 } ($port, MCP::Root::slurp("$made->{dir}/ports") =~ /webdav=(\d+)/);
my @open = grep { hex((split /:/)[1]) && $owner{ hex((split /:/)[1]) } }
    map { (split)[1] } grep { (split)[3] eq '0A' } grep { /^\s*\d+:/ } map { MCP::Log::lines($_) } qw(/proc/net/tcp /proc/net/tcp6);
is scalar(grep { !/^0100007F:/ } @open), 0, 'only the loopback is listened on';
is scalar(@open) >= 2, 1, '... by both httpds';

($status, $out, $err) = quickstart('--dir', $dir, '--json', '--debug');
is $status, 0, 'a second run succeeds' or diag $err;
is_deeply eval { MCP::Json::decode($out) }, $made, '... and tells the same, without being told the port';
my $ctl = sub {
    my ($s, $o) = MCP::Policyd::capture({ apart => 1 }, $made->{policyctl}, '--socket', $made->{admin_socket}, @_);
    return $s == 0 ? MCP::Json::decode($o) : die "policyctl @_ fails\n";
};
is scalar @{ $ctl->(qw(members list -o json))->{items} },     3, 'there are three members still';
is scalar @{ $ctl->(qw(connections list -o json))->{items} }, 1, '... and one connection';
is scalar @{ $ctl->(qw(grants list -o json))->{items} },      3, '... and three grants';

($status, $out, $err) = quickstart('--dir', $dir, '--port', $port);
like $out, qr/claude mcp add --transport http \S+ \Q$made->{endpoint}\E --header "Authorization: Bearer \Q$made->{token}\E"/,
    'without --json it prints a client configuration to paste';
like $out, qr/"mcpServers"/, '... and one as JSON';

($status, $out, $err) = quickstart('--dir', $dir, '--stop');
is $status, 0, '--stop succeeds';
ok !MCP::Net::connects($port), '... nobody listens any more';
ok !MCP::Net::connects_unix($made->{admin_socket}), '... policyd has gone';

($status, $out, $err) = quickstart('--dir', $dir, '--json');
is_deeply eval { MCP::Json::decode($out) }, $made, 'started again, it has the same tokens';
is MCP::Client::text($client->call('webdav__read_file', { path => 'new.txt' })), 'canary-7f3a', '... and files';
($status, $out, $err) = quickstart('--dir', $dir, '--stop');
is $status, 0, 'and stops again';

is_deeply [MCP::Log::unexpected([map { "$made->{dir}/log/$_" } qw(policyd.log gateway_error.log)])], [],
    'the logs hold nothing unexpected';
done_testing;
