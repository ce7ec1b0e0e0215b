# One POST and its headers: T01 to T27 of the specification's checklist. Without subscriptions, which T25 also
# speaks of.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Verdict qw(raw_id result rpc_code verdict);

my $stack = MCP::Stack->new(location => "MCPAllowOrigin https://console.example.org\nMCPMaxBody 64K\n");
my $client = $stack->client;
my @m1 = ('MCP-Protocol-Version' => '2026-07-28');
my $meta = MCP::Json::encode(MCP::Client::meta());
my $tool = 'webdav__read_file';

$stack->file('a.txt', "first\n");

# A request of 2026-07-28 with this JSON text as its id.
sub with_id { return $client->list(id => $_[0]) }

sub header { return MCP::Client::header(@_) }

# The bytes of one POST of a tools/list; `lines` are the header lines after Authorization, as they stand.
sub bytes {
    my ($lines, $body, $length) = @_;
    $body = qq({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}}) if !defined $body;
    return join("\r\n",
        'POST /mcp HTTP/1.1',
        'Host: 127.0.0.1:' . $stack->gateway->port,
        'Authorization: Bearer ' . $client->token,
        'Connection: close', @$lines, defined $length ? $length : 'Content-Length: ' . length $body,
        q(), q())
        . $body;
}

my @usual = ('Content-Type: application/json', 'Accept: application/json, text/event-stream');

# As MCP::Client, which reads the JSON of an answer.
sub raw {
    my ($bytes) = @_;
    my $answer = $client->raw($bytes);
    $answer->{json} = eval { MCP::Json::decode($answer->{body}) } if defined $answer && length $answer->{body};
    return $answer;
}

subtest 'T01: a request is answered with one JSON object' => sub {
    my $answer = $client->list;
    is(verdict($answer), '200/result', 'tools/list is served');
    is(header($answer, 'Content-Type'), 'application/json', 'as application/json');
    is(header($answer, 'Content-Length'), length $answer->{body}, 'with its length');
    is(header($answer, 'Cache-Control'), 'no-store', 'and no cache may keep it');
    is_deeply([sort keys %{ $answer->{json} }], [qw(id jsonrpc result)], 'the object is a response and nothing else');
    is($answer->{json}{jsonrpc}, '2.0', 'of JSON-RPC 2.0');
};

subtest 'T02: the id of the answer is the id of the request, byte for byte' => sub {
    for my $id (
        '"a\"b"', '9007199254740993', '9223372036854775807', '-9223372036854775808', '0', '-1', '""', '"1"', '"\u0041"',
        '"\/"', '" "', "\"\xc3\xa9\xe4\xb8\x96\"", '"null"', '"' . ('x' x 200) . '"'
    ) {
        my $answer = with_id($id);
        is(verdict($answer), '200/result', "$id is served");
        is(raw_id($answer), $id, "$id comes back");
    }
    my $answer = $client->mcp('no/such', {}, id => '"a\"b"');
    is(raw_id($answer), '"a\"b"', 'an error has it too');
    $answer = $client->call('nobody__has_this', {}, id => '9007199254740993');
    is(raw_id($answer), '9007199254740993', 'and the error of a tool');
    $answer = $client->call($tool, { path => 'a.txt' }, id => '"q\\\\"');
    is(raw_id($answer), '"q\\\\"', 'and the result of a tool');
};

