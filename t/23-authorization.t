# The endpoint as a resource server: A01, A03, A04, A07, A08, A09 and A11 of the specification's checklist.

use strict;
use warnings;
use File::Find ();
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(challenge result rpc_code verdict);

my $root = MCP::Root->new;
my $upstream = MCP::Upstream->start(root => $root);
my $stack = MCP::Stack->new(allow => [$upstream->origin]);
my $client = $stack->client;
my $url = $stack->url;
my $origin = $stack->gateway->origin;
my $metadata = "$origin/.well-known/oauth-protected-resource/mcp";
my @m1 = ('MCP-Protocol-Version' => '2026-07-28');

sub header { return MCP::Client::header(@_) }

subtest 'A01: without a token the answer is 401 with a challenge that says where to get one' => sub {
    for my $method (qw(server/discover tools/list tools/call initialize no/such)) {
        my $answer = $client->mcp($method, { name => 'webdav__read_file', arguments => { path => 'a.txt' } }, token => undef);
        is($answer->{status}, 401, "$method: 401");
        my $challenge = challenge($answer) or fail("$method: a challenge that can be read"), next;
        is($challenge->{scheme}, 'Bearer', "$method: Bearer");
        is_deeply($challenge->{resource_metadata}, [$metadata], "$method: names the metadata");
        is_deeply($challenge->{scope}, ['mcp:read mcp:tools'], "$method: names the scopes of basic use");
        ok(!exists $challenge->{error}, "$method: and no error, since nothing was sent");
        ok(!defined rpc_code($answer), "$method: the body is no JSON-RPC");
    }
    my $bad = $client->discover(token => 'mcp_' . 'x' x 43);
    is($bad->{status}, 401, 'a token that nobody has is 401');
    is_deeply(challenge($bad)->{error}, ['invalid_token'], 'with its error');
    is_deeply(challenge($bad)->{resource_metadata}, [$metadata], 'and the metadata');
};

subtest 'A01: only one header with one well-formed token counts' => sub {
    my $token = $client->token;
    my %lines = (
        'another scheme'         => [ Authorization => "Basic $token" ],
        'no scheme'              => [ Authorization => $token ],
        'no token'               => [ Authorization => 'Bearer' ],
        'no token, a blank'      => [ Authorization => 'Bearer ' ],
        'no blank'               => [ Authorization => "Bearer$token" ],
        'a tab'                  => [ Authorization => "Bearer\t$token" ],
        'quotes'                 => [ Authorization => qq(Bearer "$token") ],
        'a comma'                => [ Authorization => "Bearer $token," ],
        'a second word'          => [ Authorization => "Bearer $token x" ],
        'two headers'            => [ Authorization => "Bearer $token", Authorization => "Bearer $token" ],
        'two, the first another' => [ Authorization => 'Basic eA==', Authorization => "Bearer $token" ],
        'a part of it'           => [ Authorization => 'Bearer ' . substr $token, 0, -1 ],
        'more than it'           => [ Authorization => "Bearer ${token}x" ],
        'padding behind it'      => [ Authorization => "Bearer $token=" ],
        'other case'             => [ Authorization => "Bearer \U$token" ],
        'bytes'                  => [ Authorization => "Bearer \xff\xfe" ],
        'another header'         => [ 'Proxy-Authorization' => "Bearer $token" ],
        'a cookie'               => [ Cookie => "Authorization=Bearer $token; access_token=$token" ],
        'a long one'             => [ Authorization => 'Bearer ' . 'x' x 6000 ]
    );
    for my $what (sort keys %lines) {
        my $answer = $client->discover(token => undef, headers => $lines{$what});
        is($answer->{status}, 401, "$what: 401");
        ok(challenge($answer), "$what: with a challenge that can be read");
        unlike($answer->{body} . MCP::Json::encode($answer->{headers}), qr/\Q$token\E/, "$what: the answer does not repeat the token");
    }
    for my $scheme ('bearer', 'BEARER', 'Bearer ') {
        is(verdict($client->discover(token => undef, headers => [ Authorization => "$scheme $token" ])), '200/result', "'$scheme' is the scheme");
    }
};

