# Clients of 2025-11-25, 2025-06-18 and 2025-03-26: L01 to L06 of the specification's checklist, the rules of
# sessions (L07) and the shapes of results (L08).

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Verdict qw(attempts raw_id result verdict);

my @LEGACY = qw(2025-11-25 2025-06-18 2025-03-26);

my $stack = MCP::Stack->new;
my $client = $stack->client;
my $tool = 'webdav__read_file';
my %call = (name => $tool, arguments => { path => 'a.txt' });

sub header { return MCP::Client::header(@_) }

sub initialize {
    my ($who, $version, %how) = @_;
    return $who->legacy('initialize', { protocolVersion => $version, capabilities => {}, clientInfo => { name => 'old client', version => '0.9' } },
        %how);
}

sub session { return header(initialize(@_), 'Mcp-Session-Id') }

# Posts this text as it stands, with these headers.
sub post { my ($text, @headers) = @_; return $client->post($text, headers => \@headers) }

subtest 'L01: initialize negotiates a revision, notifications/initialized is accepted' => sub {
    my %asked = ((map { $_ => $_ } @LEGACY), '2026-07-28' => '2025-11-25', '1999' => '2025-11-25', '2024-11-05' => '2025-11-25', q() => '2025-11-25');
    for my $version (sort keys %asked) {
        my $answer = initialize($client, $version, id => '"i"');
        is(verdict($answer), '200/result', "$version: served");
        is(raw_id($answer), '"i"', "$version: with the id");
        my $result = result($answer);
        is($result->{protocolVersion}, $asked{$version}, "$version: $asked{$version}");
        is($result->{serverInfo}{name}, 'mod_mcp', "$version: serverInfo stands in the body");
        is_deeply($result->{capabilities}, { tools => {} }, "$version: the capabilities");
        like($result->{instructions}, qr/\S/, "$version: there are instructions");
        is_deeply([ grep { exists $result->{$_} } qw(resultType ttlMs cacheScope _meta) ], [], "$version: and nothing of the new revision");
        my $session = header($answer, 'Mcp-Session-Id');
        like($session, qr/^[\x21-\x7e]{16,4096}\z/, "$version: the session is visible ASCII");
        my $told = post('{"jsonrpc":"2.0","method":"notifications/initialized"}', 'Mcp-Session-Id' => $session, 'MCP-Protocol-Version' => $asked{$version});
        is($told->{status}, 202, "$version: the notification is accepted");
        is($told->{body}, q(), "$version: without a body");
        is(header($told, 'Mcp-Session-Id'), undef, "$version: and without another session");
    }
    my @broken = ({ capabilities => {} }, { protocolVersion => 20251125 }, { protocolVersion => undef }, { protocolVersion => ['2025-11-25'] });
    for my $params (@broken) {
        my $answer = $client->legacy('initialize', $params);
        is(verdict($answer), '200/-32602', MCP::Json::encode($params) . ' is refused');
        is(header($answer, 'Mcp-Session-Id'), undef, 'without a session');
    }
    isnt(session($client, '2025-06-18'), session($client, '2025-06-18'), 'two handshakes are two sessions');
};

subtest 'L02: a legacy request needs neither mirrored headers nor _meta' => sub {
    for my $version (@LEGACY, undef) {
        my $shown = defined $version ? $version : 'no version';
        my @headers = defined $version ? ('MCP-Protocol-Version' => $version) : ();
        my $answer = post('{"jsonrpc":"2.0","id":2,"method":"tools/list"}', @headers);
        is(verdict($answer), '200/result', "$shown: tools/list");
        my %tools = map { $_->{name} => $_ } @{ result($answer)->{tools} };
        ok($tools{$tool}, "$shown: with the tools");
        is(raw_id($answer), 2, "$shown: and the id");
        is(verdict($client->legacy('tools/call', \%call, version => $version)), '200/result', "$shown: tools/call");
        is(verdict($client->legacy('tools/list', {}, version => $version, headers => [ 'Mcp-Method' => 'other', 'Mcp-Name' => 'other' ])),
            '200/result', "$shown: stray mirrored headers are not looked at");
    }
};

subtest 'L03: ping is answered with {}' => sub {
    for my $version (@LEGACY, undef) {
        my $answer = $client->legacy('ping', {}, version => $version, id => '"p"');
        is($answer->{body}, '{"jsonrpc":"2.0","id":"p","result":{}}', (defined $version ? $version : 'no version') . ': an empty result and nothing else');
    }
    is(verdict($client->legacy('ping', {}, version => '2025-06-18', token => undef)), 401, 'with a token only');
};

subtest 'L04: an unknown method is 200 and -32601, never 404' => sub {
    my $session = session($client, '2025-11-25');
    for my $method (qw(no/such prompts/list resources/list resources/subscribe logging/setLevel completion/complete server/discover subscriptions/listen)) {
        for my $version (@LEGACY, undef) {
            my $answer = $client->legacy($method, {}, version => $version, id => 4);
            is(verdict($answer), '200/-32601', "$method: " . (defined $version ? $version : 'no version'));
            is(raw_id($answer), 4, "$method: with the id");
        }
        is(verdict($client->legacy($method, {}, version => '2025-11-25', session => $session)), '200/-32601', "$method in a session");
    }
};

