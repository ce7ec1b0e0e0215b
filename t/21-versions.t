# Versions and the envelope of 2026-07-28: V01 to V08 of the specification's checklist, and the table by which a
# request is told to be of one era or the other.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Verdict qw(raw_id result verdict);

my $PREFIX = 'io.modelcontextprotocol';
my @SERVED = qw(2026-07-28 2025-11-25 2025-06-18 2025-03-26);

my $stack = MCP::Stack->new;
my $client = $stack->client;

sub header { return MCP::Client::header(@_) }
sub meta   { return MCP::Client::meta(@_) }

subtest 'V01: server/discover answers, and is complete' => sub {
    my $answer = $client->discover;
    my $result = result($answer);
    is(verdict($answer), '200/result', 'it is served');
    is($result->{resultType}, 'complete', 'resultType is complete');
    is_deeply($result->{supportedVersions}, \@SERVED, 'supportedVersions, newest first');
    is_deeply($result->{capabilities}, { tools => {} }, 'capabilities are those that are served');
    like($answer->{body}, qr/"ttlMs":\d+[,}]/, 'ttlMs is a number');
    is($result->{cacheScope}, 'private', 'cacheScope is private');
    like($result->{instructions}, qr/\S/, 'there are instructions');
    cmp_ok(length $result->{instructions}, '<=', 2000, 'of at most 2,000 characters');
    is_deeply(
        [sort keys %$result],
        [qw(_meta cacheScope capabilities instructions resultType supportedVersions ttlMs)],
        'and nothing else'
    );
};

subtest 'V02: serverInfo is in _meta, not in the body' => sub {
    my %answers = (
        'server/discover' => $client->discover,
        'tools/list'      => $client->list,
        'tools/call'      => $client->call('webdav__read_file', { path => 'a.txt' }),
        'an error result' => $client->call('webdav__read_file', { path => 'none.txt' })
    );
    for my $what (sort keys %answers) {
        my $result = result($answers{$what});
        my $info = $result->{_meta}{"$PREFIX/serverInfo"};
        is($info->{name}, 'mod_mcp', "$what: the name in _meta");
        like($info->{version}, qr/^\d+\.\d+\.\d+/, "$what: the version in _meta");
        ok(!exists $result->{serverInfo}, "$what: no serverInfo beside it");
    }
};

subtest 'V03: an envelope without its required members is refused with 400 and -32602' => sub {
    my %cases = (
        'no _meta'                     => undef,
        'an empty _meta'               => {},
        '_meta without version'        => meta(version => undef),
        '_meta without capabilities'   => meta(capabilities => undef),
        'a version that is a number'   => meta(version => 20260728),
        'a version that is null'       => { %{ meta(version => undef) }, "$PREFIX/protocolVersion" => undef },
        'a version in an array'        => meta(version => ['2026-07-28']),
        'capabilities that are a list' => meta(capabilities => []),
        'capabilities that are true'   => meta(capabilities => MCP::Json::true()),
        'capabilities that are null'   => { %{ meta(capabilities => undef) }, "$PREFIX/clientCapabilities" => undef },
        '_meta that is a list'         => ['2026-07-28'],
        '_meta that is a string'       => '2026-07-28',
        'keys without their prefix'    => { protocolVersion => '2026-07-28', clientCapabilities => {} },
        'keys in capitals'             => { map { uc($_) => meta()->{$_} } keys %{ meta() } }
    );
    for my $what (sort keys %cases) {
        for my $method ('server/discover', 'tools/list', 'no/such') {
            my $answer = $client->mcp($method, {}, meta => $cases{$what}, id => '"v3"');
            is(verdict($answer), '400/-32602', "$method with $what");
            is(raw_id($answer), '"v3"', "$method with $what: the id is echoed");
        }
    }
    like(
        $client->discover(meta => meta(capabilities => undef))->{json}{error}{message},
        qr{\Q$PREFIX\E/clientCapabilities},
        'the message names what is missing'
    );
    my $two = sprintf '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"%1$s/protocolVersion":"2026-07-28",'
        . '"%1$s/protocolVersion":"2025-11-25","%1$s/clientCapabilities":{}}}}', $PREFIX;
    my @headers = ('MCP-Protocol-Version' => '2026-07-28', 'Mcp-Method' => 'server/discover');
    is(verdict($client->post($two, headers => \@headers)), '400/-32600', 'a version that is there twice is refused');
};

