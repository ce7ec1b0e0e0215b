# The life of a gateway: its configuration is judged, it starts, is enabled in a running httpd, restarts and replaces its
# children under load without losing a request, and stops at once.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Build;
use MCP::Client;
use MCP::Later;
use MCP::Load;
use MCP::Net;
use MCP::Policyd;
use MCP::Process;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;
use MCP::Witness;

use constant {
    STOP_S  => 5,     # of a gateway with requests that wait
    CLIENTS => 10
};

my @mpms = $ENV{MCP_TEST_MPM} ? ($ENV{MCP_TEST_MPM}) : qw(event worker prefork);

# Children of each kind so that all clients are served at once.
sub sizes {
    my ($mpm, $more) = @_;
    my $text =
        $mpm eq 'prefork'
        ? "StartServers 8\nServerLimit 24\nMaxRequestWorkers 24\nMinSpareServers 2\nMaxSpareServers 24\n"
        : "StartServers 2\nServerLimit 6\nThreadsPerChild 12\nMaxRequestWorkers 48\nMinSpareThreads 12\nMaxSpareThreads 48\n";
    return $text . "MaxKeepAliveRequests 0\nMCPMaxCalls 96\nMCPPolicyTimeout 20s\n" . ($more || q());
}

# --- the configuration ---------------------------------------------------------------