subtest 'L05: a version header that nobody serves is 400' => sub {
    for my $version ('1.0', 'v1', '2025-11-26', '2025-03-26x', '2024-11-05', '2025-11-25, 2025-11-25') {
        for my $method ('tools/list', 'ping') {
            my $answer = $client->legacy($method, {}, version => $version, id => 5);
            is(verdict($answer), '400/-32022', "$method: $version");
            is(raw_id($answer), 5, "$method: $version: with the id");
        }
        is(post('{"jsonrpc":"2.0","method":"notifications/initialized"}', 'MCP-Protocol-Version' => $version)->{status}, 400, "a notification: $version");
    }
    is(verdict(initialize($client, '2025-06-18', version => '1.0')), '200/result', 'initialize itself is not bound by it');
};

subtest 'L06: batches are served to 2025-03-26 and refused to all others' => sub {
    my $two = '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"tools/list"}]';
    for my $headers ([], [ 'MCP-Protocol-Version' => '2025-03-26' ], [ 'Mcp-Session-Id' => session($client, '2025-03-26') ]) {
        my $answer = post($two, @$headers);
        my $shown = @$headers ? $headers->[0] : 'no header';
        is($answer->{status}, 200, "$shown: served");
        is(ref $answer->{json}, 'ARRAY', "$shown: with a list") or next;
        is_deeply([ sort map { $_->{id} } @{ $answer->{json} } ], [ 1, 'b' ], "$shown: of both answers");
    }
    for my $version (@LEGACY[ 0, 1 ]) {
        is(verdict(post($two, 'MCP-Protocol-Version' => $version)), '400/-32600', "$version: refused by its header");
        is(verdict(post($two, 'Mcp-Session-Id' => session($client, $version))), '400/-32600', "$version: refused by its session");
    }
    is(verdict(post('[]')), '400/-32600', 'an empty batch is refused');
    is(verdict(post('[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]')), '400/-32600',
        'initialize may not be in one');
    is(verdict(post('[' . join(',', ('{"jsonrpc":"2.0","id":1,"method":"ping"}') x 33) . ']')), '400/-32600', '33 are too many');
    my $most = post('[' . join(',', map { qq({"jsonrpc":"2.0","id":$_,"method":"ping"}) } 1 .. 32) . ']');
    is(scalar @{ $most->{json} }, 32, '32 are not');
    my $told = post('[{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","method":"notifications/cancelled"}]');
    is($told->{status}, 202, 'notifications alone are accepted');
    is($told->{body}, q(), 'without a body');
    my $mixed = post('[{"jsonrpc":"2.0","id":1,"method":"ping"},7,{"jsonrpc":"2.0","id":null,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":3,"method":"no/such"}]');
    is_deeply(
        [ map { exists $_->{error} ? $_->{error}{code} : 'result' } @{ $mixed->{json} } ],
        [ 'result', -32600, -32600, -32601 ],
        'each element has its own answer'
    );
    my $calls;
    my @rows = attempts($stack, sub { $calls = post(MCP::Json::encode([ map { { jsonrpc => '2.0', id => $_, method => 'tools/call', params => { name => $tool, arguments => { path => $_ } } } } 'a.txt', 'none.txt', 'a.txt' ])) });
    is_deeply([ map { $_->{result}{isError} ? 'error' : 'ok' } @{ $calls->{json} } ], [ 'ok', 'error', 'ok' ], 'three calls are served in order');
    is_deeply([ map { $_->{outcome} } @rows ], [qw(ok error ok)], 'and are three attempts');
    my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    my $scopes = $low->post(MCP::Json::encode([ { jsonrpc => '2.0', id => 1, method => 'ping' },
                { jsonrpc => '2.0', id => 2, method => 'tools/call', params => { name => 'webdav__delete_file', arguments => { path => 'a.txt' } } } ]));
    is($scopes->{status}, 200, 'a scope that one element lacks does not refuse the others');
    ok($scopes->{json}[1]{result}{isError} || $scopes->{json}[1]{error}, 'it is told in its place');
    is($stack->file('a.txt'), "hello\n", 'and nothing was deleted');
    is($client->post($two, token => 'mcp_' . 'x' x 43)->{status}, 401, 'a token of nobody refuses the whole');
    is($client->post($two, token => undef)->{status}, 401, 'and so does none');
};