subtest 'V04: clientInfo is optional, and checked when it is there' => sub {
    is(verdict($client->discover), '200/result', 'without it a request is served');
    my %good = (
        'name and version'  => { name => 'X', version => '1' },
        'members of others' => { name => 'X', version => '1', title => 'T', icons => [], websiteUrl => 'https://x.example' },
        'an empty name'     => { name => q(), version => q() },
        'a name of 4 kB'    => { name => 'n' x 4096, version => '1' }
    );
    for my $what (sort keys %good) {
        my $answer = $client->list(meta => meta(more => { "$PREFIX/clientInfo" => $good{$what} }));
        is(verdict($answer), '200/result', "$what: served");
    }
    my %bad = (
        'a string'                    => 'X',
        'a list'                      => ['X', '1'],
        'null'                        => undef,
        'no version'                  => { name => 'X' },
        'no name'                     => { version => '1' },
        'a name that is a number'     => { name => 1, version => '1' },
        'a version that is an object' => { name => 'X', version => {} }
    );
    for my $what (sort keys %bad) {
        my $answer = $client->discover(meta => meta(more => { "$PREFIX/clientInfo" => $bad{$what} }));
        is(verdict($answer), '400/-32602', "$what: refused");
    }
};

subtest 'V05: a version that is not served is refused with 400 and -32022' => sub {
    my $known = result($client->discover)->{supportedVersions};
    for my $version ('v999', '1900-01-01', '2024-11-05', '2026-07-29', q( ), 'draft', "\x{e9}", 'x' x 500) {
        next if $version =~ /^ $/;    # a blank can't be sent as a header value
        utf8::encode(my $bytes = $version);
        my $answer = $client->discover(version => $bytes, meta => meta(version => $version), id => 5);
        my $shown = length $version > 20 ? 'a long one' : MCP::Json::encode($version);
        is(verdict($answer), '400/-32022', "$shown is refused");
        is(raw_id($answer), 5, "$shown: the id is echoed");
        my $data = $answer->{json}{error}{data};
        is_deeply([sort keys %$data], [qw(requested supported)], "$shown: data has its two members");
        is($data->{requested}, $version, "$shown: data says what was asked for") if length $version < 100;
        ok(@{ $data->{supported} } > 0, "$shown: data says what is served");
        my %is_known = map { $_ => 1 } @$known;
        is_deeply([grep { !$is_known{$_} } @{ $data->{supported} }], [], "$shown: all of it is what server/discover says");
    }
    is(verdict($client->mcp('tools/list', {}, version => 'v999', meta => undef)), '400/-32022', 'also without an envelope');
};

subtest 'V06: a mismatch is told before an unsupported version' => sub {
    my $answer = $client->discover(meta => meta(version => 'v999'));
    is(verdict($answer), '400/-32020', 'v999 in the envelope, 2026-07-28 in the header');
    is(verdict($client->discover(version => 'v999')), '400/-32020', 'and the other way round');
    is(verdict($client->discover(version => 'v998', meta => meta(version => 'v999'))), '400/-32020', 'two that nobody serves');
    is(verdict($client->discover(version => undef, meta => meta(version => 'v999'))), '400/-32020', 'no header and v999');
};

subtest 'V07: the date of a legacy revision has no envelope' => sub {
    for my $version (@SERVED[1 .. 3]) {
        for my $method ('server/discover', 'initialize', 'tools/list') {
            my $answer = $client->mcp($method, {}, version => $version, meta => meta(version => $version));
            is(verdict($answer), '400/-32022', "$method in an envelope of $version");
            my $data = $answer->{json}{error}{data};
            is($data->{requested}, $version, "$version: data says what was asked for");
            is_deeply($data->{supported}, ['2026-07-28'], "$version: and does not send the client round in a circle");
        }
    }
};

subtest 'V08: the modern header without the envelope is refused with 400 and -32602, never served as legacy' => sub {
    for my $method ('tools/list', 'initialize', 'ping', 'server/discover', 'tools/call') {
        my $answer = $client->mcp(
            $method, { protocolVersion => '2025-11-25', name => 'webdav__read_file', arguments => { path => 'a.txt' } },
            meta => undef, id => 6
        );
        is(verdict($answer), '400/-32602', "$method is refused");
        is(raw_id($answer), 6, "$method: the id is echoed");
        is(header($answer, 'Mcp-Session-Id'), undef, "$method: no session is opened");
    }
};