subtest 'A03: the metadata stands at the path and at the root, and is minimal' => sub {
    for my $path ('/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource') {
        my $answer = $client->get($path);
        is($answer->{status}, 200, "$path: 200 without a token");
        is(header($answer, 'Content-Type'), 'application/json', "$path: JSON");
        is(header($answer, 'Access-Control-Allow-Origin'), '*', "$path: for browsers too");
        my $document = eval { MCP::Json::decode($answer->{body}) } or fail("$path: a document"), next;
        is($document->{resource}, $url, "$path: resource is the URL of the endpoint, byte for byte");
        cmp_ok(scalar @{ $document->{authorization_servers} }, '>=', 1, "$path: an authorization server");
        like($_, qr{^https?://[^/?#]+(?:/[^?#]*)?\z}, "$path: an issuer's URL") for @{ $document->{authorization_servers} };
        is_deeply($document->{bearer_methods_supported}, ['header'], "$path: tokens come in the header");
        is_deeply($document->{scopes_supported}, ['mcp:read', 'mcp:tools'], "$path: scopes of basic use, not offline_access");
        my @empty = grep { ref $document->{$_} eq 'ARRAY' && !@{ $document->{$_} } } keys %$document;
        is_deeply(\@empty, [], "$path: no empty list");
    }
    is($client->get('/.well-known/oauth-protected-resource/other')->{status}, 404, 'another path has none');
    is($client->get('/.well-known/oauth-protected-resource/mcp/x')->{status}, 404, 'nor one below the endpoint');
    is($client->get('/.well-known/oauth-protected-resourcex')->{status}, 404, 'nor a longer name');
    is($client->request('POST', '/.well-known/oauth-protected-resource/mcp', [], '{}')->{status}, 405, 'POST is 405');
    my $answer = $client->request('GET', '/.well-known/oauth-protected-resource/mcp', [ Host => 'evil.example' ]);
    is(MCP::Json::decode($answer->{body})->{resource}, $url, 'a forged Host is not repeated');
    my $head = $client->request('HEAD', '/.well-known/oauth-protected-resource/mcp', []);
    is($head->{status}, 200, 'HEAD is served');
    is($head->{body}, q(), 'without a body');
};

subtest 'A04: a token in the URL or in the body is not a token' => sub {
    my $token = $stack->grant('member@example.org')->{token};    # of its own, since httpd logs URLs
    my $meta = MCP::Client::meta();
    for my $path ("/mcp?access_token=$token", "/mcp?token=$token", "/mcp?Authorization=Bearer%20$token", "/mcp;access_token=$token") {
        my $answer = $client->discover(path => $path, token => undef);
        like($answer->{status}, qr/^40[14]\z/, (split /=|;/, $path)[0] . ' is refused');
        unlike($answer->{body}, qr/\Q$token\E/, 'and the token not repeated');
    }
    is($client->discover(path => "/mcp?access_token=$token", token => undef)->{status}, 401, 'with 401');
    my $form = "access_token=$token";
    is($client->post($form, content_type => 'application/x-www-form-urlencoded', token => undef)->{status}, 401, 'a form: 401');
    is($client->post(MCP::Json::encode({ jsonrpc => '2.0', id => 1, method => 'tools/list', access_token => $token, params => { _meta => $meta, access_token => $token } }),
            token => undef, headers => [ @m1, 'Mcp-Method' => 'tools/list' ])->{status}, 401, 'members of the body: 401');
    is($client->get("/mcp?access_token=$token")->{status}, 401, 'GET: 401');
};

subtest 'A07: the token never leaves' => sub {
    my $token = $client->token;
    $stack->connector(
        {
            slug       => 'echo',
            base_url   => $upstream->origin,
            operations => [
                {
                    id          => 'get',
                    method      => 'GET',
                    path        => '/x',
                    description => 'Asks.',
                    parameters  => [ { name => 'q', in => 'query', description => 'q', schema => { type => 'string' } } ]
                },
                {
                    id          => 'post',
                    method      => 'POST',
                    path        => '/x',
                    description => 'Tells.',
                    body        => { content_type => 'application/json', schema => { type => 'object', properties => { a => { type => 'string' } } } }
                }
            ]
        }
    );
    my @stray = (Cookie => 'session=abc', 'X-Api-Key' => 'k-123', 'X-Forwarded-For' => '10.0.0.1', 'Proxy-Authorization' => "Bearer $token", 'Mcp-Param-X' => 'y');
    is(verdict($client->call('echo__get', { q => '1' }, headers => \@stray)), '200/result', 'a GET');
    is(verdict($client->call('echo__post', { a => '1' }, headers => \@stray)), '200/result', 'a POST');
    my @requests = $upstream->requests;
    is(scalar @requests, 2, 'both arrived');
    for my $request (@requests) {
        my $all = MCP::Json::encode($request);
        unlike($all, qr/\Q$token\E/, "$request->{method}: without the token");
        unlike($all, qr/abc|k-123|10\.0\.0\.1|authorization|\bmcp-/i, "$request->{method}: and without any header of the client");
    }
    my @files;
    File::Find::find({ no_chdir => 1, wanted => sub { push @files, $_ if -f } }, $stack->root->path);
    my @with = grep { my $text = MCP::Root::slurp($_); defined $text && index($text, $token) >= 0 } @files;
    cmp_ok(scalar @files, '>', 10, 'the logs, configurations and stores of the test');
    is_deeply(\@with, [], 'do not hold it either');
};

subtest 'A08: the token is asked for before anything else, on every method' => sub {
    my %posts = (
        'garbage'               => ['{'],
        'nothing'               => [q()],
        'a NUL'                 => ["\0"],
        'another type'          => [ 'x', content_type => 'text/plain' ],
        'an Accept of nothing'  => [ '{}', accept => 'text/html' ],
        'a version of nobody'   => [ '{"jsonrpc":"2.0","id":1,"method":"ping"}', headers => [ 'MCP-Protocol-Version' => 'v999' ] ],
        'a batch'               => ['[]'],
        'a notification'        => ['{"jsonrpc":"2.0","method":"notifications/initialized"}'],
        'a response'            => ['{"jsonrpc":"2.0","id":1,"result":{}}'],
        'a session of nobody'   => [ '{"jsonrpc":"2.0","id":1,"method":"ping"}', headers => [ 'Mcp-Session-Id' => 'zzz' ] ],
        'a bad cursor'          => [ '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"zz"}}' ],
        'a call without a name' => [ '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}' ],
        'a legacy handshake'    => [ '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}' ]
    );
    for my $token (undef, 'mcp_' . 'x' x 43) {
        my $whose = defined $token ? 'a token of nobody' : 'no token';
        for my $what (sort keys %posts) {
            my ($body, %how) = @{ $posts{$what} };
            my $answer = $client->post($body, %how, token => $token);
            is($answer->{status}, 401, "$whose, $what: 401");
            ok(challenge($answer), "$whose, $what: with a challenge");
            is(exists challenge($answer)->{error} ? 1 : 0, defined $token ? 1 : 0, "$whose, $what: with an error or none");
        }
        for my $method (qw(GET DELETE PUT PATCH HEAD)) {
            my @auth = defined $token ? (Authorization => "Bearer $token") : ();
            my $answer = $client->request($method, '/mcp', [ @m1, @auth ]);
            is($answer->{status}, 401, "$whose, $method: 401");
            ok(challenge($answer), "$whose, $method: with a challenge");
        }
    }
};

subtest 'A09: what is withheld looks like what never was' => sub {
    $stack->member('other@example.org', 'Member');
    $stack->connection('private', $stack->webdav->port, owner => 'other@example.org');
    my @sent = $stack->upstream_log;
    my $shape = sub {
        my ($name, $arguments) = @_;
        my $answer = $client->call($name, $arguments, id => 1);
        (my $body = $answer->{body}) =~ s/\Q$name\E/NAME/g;
        my %headers = map { $_ => $answer->{headers}{$_} } grep { !/^(?:date|content-length)\z/ } keys %{ $answer->{headers} };
        return [ $answer->{status}, $body, \%headers ];
    };
    my $never = $shape->('nobody__read_file', { path => 'a.txt' });
    is($never->[0], 200, 'a name that never was: 200');
    like($never->[1], qr/"code":-32602,"message":"Unknown tool: NAME"/, 'and -32602');
    is_deeply($shape->('private__read_file', { path => 'a.txt' }), $never, "somebody else's connection");
    is_deeply($shape->('private__lock_file', { path => 'a.txt' }), $never, 'a forbidden operation of it');
    is_deeply($shape->('private__nope', {}), $never, 'an operation that it does not have');
    is_deeply($shape->('webdav__lock_file', { path => 'a.txt', lockinfo => 'x' }), $never, 'a forbidden operation of his own');
    is_deeply($shape->('webdav__lock_file', { wrong => 1 }), $never, 'with arguments that it would refuse');
    my %listed = map { $_ => 1 } MCP::Client::names($client->list);
    ok(!(grep { /^private__|lock_file/ } keys %listed), 'none of them is listed');
    is_deeply([$stack->upstream_log], \@sent, 'and nothing went upstream');
    my $owner = $stack->client(member => 'other@example.org');
    is(verdict($owner->call('private__read_file', { path => 'a.txt' })), '200/result', 'whose it is can use it');
    is_deeply([ $owner->call('private__lock_file', { path => 'a.txt' })->{json}{error}{message} ], ['Unknown tool: private__lock_file'],
        'but for what is forbidden');
};

subtest 'A11: challenges keep the grammar, whatever stands behind them' => sub {
    my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    my $answer = $low->call('webdav__delete_file', { path => 'a.txt' });
    is($answer->{status}, 403, 'a scope that is missing is 403');
    my %answers = (
        '401 without a token' => $client->discover(token => undef),
        '401 with a bad one'  => $client->discover(token => q("\\)),
        '401 with bytes'      => $client->discover(token => "\xc3\xa9,scope=\"x\""),
        '403'                 => $answer
    );
    for my $what (sort keys %answers) {
        my $challenge = challenge($answers{$what}) or fail("$what: can be read"), next;
        pass("$what: can be read");
        my @twice = grep { ref $challenge->{$_} && @{ $challenge->{$_} } != 1 } keys %$challenge;
        is_deeply(\@twice, [], "$what: each attribute once");
        for my $name (grep { ref $challenge->{$_} } keys %$challenge) {
            unlike($challenge->{$name}[0], qr/["\\]|[^\x20-\x7e]/, "$what: $name holds nothing that would have to be escaped");
        }
        is_deeply($challenge->{resource_metadata}, [$metadata], "$what: names the metadata");
    }
    is($stack->file('a.txt'), "hello\n", 'the file is still there');
};

$stack->end;
done_testing;