subtest 'L07: a session belongs to its grant, and an id that is none is 404' => sub {
    my $session = session($client, '2025-06-18');
    is(verdict($client->legacy('tools/list', {}, session => $session, version => '2025-06-18')), '200/result', 'its own session is served');
    is(verdict($client->legacy('tools/list', {}, session => $session)), '200/result', 'also without the version header');
    (my $changed = $session) =~ s/(.)\z/$1 eq 'A' ? 'B' : 'A'/e;
    (my $inside = $session) =~ s/^(.{20})(.)/$1 . ($2 eq 'A' ? 'B' : 'A')/e;
    my @ids = ('zzz', $changed, $inside, "${session}A", substr($session, 0, -4), "$session, $session", 'x' x 3000, '1.' . ('A' x 80));
    for my $id (@ids) {
        my $shown = length $id > 24 ? substr($id, 0, 10) . '...' : $id;
        for my $method ('tools/list', 'ping', 'tools/call') {
            my $answer = $client->legacy($method, \%call, session => $id, version => '2025-06-18', id => 7);
            is($answer->{status}, 404, "$method with $shown: 404");
            is(raw_id($answer), 7, "$method with $shown: and the id");
        }
        is(post('{"jsonrpc":"2.0","method":"notifications/initialized"}', 'Mcp-Session-Id' => $id)->{status}, 404, "a notification with $shown: 404");
        is(post('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 'Mcp-Session-Id' => $id)->{status}, 404, "a batch with $shown: 404");
    }
    is(verdict(initialize($client, '2025-06-18', session => 'zzz')), '200/result', 'initialize opens a new one, whatever it came with');
    my $auditor = $stack->client(member => 'auditor@example.org');
    is($auditor->legacy('tools/list', {}, session => $session)->{status}, 404, "somebody else's session is 404");
    my $twin = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    is($twin->legacy('tools/list', {}, session => $session)->{status}, 404, "and so is that of another grant of the same member");
    is($client->legacy('tools/list', {}, session => $session, token => undef)->{status}, 401, 'a session is no token');
    my $delete = $client->request('DELETE', '/mcp', [ Authorization => 'Bearer ' . $client->token, 'Mcp-Session-Id' => $session ]);
    is($delete->{status}, 405, 'DELETE is 405: a session ends by itself');
    is($client->request('GET', '/mcp', [ Authorization => 'Bearer ' . $client->token, 'Mcp-Session-Id' => $session, Accept => 'text/event-stream' ])->{status},
        405, 'and there is no stream to GET');
    is(verdict($client->legacy('tools/list', {}, session => $session)), '200/result', 'it is still there');
};

subtest 'L07: a session knows its client and outlives a graceful restart' => sub {
    my $session = session($client, '2025-11-25');
    my $answer;
    my @rows = attempts($stack, sub { $answer = $client->legacy('tools/call', \%call, session => $session) });
    is(verdict($answer), '200/result', 'a call');
    is(scalar @rows, 1, 'is an attempt');
    is($rows[0]{client}, 'old client/0.9', 'the audit row has the name that the handshake told');
    ok($stack->gateway->graceful, 'httpd has new children') or return;
    is(verdict($client->legacy('tools/list', {}, session => $session)), '200/result', 'which serve the session');
};

subtest 'L08: results have the shape of their revision' => sub {
    for my $version (@LEGACY) {
        my $list = result($client->legacy('tools/list', {}, version => $version));
        is_deeply([ grep { exists $list->{$_} } qw(resultType ttlMs cacheScope _meta) ], [], "$version: a list has nothing of the new revision");
        my ($read) = grep { $_->{name} eq $tool } @{ $list->{tools} };
        is(exists $read->{title} ? 1 : 0, $version eq '2025-03-26' ? 0 : 1, "$version: titles since 2025-06-18");
        ok(exists $read->{annotations}, "$version: hints in each");
        my $call = result($client->legacy('tools/call', \%call, version => $version));
        is_deeply([ sort keys %$call ], ['content'], "$version: a text is its content alone");
        my $error = result($client->legacy('tools/call', { name => $tool, arguments => {} }, version => $version));
        ok($error->{isError}, "$version: arguments that are refused are an isError");
        is(exists $error->{structuredContent} ? 1 : 0, $version eq '2025-03-26' ? 0 : 1, "$version: structured since 2025-06-18");
        like($error->{content}[0]{text}, qr/invalid_arguments/, "$version: the code is in the text");
        my $missing = result($client->legacy('tools/call', { name => $tool, arguments => { path => 'none.txt' } }, version => $version));
        ok($missing->{isError}, "$version: an error of the application is an isError");
        is(exists $missing->{structuredContent} ? 1 : 0, $version eq '2025-03-26' ? 0 : 1, "$version: structured since 2025-06-18");
        my $unknown = $client->legacy('tools/call', { name => 'nobody__has_this', arguments => {} }, version => $version);
        is(verdict($unknown), '200/-32602', "$version: an unknown tool is -32602");
    }
};

subtest 'a legacy response that was posted is refused, since none was asked for' => sub {
    my $session = session($client, '2025-11-25');
    my $answer = post('{"jsonrpc":"2.0","id":1,"result":{}}', 'MCP-Protocol-Version' => '2025-11-25', 'Mcp-Session-Id' => $session);
    is(verdict($answer), '400/-32600', 'refused with 400');
};

$stack->end;
done_testing;