subtest 'T03: a null, fractional or boolean id is refused with 400 and -32600' => sub {
    for my $id (qw(null 1.5 1.0 1e2 -0.5 true false {} [] ["1"])) {
        my $answer = with_id($id);
        is(verdict($answer), '400/-32600', "$id is refused");
        is(raw_id($answer), undef, "$id is not echoed");
    }
    my $answer = $client->post(qq({"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","params":{"_meta":$meta}}),
        headers => [@m1, 'Mcp-Method' => 'tools/list']);
    is(verdict($answer), '400/-32600', 'two ids are refused');
    is(raw_id($answer), undef, 'and neither is echoed');
    $answer = $client->post(qq({"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"tools/list","params":{"_meta":$meta}}),
        headers => [@m1, 'Mcp-Method' => 'tools/list']);
    is(verdict($answer), '400/-32600', 'also where one is spelt with an escape');
    is(verdict(with_id('"' . ('x' x 5000) . '"')), '400/-32600', 'an endless id is refused');
    is(verdict(with_id('1')), '200/result', 'the endpoint goes on serving');
};

subtest 'T04: what is no JSON is refused with 400 and -32700' => sub {
    my $deep = 100;
    my %bodies = (
        'an open brace'          => '{',
        'nothing'                => q(),
        'blanks'                 => " \n",
        'a word'                 => 'hello',
        'a second value'         => qq({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}}{}),
        'a trailing comma'       => qq({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta},}),
        'single quotes'          => q({'jsonrpc':'2.0'}),
        'a comment'              => qq(/**/{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}}),
        'NaN'                    => q({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":NaN}}),
        'a byte order mark'      => qq(\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}}),
        'UTF-16'                 => "\xfe\xff\0{\0}",
        'a raw NUL'              => qq({"jsonrpc":"2.0","id":1,"method":"tools/\0list","params":{"_meta":$meta}}),
        'a NUL behind the end'   => qq({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}}\0),
        'a raw line feed'        => qq({"jsonrpc":"2.0","id":1,"method":"tools/\nlist","params":{"_meta":$meta}}),
        'bad UTF-8'              => qq({"jsonrpc":"2.0","id":1,"method":"tools/\xfflist","params":{"_meta":$meta}}),
        'overlong UTF-8'         => qq({"jsonrpc":"2.0","id":1,"method":"tools\xc0\xaflist","params":{"_meta":$meta}}),
        'a surrogate in UTF-8'   => qq({"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80","params":{"_meta":$meta}}),
        'half a surrogate pair'  => qq({"jsonrpc":"2.0","id":1,"method":"\\ud800","params":{"_meta":$meta}}),
        'too deep an array'      => '{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":' . ('[' x $deep) . (']' x $deep) . '}}',
        'depth without an end'   => '[' x 60000,
        'a number beyond 64 bit' => '{"jsonrpc":"2.0","id":18446744073709551616,"method":"tools/list"}'
    );
    for my $what (sort keys %bodies) {
        my $answer = $client->post($bodies{$what}, headers => [@m1, 'Mcp-Method' => 'tools/list']);
        is(verdict($answer), '400/-32700', "$what is refused");
        ok(!exists $answer->{json}{id}, "$what: without an id");
    }
};