# --- the classifier, row by row (H: header, C: claim in _meta) -------------------------

subtest 'the era of a request, by header and envelope' => sub {
    my $new = '2026-07-28';
    my $old = '2025-11-25';
    my @rows = (
        # H, C, method, verdict, modern?
        [ undef,   undef,  'tools/list', '200/result', 0 ],
        [ $old,    undef,  'tools/list', '200/result', 0 ],
        [ $new,    $new,   'tools/list', '200/result', 1 ],
        [ $new,    undef,  'tools/list', '400/-32602' ],
        [ undef,   $new,   'tools/list', '400/-32020' ],
        [ $old,    $new,   'tools/list', '400/-32020' ],
        [ $new,    $old,   'tools/list', '400/-32020' ],
        [ $old,    $old,   'tools/list', '400/-32022' ],
        [ 'v999',  undef,  'tools/list', '400/-32022' ],
        [ 'v999',  'v999', 'tools/list', '400/-32022' ],
        [ $new,    7,      'tools/list', '400/-32602' ],
        [ undef,   7,      'tools/list', '400/-32602' ],
        [ undef,   undef,  'initialize', '200/result', 0 ],
        [ $old,    undef,  'initialize', '200/result', 0 ],
        [ 'v999',  undef,  'initialize', '200/result', 0 ],
        [ $new,    undef,  'initialize', '400/-32602' ],
        [ $new,    $new,   'initialize', '404/-32601' ],
        [ undef,   undef,  'server/discover', '200/-32601' ],
        [ $old,    undef,  'server/discover', '200/-32601' ],
        [ $new,    $new,   'server/discover', '200/result', 1 ]
    );
    for my $row (@rows) {
        my ($header, $claim, $method, $wanted, $is_modern) = @$row;
        my $answer = $client->mcp(
            $method,
            $method eq 'initialize' ? { protocolVersion => '2025-06-18', capabilities => {} } : {},
            version => $header, meta => defined $claim ? meta(version => $claim) : undef
        );
        my $what = sprintf '%s, header %s, envelope %s', $method, map { defined $_ ? $_ : 'none' } $header, $claim;
        is(verdict($answer), $wanted, $what);
        is(exists result($answer)->{resultType} ? 1 : 0, $is_modern, "$what: the result has the shape of its era")
            if defined $is_modern;
    }
};

subtest 'what one request said is forgotten by the next of its connection' => sub {
    my $kept = MCP::Client->new(url => $client->url, token => $client->token, keep => 1);
    ok(exists result($kept->list)->{resultType}, 'a modern request');
    ok(!exists result($kept->legacy('tools/list', {}, version => '2025-11-25'))->{resultType}, 'a legacy one behind it');
    is(verdict($kept->list(meta => undef)), '400/-32602', 'a modern one without the envelope that was there before');
    is(verdict($kept->list(token => undef)), 401, 'one without the token that was there before');
    $kept->hang_up;
};

subtest 'an endpoint with MCPLegacy Off' => sub {
    $stack->reconfigure(location => 'MCPLegacy Off');
    ok($stack->gateway->graceful, 'httpd has taken the directive') or return;
    is_deeply(result($client->discover)->{supportedVersions}, ['2026-07-28'], 'it says that it serves one version');
    is(verdict($client->list), '200/result', 'which it does');
    my @legacy = (
        $client->legacy('initialize', { protocolVersion => '2025-11-25', capabilities => {}, clientInfo => {} }),
        $client->legacy('tools/list', {}, version => '2025-11-25'),
        $client->legacy('tools/list', {}),
        $client->legacy('notifications/initialized', {}, version => '2025-06-18')
    );
    for my $answer (@legacy) {
        is(verdict($answer), '400/-32022', 'a legacy request is refused with 400 and -32022');
        is_deeply($answer->{json}{error}{data}{supported}, ['2026-07-28'], 'and told what is served');
        is(header($answer, 'Mcp-Session-Id'), undef, 'without a session');
    }
    my $other = $client->list(version => 'v999', meta => meta(version => 'v999'));
    is_deeply($other->{json}{error}{data}{supported}, ['2026-07-28'], 'whoever asks for something else is told the same');
    my $batch = $client->post('[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]');
    is(verdict($batch), '400/-32600', 'a batch is refused whole');
};

$stack->end;
done_testing;