{
    my $root = MCP::Root->new;
    my $policyd = MCP::Policyd->new(root => $root)->init;
    my $httpd = MCP::Httpd->new(root => $root, name => 'judged');
    my $module = sprintf qq(LoadModule mcp_module "%s"\n), MCP::Build::module();
    my $link = sprintf qq(MCPPolicyEndpoint "%s"\nMCPPolicyKey "%s"\n), $policyd->endpoint, $policyd->key;
    my $endpoint = qq(<Location "/mcp">\nMCPEndpoint On\n</Location>\n);
    my $broken = $root->write('broken.key', "client_secret = short\n");
    my $inside = sub { return qq(<Location "/mcp">\nMCPEndpoint On\n$_[0]\n</Location>\n) };
    my $api = sub { return qq(<Location "/api/v1">\n$_[0]\n</Location>\n) };
    my $takes = sub {
        unlink $httpd->log;
        return $httpd->takes($module . $_[0]);
    };

    my ($is_taken, $out) = $takes->($link . $endpoint);
    ok $is_taken, 'a complete configuration is taken' or diag $out;
    ok + ($takes->(q()))[0], 'so is one without any endpoint';
    ($is_taken, $out) = $takes->($link . "MCPMaxCalls 4096\n" . $inside->('MCPResource http://x/' . 'a' x 503));
    ok $is_taken, 'and one with the largest MCPMaxCalls and the longest MCPResource' or diag $out;

    for my $text ($inside->('MCPControlPrefix ' . 'a' x 32), $inside->('MCPControlPrefix 0-9'), $endpoint . $api->('MCPApi On'),
        $api->("MCPApi On\nMCPResource https://mcp.example.org/mcp"))
    {
        ($is_taken, $out) = $takes->($link . $text);
        ok $is_taken, 'taken: ' . $text =~ s/\s+/ /gr or diag $out;
    }

    my @refused = (
        ['MCPEndpoint without a policyd',    $endpoint, qr/MCPPolicyEndpoint: name policyd's query socket/],
        ['MCPEndpoint without a key',        "MCPPolicyEndpoint ipc:///x\n$endpoint", qr/MCPPolicyKey: name the httpd\.key/],
        ['MCPPolicyKey that is not there',   'MCPPolicyKey /nonexistent/key',    qr/MCPPolicyKey: .*policyd --init writes/],
        ['MCPPolicyKey that is no key',      "MCPPolicyKey $broken",             qr/MCPPolicyKey: .*line 1 is not one of/],
        ['MCPPolicyEndpoint of http',        'MCPPolicyEndpoint http://x',       qr/MCPPolicyEndpoint: .*ipc:\/\/\/path/],
        ['MCPPolicyEndpoint, relative',      'MCPPolicyEndpoint ipc://q.sock',   qr/MCPPolicyEndpoint: .*ipc:\/\/\/path/],
        ['MCPPolicyEndpoint without a word', 'MCPPolicyEndpoint',                qr/MCPPolicyEndpoint requires/],
        ['MCPPolicyTimeout without a unit',  'MCPPolicyTimeout 2',               qr/MCPPolicyTimeout: .*for example 30s/],
        ['MCPPolicyTimeout, a word',         'MCPPolicyTimeout fast',            qr/MCPPolicyTimeout: .*for example 30s/],
        ['MCPPolicyTimeout, too long',       'MCPPolicyTimeout 1h',              qr/MCPPolicyTimeout: .*from 10ms to/],
        ['MCPMaxCalls of none',              'MCPMaxCalls 0',                    qr/MCPMaxCalls: .*from 1 to 4096/],
        ['MCPMaxCalls, too many',            'MCPMaxCalls 4097',                 qr/MCPMaxCalls: .*from 1 to 4096/],
        ['MCPMaxCalls, negative',            'MCPMaxCalls -1',                   qr/MCPMaxCalls: .*from 1 to 4096/],
        ['MCPMaxCalls beyond 64 bits',       'MCPMaxCalls 99999999999999999999', qr/MCPMaxCalls: .*from 1 to 4096/],
        ['MCPViewCache without a unit',      'MCPViewCache 1',                   qr/MCPViewCache: .*for example 64K/],
        ['MCPViewCache, unknown unit',       'MCPViewCache 12Q',                 qr/MCPViewCache: .*for example 64K/],
        ['MCPEgressAllow of ftp',            'MCPEgressAllow ftp://x',           qr/MCPEgressAllow: .*http:\/\//],
        ['MCPEgressAllow with a path',       'MCPEgressAllow http://x/y',        qr/MCPEgressAllow: .*write http:\/\/x/],
        ['MCPEgressAllow with a user',       'MCPEgressAllow http://u@x',        qr/MCPEgressAllow: .*leave out/],
        ['MCPEgressAllow of everything',     'MCPEgressAllow *',                 qr/MCPEgressAllow: .*http:\/\//],
        ['MCPEgressCAFile that is not there', 'MCPEgressCAFile /nonexistent',    qr/MCPEgressCAFile: there is no file/],
        ['MCPEndpoint outside of a Location', 'MCPEndpoint On',                  qr/MCPEndpoint not allowed here/],
        ['MCPEndpoint in a Directory', "<Directory />\nMCPEndpoint On\n</Directory>", qr/MCPEndpoint: belongs into <Location/],
        ['MCPEndpoint in a LocationMatch', "<LocationMatch ^/m>\nMCPEndpoint On\n</LocationMatch>",
            qr/MCPEndpoint: belongs into <Location/],
        ['MCPEndpoint in a pattern', "<Location /m*>\nMCPEndpoint On\n</Location>", qr/MCPEndpoint: belongs into <Location/],
        ['MCPEndpoint, a word',       $inside->('MCPEndpoint maybe'),       qr/MCPEndpoint: .*write on or off/],
        ['MCPResource of ftp',        $inside->('MCPResource ftp://x'),     qr/MCPResource: .*http:\/\//],
        ['MCPResource, a path',       $inside->('MCPResource /mcp'),        qr/MCPResource: .*http:\/\//],
        ['MCPResource, too long',     $inside->('MCPResource http://x/' . 'a' x 504), qr/MCPResource: .*at most 512 bytes/],
        ['MCPResource with a fragment', $inside->('MCPResource http://x/#a'), qr/MCPResource: .*leave out the #/],
        ['MCPIssuer, a name',         $inside->('MCPIssuer example'),       qr/MCPIssuer: .*http:\/\//],
        ['MCPAllowOrigin, a name',    $inside->('MCPAllowOrigin x.org'),    qr/MCPAllowOrigin: .*http:\/\//],
        ['MCPMaxBody without a unit', $inside->('MCPMaxBody 4096'),         qr/MCPMaxBody: .*for example 64K/],
        ['MCPMaxBody, too large',     $inside->('MCPMaxBody 1024G'),        qr/MCPMaxBody: .*from 1K to/],
        ['MCPMaxResult of nothing',   $inside->('MCPMaxResult 0B'),         qr/MCPMaxResult: .*from 1K to/],
        ['MCPCallTimeout, too long',  $inside->('MCPCallTimeout 10h'),      qr/MCPCallTimeout: .*from 100ms to/],
        ['MCPListPage of none',       $inside->('MCPListPage 0'),           qr/MCPListPage: .*from 1 to/],
        ['MCPSessionLifetime, too short', $inside->('MCPSessionLifetime 1s'), qr/MCPSessionLifetime: .*from 1m to/],
        ['MCPLegacy, a word',         $inside->('MCPLegacy perhaps'),       qr/MCPLegacy: .*write on or off/],
        ['MCPControlPrefix with an underscore', $inside->('MCPControlPrefix a_b'), qr/MCPControlPrefix: .*1 to 32 of a-z, 0-9 and inner '-'/],
        ['MCPControlPrefix in upper case',    $inside->('MCPControlPrefix Gate'), qr/MCPControlPrefix: .*1 to 32 of a-z, 0-9 and inner '-'/],
        ['MCPControlPrefix with an outer dash', $inside->('MCPControlPrefix gate-'), qr/MCPControlPrefix: .*1 to 32 of a-z, 0-9 and inner '-'/],
        ['MCPControlPrefix, too long',        $inside->('MCPControlPrefix ' . 'a' x 33), qr/MCPControlPrefix: .*1 to 32 of a-z, 0-9 and inner '-'/],
        ['MCPControlPrefix without a word',   $inside->('MCPControlPrefix'),      qr/MCPControlPrefix takes one argument, what the names/],
        ['MCPControlPrefix of two words',     $inside->('MCPControlPrefix a b'),  qr/MCPControlPrefix takes one argument, what the names/],
        ['MCPControlPrefix outside of a Location', 'MCPControlPrefix gate',       qr/MCPControlPrefix not allowed here/],
        ['MCPApi without a resource', $api->('MCPApi On'), qr/MCP0103: .*add MCPResource with the URL .*or an MCPEndpoint/],
        ['MCPApi without a resource, the endpoint on another server',
            "<VirtualHost *>\n$endpoint</VirtualHost>\n" . $api->('MCPApi On'), qr/MCP0103: .*add MCPResource with the URL .*or an MCPEndpoint/],
        ['MCPApi, a word',                    $api->('MCPApi maybe'),             qr/MCPApi: .*write on or off/],
        ['MCPApi in a pattern', "<LocationMatch ^/api>\nMCPApi On\n</LocationMatch>", qr/MCPApi: belongs into <Location/],
        ['MCPApi outside of a Location',      'MCPApi On',                        qr/MCPApi not allowed here/],
        ['MCPMaxCalls in a virtual host', "<VirtualHost *>\nMCPMaxCalls 4\n</VirtualHost>", qr/MCPMaxCalls cannot occur within/],
        ['MCPPolicyTimeout in a Location', $inside->('MCPPolicyTimeout 1s'), qr/MCPPolicyTimeout not allowed/],
    );
    for my $case (@refused) {
        my ($name, $text, $says) = @$case;
        $text = $link . $text if $text !~ /MCPPolicy(?:Key|Endpoint)|\A<Location "\/mcp">\nMCPEndpoint On\n<\/Location>\n\z/;
        ($is_taken, $out) = $takes->($text);
        ok !$is_taken && $out =~ $says, "$name: refused, and told what to write" or diag $out;
    }
}

# --- start, stop, enabled by a graceful restart ------------------------------------------

sub operation {
    my ($id) = @_;
    return { id => $id, method => 'POST', path => "/$id", description => $id };
}

sub seconds {
    my ($work) = @_;
    my $began = MCP::Witness::now();
    $work->();
    return MCP::Witness::now() - $began;
}

for my $mpm (@mpms) {
    my $stack = MCP::Stack->new(mpm => $mpm, webdav => 0);
    my $gateway = $stack->gateway;
    my $hold = $stack->root->path('hold');
    my $upstream = MCP::Upstream->start(
        root  => $stack->root,
        serve => sub {
            my ($request) = @_;
            MCP::Net::wait_for(sub { !-e $hold }) if $request->{target} eq '/slow';
            return MCP::Upstream::json(200, { ok => MCP::Json::true() });
        }
    );
    $stack->reconfigure(allow => [$upstream->origin], server => "MCPPolicyTimeout 20s\n", location => "MCPCallTimeout 20s\n");
    $gateway->graceful;
    $stack->connector({ slug => 'app', base_url => $upstream->origin, operations => [operation('ok'), operation('slow')] });
    my $client = $stack->client;
    my $fine = sub {
        my ($name) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        my $answer = $client->call('app__ok');
        is MCP::Client::code($answer), undef, "$mpm: $name" or diag MCP::Client::text($answer);
        return;
    };
    my $stop = sub {
        my ($name) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        my $took = seconds(sub { $gateway->stop('TERM') });
        is $gateway->process->status, 0, "$mpm: $name, it stops";
        cmp_ok $took, '<', STOP_S, "$mpm: $name, in time";
        return;
    };

    $fine->('a call');
    $stop->('at rest');

    # a call waits for its upstream; a modern client's and an older one's
    $gateway->start;
    my $answer = $client->legacy('initialize',
        { protocolVersion => '2025-06-18', capabilities => {}, clientInfo => { name => 'old', version => '1' } });
    my @old = (version => '2025-06-18', session => MCP::Client::header($answer, 'Mcp-Session-Id'));
    MCP::Root::write_file($hold, q());
    my $had = $upstream->requests;
    my @waiting = (
        MCP::Later->start(sub { $client->call('app__slow') }),
        MCP::Later->start(sub { $client->legacy('tools/call', { name => 'app__slow', arguments => {} }, @old) })
    );
    ok MCP::Net::wait_for(sub { $upstream->requests == $had + 2 }), "$mpm: two calls wait for their upstream";
    $stop->('with calls that wait for their upstream');
    $_->get for @waiting;
    unlink $hold;

    # a question waits for policyd
    $gateway->start;
    $fine->('started again, a call');
    $stack->policyd->process->signal('STOP');
    @waiting = map { MCP::Later->start(sub { $client->call('app__ok') }) } 1 .. 3;
    my $socket = $stack->policyd->endpoint =~ s{^ipc://}{}r;
    my $has_unread = sub { my $has = MCP::Net::has_unread($socket); return !defined $has || $has };
    ok MCP::Net::wait_for($has_unread), "$mpm: questions wait for policyd";
    $stop->('with questions that wait for policyd');
    $_->get for @waiting;
    $stack->policyd->process->signal('CONT');

    # a restart that is not graceful
    $gateway->start;
    my $generations = $gateway->generations;
    $gateway->process->signal('HUP');
    ok MCP::Net::wait_for(sub { $gateway->generations > $generations }), "$mpm: restarted at once";
    $fine->('a call after it');

    # httpd runs without the module, then is told of it
    $gateway->stop('TERM');
    my $whole = $gateway->{text};
    $gateway->write(q());
    $gateway->start;
    is $client->call('app__ok')->{status}, 404, "$mpm: without the module there is no endpoint";
    $gateway->write($whole);
    ok $gateway->graceful, "$mpm: the module is added by a graceful restart";
    $fine->("enabled so, a call ($_)") for 1 .. 4;
    $gateway->write(q());
    ok $gateway->graceful, "$mpm: and taken away";
    # a child of the generation before may take one more connection on its way out
    ok MCP::Net::wait_for(sub { my $answer = $client->call('app__ok'); return $answer && $answer->{status} == 404 }), "$mpm: there is no endpoint any more";
    $gateway->write($whole);
    ok $gateway->graceful, "$mpm: and added again";
    $fine->('a call');
    $gateway->stop('TERM');

    # one process, no fork
    my $alone = MCP::Process->start(
        command => [MCP::Build::httpd(), '-X', '-f', $gateway->{conf}],
        log     => $gateway->log,
        env     => { MCP::Build::httpd_env() }
    );
    ok MCP::Net::wait_for(sub { MCP::Net::connects($gateway->port) }), "$mpm: -X serves";
    $fine->("under -X, a call ($_)") for 1 .. 3;
    my $took = seconds(sub { $alone->stop('TERM') });
    is $alone->status, 0, "$mpm: -X stops";
    cmp_ok $took, '<', STOP_S, "$mpm: -X stops in time";

    # what was cut off by a stop is on record, and not as done
    ok MCP::Net::wait_for(
        sub {
            my @rows = map { $_->{outcome} . q( ) . ($_->{error_code} || q(-)) } grep { $_->{operation} eq 'app/slow' } $stack->calls;
            return @rows == 2 && !grep { !/^(?:interrupted -|error cancelled)$/ } @rows;
        }
        ),
        "$mpm: calls that the stop has cut off are recorded so"
        or diag join ', ', map { "$_->{operation} $_->{outcome} " . ($_->{error_code} || q(-)) } $stack->calls;

    $upstream->stop;
    $stack->end(expected => [qw(MCP0301 PD0121 AH00045 AH00046 AH00171 AH00173 AH00174)]);
}

# --- under load ------------------------------------------------------------------------

# Every answer is 200 and the caller's own, every call was executed once and has one row.
sub check_load {
    my ($name, $stack, $witness, @calls) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my %times;
    $times{ $_->{mark} }++ for $witness->calls;
    is_deeply [map { "$_->{mark} $_->{status} $_->{text}" } grep { $_->{status} != 200 || !$_->{own} } @calls], [],
        "$name: each of " . @calls . ' calls is answered';
    is_deeply [grep { ($times{$_} || 0) != 1 } map { $_->{mark} } @calls], [], "$name: each was executed once";
    my %rows;
    $rows{ $_->{outcome} }++ for $stack->calls;
    is_deeply \%rows, { ok => scalar keys %times }, "$name: each has one row";
    note "$name: " . scalar(grep { $_->{retries} } @calls) . ' on a connection that was closed meanwhile';
    return;
}

for my $mpm (@mpms) {
    my $stack = MCP::Stack->new(mpm => $mpm, webdav => 0, server => sizes($mpm), log_level => 'info');
    my $gateway = $stack->gateway;
    my $witness = MCP::Witness->start(root => $stack->root, slow => 0.01);
    $stack->reconfigure(allow => [$witness->origin]);
    $gateway->graceful;
    $stack->connector($witness->file);
    my %load = (root => $stack->root, url => $stack->url, tokens => [$stack->client->token], clients => CLIENTS, keep => 'both');

    my $load = MCP::Load->start(%load);
    for my $round (1 .. 4) {
        my $size = $witness->size;
        MCP::Net::wait_for(sub { $witness->size > $size + 3000 });
        ok $gateway->graceful, "$mpm: graceful restart $round under load";
    }
    my $size = $witness->size;
    ok MCP::Net::wait_for(sub { $witness->size > $size + 3000 }), "$mpm: the load goes on";
    my @calls = $load->stop;
    check_load("$mpm, graceful restarts", $stack, $witness, @calls);

    # children that end after a few connections
    $stack->reconfigure(server => sizes($mpm, 'MaxConnectionsPerChild ' . ($mpm eq 'prefork' ? 8 : 40) . "\n"));
    $gateway->graceful;
    my %before = map { $_ => 1 } $gateway->children;
    push @calls, MCP::Load->start(%load, rounds => 40)->wait;
    my @new = grep { !$before{$_} } $gateway->children;
    cmp_ok scalar @new, '>', 0, "$mpm: children were replaced";
    check_load("$mpm, children replaced", $stack, $witness, @calls);

    $witness->stop;
    $stack->end(expected => [qw(AH00045 AH00161 AH00484 AH10159)]);
}

done_testing;