subtest 'T05: another jsonrpc than "2.0" is refused with 400 and -32600' => sub {
    for my $version ('"1.0"', '2.0', '2', '"2.0 "', '"2"', 'null', '["2.0"]') {
        my $answer = $client->post(qq({"jsonrpc":$version,"id":7,"method":"tools/list","params":{"_meta":$meta}}),
            headers => [@m1, 'Mcp-Method' => 'tools/list']);
        is(verdict($answer), '400/-32600', "$version is refused");
        is(raw_id($answer), 7, "$version: the id is echoed");
    }
    my %bodies = (
        'no jsonrpc'         => qq({"id":7,"method":"tools/list","params":{"_meta":$meta}}),
        'no method'          => qq({"jsonrpc":"2.0","id":7,"params":{"_meta":$meta}}),
        'a numeric method'   => qq({"jsonrpc":"2.0","id":7,"method":7,"params":{"_meta":$meta}}),
        'params in an array' => qq({"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}),
        'params null'        => qq({"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}),
        'method and result'  => qq({"jsonrpc":"2.0","id":7,"method":"tools/list","result":{},"params":{"_meta":$meta}}),
        'two methods'        => qq({"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call","params":{"_meta":$meta}}),
        'two params'         => qq({"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":$meta},"params":{}}),
        'two cases of method'  => qq({"jsonrpc":"2.0","id":7,"method":"tools/list","Method":"tools/call","params":{"_meta":$meta}}),
        'two names'            => qq({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","name":"c__d","_meta":$meta}}),
        'two cases of a name'  => qq({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","Name":"c__d","_meta":$meta}})
    );
    for my $what (sort keys %bodies) {
        my $answer = $client->post($bodies{$what}, headers => [@m1, 'Mcp-Method' => 'tools/list']);
        is(verdict($answer), '400/-32600', "$what is refused");
        is(raw_id($answer), 7, "$what: the id is echoed");
    }
    for my $body ('1', '"x"', 'null', 'true') {
        is(verdict($client->post($body, headers => \@m1)), '400/-32600', "a body of $body is refused");
    }
};

subtest 'T06: an unknown method is 404 and -32601' => sub {
    for my $method ('no/such', 'tools/List', 'tools', 'tools/list ', q(), 'tools/call2', 'rpc.discover') {
        my $answer = $client->mcp($method, {}, id => '"x7"');
        $answer = $client->mcp($method, {}, id => '"x7"', method_header => "=?base64?dG9vbHMvbGlzdCA=?=")
            if $method eq 'tools/list ';
        # a header value can't end in a blank, so this one can't be mirrored
        my $wanted = $method eq 'tools/list ' ? '400/-32020' : '404/-32601';
        is(verdict($answer), $wanted, "'$method' is $wanted");
        is(raw_id($answer), '"x7"', "'$method': the id is echoed");
    }
};

subtest 'T07: methods that this revision removed are 404 when they come in its envelope' => sub {
    for my $method (qw(initialize ping logging/setLevel resources/subscribe resources/unsubscribe)) {
        my $answer = $client->mcp($method, { protocolVersion => '2026-07-28' }, id => 4);
        is(verdict($answer), '404/-32601', "$method is 404");
        is(raw_id($answer), 4, "$method: the id is echoed");
        is(header($answer, 'Mcp-Session-Id'), undef, "$method: no session is opened");
    }
};

subtest 'T08: methods of capabilities that are not advertised are 404' => sub {
    my $capabilities = result($client->discover)->{capabilities};
    my %methods = (
        'prompts/list'             => 'prompts',
        'prompts/get'              => 'prompts',
        'resources/list'           => 'resources',
        'resources/templates/list' => 'resources',
        'resources/read'           => 'resources',
        'completion/complete'      => 'completions'
    );
    for my $method (sort keys %methods) {
        ok(!exists $capabilities->{ $methods{$method} }, "$methods{$method} is not advertised");
        is(verdict($client->mcp($method, { name => 'x', uri => 'x:y' })), '404/-32601', "$method is 404");
    }
};

subtest 'T09: Mcp-Method is needed' => sub {
    my $answer = $client->list(method_header => undef, id => 3);
    is(verdict($answer), '400/-32020', 'tools/list without it is refused');
    is(raw_id($answer), 3, 'with the id');
    is(verdict($client->discover(method_header => undef)), '400/-32020', 'server/discover without it too');
    is(verdict($client->call($tool, { path => 'a.txt' }, method_header => undef)), '400/-32020', 'and tools/call');
    is(verdict($client->list(method_header => q())), '400/-32020', 'empty is not there');
};

subtest 'T10: Mcp-Method has to be the method of the body' => sub {
    my $answer = $client->list(method_header => 'prompts/list', id => 3);
    is(verdict($answer), '400/-32020', 'another method is refused');
    is(raw_id($answer), 3, 'with the id');
    is(verdict($client->call($tool, { path => 'a.txt' }, method_header => 'tools/list')), '400/-32020',
        'a call can not travel as a list');
    is(verdict($client->list(method_header => 'tools/list/')), '400/-32020', 'one byte more is another method');
    is(verdict($client->list(method_header => "tools/list\xc3\xa9")), '400/-32020', 'bytes beyond ASCII too');
};

subtest 'T11: the value of Mcp-Method is compared with its case' => sub {
    is(verdict($client->list(method_header => 'TOOLS/LIST')), '400/-32020', 'TOOLS/LIST is refused');
    is(verdict($client->list(method_header => 'Tools/list')), '400/-32020', 'Tools/list is refused');
};

subtest 'T12: the name of a header is compared without its case' => sub {
    for my $name ('MCP-METHOD', 'mcp-method', 'mCP-mETHOD') {
        my $answer = $client->list(method_header => undef, headers => [$name => 'tools/list']);
        is(verdict($answer), '200/result', "$name is Mcp-Method");
    }
    is(verdict($client->list(version => undef, headers => ['mcp-protocol-version' => '2026-07-28'])),
        '200/result', 'mcp-protocol-version is MCP-Protocol-Version');
    is(verdict($client->call($tool, { path => 'a.txt' }, name_header => undef, headers => ['MCP-NAME' => $tool])),
        '200/result', 'MCP-NAME is Mcp-Name');
};

subtest 'T13: Mcp-Name is needed on tools/call' => sub {
    my @sent = $stack->upstream_log;
    my $answer = $client->call($tool, { path => 'a.txt' }, name_header => undef, id => 3);
    is(verdict($answer), '400/-32020', 'a call without it is refused');
    is(raw_id($answer), 3, 'with the id');
    is(verdict($client->call($tool, { path => 'a.txt' }, name_header => q())), '400/-32020', 'empty is not the name');
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
    is(verdict($client->list(headers => ['Mcp-Name' => 'stray'])), '200/result', 'tools/list has no use for one');
    is(verdict($client->mcp('tools/call', { arguments => {} }, name_header => undef)),
        '200/-32602', 'a call that names no tool hears about its params, not about the header');
};

subtest 'T14: Mcp-Name has to be the name of the body' => sub {
    my @sent = $stack->upstream_log;
    for my $name ('other', 'webdav__delete_file', 'WEBDAV__READ_FILE', "${tool}s", 'webdav__read_fil', "$tool,", "$tool, $tool") {
        my $answer = $client->call($tool, { path => 'a.txt' }, name_header => $name);
        is(verdict($answer), '400/-32020', "'$name' is refused");
    }
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
    is(verdict($client->call($tool, { path => 'a.txt' }, name_header => $tool)), '200/result', 'the right one is served');
};

subtest 'T15: blanks around a header value do not count' => sub {
    for my $blanks ([ '  ', '  ' ], [ "\t", "\t " ], [ q(), q() ], [ q(), "\t\t" ]) {
        my ($before, $behind) = @$blanks;
        my $body = sprintf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"path":"a.txt"},"_meta":%s}}',
            $tool, $meta;
        my $answer = raw(
            bytes(
                [
                    @usual, "MCP-Protocol-Version:${before}2026-07-28$behind",
                    "Mcp-Method:${before}tools/call$behind", "Mcp-Name:$before$tool$behind"
                ],
                $body
            )
        );
        (my $shown = "'$before' and '$behind'") =~ s/\t/\\t/g;
        is(verdict($answer), '200/result', "$shown around all three");
    }
    is(verdict($client->list(method_header => 'tools /list')), '400/-32020', 'a blank inside counts');
};

subtest 'T16: an encoded Mcp-Name is decoded' => sub {
    for my $text ('d2ViZGF2X19yZWFkX2ZpbGU=') {
        is(verdict($client->call($tool, { path => 'a.txt' }, name_header => "=?base64?$text?=")),
            '200/result', "$text is $tool");
    }
    is(verdict($client->call($tool, { path => 'a.txt' }, name_header => '=?base64?d2ViZGF2X19kZWxldGVfZmlsZQ==?=')),
        '400/-32020', 'another name in base64 is another name');
    # names that can only travel encoded reach the check of names
    is(verdict($client->call("caf\x{e9}", {}, name_header => '=?base64?Y2Fmw6k=?=')), '200/-32602', 'UTF-8 is compared decoded');
    is(verdict($client->call(' padded ', {}, name_header => '=?base64?IHBhZGRlZCA=?=')), '200/-32602', 'blanks too');
    is(verdict($client->call('=?base64?literal?=', {}, name_header => '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=')),
        '200/-32602', 'and a name that looks encoded');
    is(verdict($client->call('=?base64?literal?=', {}, name_header => '=?base64?literal?=')),
        '400/-32020', 'which does not stand for itself');
};

subtest 'T17: a broken encoding is refused' => sub {
    my @sent = $stack->upstream_log;
    for my $value (
        '=?base64?c2VhcmNo!!?=',            '=?base64?SGVsbG8?=',
        '=?base64?d2ViZGF2X19yZWFkX2ZpbGU?=', '=?base64?d2ViZGF2X19yZWFkX2ZpbGU=',
        '=?BASE64?d2ViZGF2X19yZWFkX2ZpbGU=?=', '=?base64?d2ViZGF2X19yZWFkX2ZpbGV=?=',
        '=?base64? d2ViZGF2X19yZWFkX2ZpbGU=?=', '=?base64?d2ViZGF2X19yZWFkX2ZpbGU==?=',
        '=?base64?d2ViZGF2X19yZWFkX2ZpbGU=AA==?=', 'd2ViZGF2X19yZWFkX2ZpbGU=', '=?base64?', '=?base64?=', '=?base64?/w==?=',
        '=?base64??='
    ) {
        is(verdict($client->call($tool, { path => 'a.txt' }, name_header => $value)), '400/-32020', "$value is refused");
    }
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
};

subtest 'T18: the version header is needed beside a modern envelope' => sub {
    my $answer = $client->list(version => undef, id => 3);
    is(verdict($answer), '400/-32020', 'tools/list without it is refused, not served as legacy');
    is(raw_id($answer), 3, 'with the id');
    is(verdict($client->mcp('initialize', { protocolVersion => '2025-11-25' }, version => undef)),
        '400/-32020', 'initialize in a modern envelope too');
    is(verdict($client->list(version => q())), '400/-32020', 'empty is not there');
};

subtest 'T19: the version header has to be the version of the envelope' => sub {
    for my $version ('2025-11-25', '2025-06-18', 'v999', '2026-07-28x', '2026-07-2', '2026-7-28') {
        my $answer = $client->list(version => $version, id => 3);
        is(verdict($answer), '400/-32020', "$version is refused");
        is(raw_id($answer), 3, "$version: with the id");
    }
    is(verdict($client->list(meta => MCP::Client::meta(version => '2025-11-25'))), '400/-32020', 'the other way round too');
};

subtest 'T20: a standard header that is there twice is refused' => sub {
    my @sent = $stack->upstream_log;
    for my $pair ([ 'Mcp-Method' => 'tools/call' ], [ 'Mcp-Method' => 'tools/list' ],
        [ 'MCP-Protocol-Version' => '2026-07-28' ], [ 'MCP-Protocol-Version' => '2025-11-25' ], [ 'Mcp-Method' => q() ])
    {
        is(verdict($client->list(headers => [@$pair])), '400/-32020', "a second $pair->[0]: '$pair->[1]' is refused");
    }
    for my $name ($tool, 'other', q()) {
        is(verdict($client->call($tool, { path => 'a.txt' }, headers => ['Mcp-Name' => $name])),
            '400/-32020', "a second Mcp-Name: '$name' is refused");
    }
    # joined by httpd, two headers can spell the name of the body
    is(verdict($client->call('a, b', {}, name_header => 'a', headers => ['Mcp-Name' => 'b'])),
        '400/-32020', 'two that together make the name are two');
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
};

subtest 'T21: batches and posted responses are refused' => sub {
    my $batch = '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]';
    is(verdict($client->post($batch, headers => \@m1)), '400/-32600', 'a batch');
    is(verdict($client->post('[]', headers => \@m1)), '400/-32600', 'an empty one');
    is(verdict($client->post(qq([{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}}]))),
        '400/-32600', 'a batch with a modern envelope in it, without a header');
    is(verdict($client->post('{"jsonrpc":"2.0","id":1,"result":{}}', headers => \@m1)), '400/-32600', 'a result');
    is(verdict($client->post('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}', headers => \@m1)),
        '400/-32600', 'an error');
};

subtest 'T22: a notification is accepted and has no answer' => sub {
    my @bodies = (
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        '{"jsonrpc":"2.0","method":"notifications/nobody/knows","params":{}}',
        qq({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"_meta":$meta}}),
        qq({"jsonrpc":"2.0","method":"tools/call","params":{"name":"$tool","arguments":{"path":"a.txt"},"_meta":$meta}})
    );
    my @sent = $stack->upstream_log;
    for my $body (@bodies) {
        my $answer = $client->post($body, headers => \@m1);
        is($answer->{status}, 202, 'it is accepted');
        is($answer->{body}, q(), 'without a body');
        is(header($answer, 'Content-Type'), undef, 'or a type of one');
    }
    is_deeply([$stack->upstream_log], \@sent, 'none of them ran anything');
    is(
        verdict($client->post($bodies[0], headers => ['MCP-Protocol-Version' => 'v999'])),
        '400/-32022', 'a version that nobody serves is refused'
    );
    is(verdict($client->post('{"jsonrpc":"1.0","method":"notifications/cancelled"}', headers => \@m1)),
        '400/-32600', 'a broken one too');
    is(verdict($client->post('{"jsonrpc":"2.0","id":null,"method":"notifications/cancelled"}', headers => \@m1)),
        '400/-32600', 'with an id it is none');
};

subtest 'T23: a foreign Origin is refused with 403' => sub {
    my $port = $stack->gateway->port;
    my @sent = $stack->upstream_log;
    for my $origin (
        'https://evil.example', 'null', 'http://evil.example', "http://127.0.0.1.evil.example:$port", "https://127.0.0.1:$port",
        'http://127.0.0.1:1', 'http://console.example.org', 'https://console.example.org.evil.example',
        'https://console.example.org:444', 'https://a.console.example.org', "http://127.0.0.1:$port/", 'x', q(),
        "http://127.0.0.1:$port, https://evil.example", "http://127.0.0.1:$port\@evil.example", '*', 'file://'
    ) {
        my $answer = $client->list(headers => [Origin => $origin]);
        is($answer->{status}, 403, "'$origin' is refused");
        is(header($answer, 'Access-Control-Allow-Origin'), undef, "'$origin' is not allowed to read the answer");
    }
    is($client->list(headers => [Origin => 'https://evil.example'], token => undef)->{status}, 403, 'before the token is asked for');
    is($client->call('webdav__delete_file', { path => 'a.txt' }, headers => [Origin => 'null'])->{status}, 403, 'a call as well');
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
    for my $origin ("http://127.0.0.1:$port", "http://localhost:$port", "http://[::1]:$port", 'https://console.example.org',
        'HTTPS://Console.Example.org', 'https://console.example.org:443')
    {
        my $answer = $client->list(headers => [Origin => $origin]);
        is(verdict($answer), '200/result', "$origin is served");
        is(header($answer, 'Access-Control-Allow-Origin'), $origin, "$origin may read the answer");
        like(header($answer, 'Vary'), qr/\bOrigin\b/, "$origin: a cache has to tell origins apart");
    }
    is($client->list(headers => [ Host => 'evil.example', Origin => 'http://evil.example' ])->{status}, 403, 'a forged Host does not make an origin our own');
    is(verdict($client->list), '200/result', 'without Origin the request is served');
};

subtest 'T24: another content type is refused with 415' => sub {
    for my $type (
        'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', undef, q(), 'application/jsonx',
        'application/jso', 'application', 'text/json', 'application/json-rpc', 'text/plain; application/json',
        'text/plain, application/json'
    ) {
        my $answer = $client->list(content_type => $type);
        is($answer->{status}, 415, sprintf '%s is refused', defined $type ? "'$type'" : 'no type');
    }
    for my $type ('application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset="UTF-8"', 'application/json ; x=y') {
        is(verdict($client->list(content_type => $type)), '200/result', "'$type' is served");
    }
};

subtest 'T25: Accept has to allow an answer' => sub {
    for my $accept ('*/*', 'application/*', 'application/json', 'text/event-stream', 'text/html, */*;q=0.1', undef, 'APPLICATION/JSON',
        'application/json;q=0.5, text/event-stream')
    {
        is(verdict($client->list(accept => $accept)), '200/result', sprintf '%s is served', defined $accept ? "'$accept'" : 'none');
    }
    for my $accept ('text/html', 'application/xml, text/plain', 'application/jsonx', 'image/*') {
        is($client->list(accept => $accept)->{status}, 406, "'$accept' is refused with 406");
    }
    my $two = raw(bytes(['Content-Type: application/json', 'Accept: application/json', 'Accept: text/event-stream',
                "$m1[0]: $m1[1]", 'Mcp-Method: tools/list']));
    is(verdict($two), '200/result', 'two Accept headers are one list');
};

subtest 'T26: GET and DELETE are 405 with Allow' => sub {
    for my $method (qw(GET DELETE PUT PATCH)) {
        my $answer = $client->request($method, '/mcp', [@m1, Authorization => 'Bearer ' . $client->token, Accept => 'text/event-stream']);
        is($answer->{status}, 405, "$method is 405");
        like(header($answer, 'Allow'), qr/\bPOST\b/, "$method: POST is allowed");
        unlike(header($answer, 'Allow'), qr/\bGET\b|\bDELETE\b/, "$method: GET and DELETE are not");
    }
    my $trace = $client->request('TRACE', '/mcp', [@m1, Authorization => 'Bearer ' . $client->token]);
    is($trace->{status}, 405, 'TRACE is 405 too: nothing is echoed');
    like(header($trace, 'Allow'), qr/\bPOST\b/, 'with Allow');
    unlike($trace->{body}, qr/Bearer/, 'and without the token');
    is($client->request('TRACE', '/mcp', [@m1])->{status}, 401, 'without a token, TRACE is 401');
};

subtest 'T27: Mcp-Session-Id and Last-Event-ID are ignored, and no session is minted' => sub {
    my $session = $client->legacy('initialize', { protocolVersion => '2025-06-18', capabilities => {}, clientInfo => {} });
    my $real = header($session, 'Mcp-Session-Id');
    ok(defined $real, 'a legacy handshake opens a session') or return;
    for my $id ('zzz', q(), $real, "$real, $real") {
        my $answer = $client->list(headers => ['Mcp-Session-Id' => $id, 'Last-Event-ID' => 5]);
        is(verdict($answer), '200/result', 'tools/list is served');
        is(header($answer, 'Mcp-Session-Id'), undef, 'without a session');
        ok(exists result($answer)->{resultType}, 'as a modern request');
    }
    my $answer = $client->discover(headers => ['Mcp-Session-Id' => $real]);
    is(header($answer, 'Mcp-Session-Id'), undef, 'server/discover mints none either');
};

# --- what the checklist does not name ------------------------------------------------

subtest 'bodies: chunks, lengths and limits' => sub {
    my $body = qq({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":$meta}});
    my @lines = (@usual, "$m1[0]: $m1[1]", 'Mcp-Method: tools/list');
    my $chunked = sub { join q(), map { sprintf("%x\r\n%s\r\n", length $_, $_) } @_, q() };

    is(verdict(raw(bytes(\@lines, $chunked->(split //, $body), 'Transfer-Encoding: chunked'))), '200/result',
        'chunks of a byte each are a body');
    is(verdict(raw(bytes(\@lines, $chunked->('{'), 'Transfer-Encoding: chunked'))), '400/-32700', 'a chunked fragment is none');
    is(raw(bytes(\@lines, $body, 'Content-Length: 70000'))->{status}, 413, 'a length beyond MCPMaxBody is 413 before the body came');
    my $pad = ' ' x 1024;
    is(raw(bytes(\@lines, $chunked->($body, ($pad) x 70), 'Transfer-Encoding: chunked'))->{status}, 413,
        'chunks beyond it are 413');
    is(verdict(raw(bytes(\@lines, $body . (' ' x (65536 - length $body))))), '200/result', 'exactly MCPMaxBody is served');
    is(raw(bytes(\@lines, $body . (' ' x (65537 - length $body))))->{status}, 413, 'one byte more is not');
    is(raw(bytes(\@lines, "5\r\n{\"a\":\r\nzz\r\n", 'Transfer-Encoding: chunked'))->{status}, 400, 'a broken chunk is 400');
    is(raw(bytes(\@lines, $body, 'Content-Length: -1'))->{status}, 400, 'a negative length is 400');
    is(raw(bytes([@lines, 'Transfer-Encoding: chunked'], $chunked->($body), 'Content-Length: 4'))->{status}, 200,
        'a length beside chunks does not cut the body');
};

subtest 'a refused body does not become the next request of its connection' => sub {
    my $smuggled = "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    my $kept = MCP::Client->new(url => $client->url, token => $client->token, keep => 1);
    for my $case ([ 401, token => undef ], [ 415, content_type => 'text/plain' ], [ 403, headers => [ Origin => 'null' ] ]) {
        my ($status, %how) = @$case;
        is($kept->post($smuggled, %how)->{status}, $status, "$status with a body");
        is(verdict($kept->list(id => '"next"')), '200/result', "after $status the next request is the next request");
    }
    $kept->hang_up;
};

subtest 'bytes in mirrored headers' => sub {
    for my $byte ("\x01", "\x7f", "\x80", "\xff") {
        my $answer = raw(bytes([@usual, "$m1[0]: $m1[1]", "Mcp-Method: tools/list$byte"]));
        is($answer->{status}, 400, sprintf '0x%02x is refused', ord $byte);
    }
    is(raw(bytes([@usual, "$m1[0]: $m1[1]", 'Mcp-Method : tools/list']))->{status}, 400, 'a blank before the colon is refused');
};

$stack->end;
done_testing;
