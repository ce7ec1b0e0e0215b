# Results, lists and tool calls: R01 to R11 of the specification's checklist, and the codes of R12.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts raw_id result rpc_code verdict);

my $upstream_root = MCP::Root->new;
my $upstream = MCP::Upstream->start(
    root  => $upstream_root,
    serve => sub {
        my ($request) = @_;
        return MCP::Upstream::json(200, { items => [ { n => 1 }, { n => 2 } ], total => 2 }) if $request->{target} eq '/object';
        return MCP::Upstream::json(200, [1, 2]) if $request->{target} eq '/array';
        return MCP::Upstream::json(200, 'word')  if $request->{target} eq '/word';
        return MCP::Upstream::json(404, { error => 'no such thing' });
    }
);
my $stack = MCP::Stack->new(allow => [$upstream->origin], location => 'MCPListPage 4');
my $client = $stack->client;
my $read_only = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
my $meta = MCP::Json::encode(MCP::Client::meta());
my @seen;    # every modern answer, for R12

$stack->connector(
    {
        slug       => 'shapes',
        base_url   => $upstream->origin,
        operations => [
            map {
                {
                    id          => $_,
                    method      => 'GET',
                    path        => "/$_",
                    description => "Answers /$_.",
                    parameters  => []
                }
            } qw(object array word missing)
        ]
    }
);

sub seen { push @seen, @_; return wantarray ? @_ : $_[-1] }

# All pages of a list, as answers.
sub pages {
    my ($from) = @_;
    my @pages;
    my %params;
    while (1) {
        my $answer = seen($from->mcp('tools/list', {%params}));
        push @pages, $answer;
        my $result = result($answer) or last;
        last if !exists $result->{nextCursor} || @pages > 50;
        %params = (cursor => $result->{nextCursor});
    }
    return @pages;
}

# The bytes of a list's result, but for its cursor, which is sealed anew each time.
sub listed {
    my ($answer) = @_;
    my ($bytes) = $answer->{body} =~ /("result":.*)/s;
    $bytes =~ s/"nextCursor":"[^"]*"/"nextCursor"/;
    return $bytes;
}

sub tools { return map { @{ result($_)->{tools} } } @_ }

my $file = { path => 'a.txt' };

subtest 'R01: every result has its resultType, every tool result its content' => sub {
    my %answers = (
        'server/discover'             => $client->discover,
        'tools/list'                  => $client->list,
        'a file'                      => $client->call('webdav__read_file', $file),
        'an empty body'               => $client->call('webdav__write_file', { path => 'new.txt', content => 'x' }),
        'a file that is not there'    => $client->call('webdav__read_file', { path => 'none.txt' }),
        'arguments that are refused'  => $client->call('webdav__read_file', {}),
        'JSON'                        => $client->call('shapes__object',    {}),
        'an error of the application' => $client->call('shapes__missing',   {})
    );
    for my $what (sort keys %answers) {
        my $result = result(seen($answers{$what}));
        is($result->{resultType}, 'complete', "$what: resultType is complete");
        next if $what =~ m{/};
        is(ref $result->{content}, 'ARRAY', "$what: content is a list");
        for my $block (@{ $result->{content} }) {
            is($block->{type}, 'text', "$what: of text");
            ok(length $block->{text}, "$what: that says something");
        }
    }
    is($stack->file('new.txt'), 'x', 'the file was written');
};

subtest 'R02: caching fields stand on all pages, with one scope' => sub {
    my @pages = pages($client);
    cmp_ok(scalar @pages, '>', 1, 'the list has several pages');
    for my $page (@pages) {
        my $result = result($page);
        like($page->{body}, qr/"ttlMs":\d+[,}]/, 'ttlMs is a number');
        is($result->{ttlMs},      30000,     'of 30 s');
        is($result->{cacheScope}, 'private', 'the scope is private');
        cmp_ok(scalar @{ $result->{tools} }, '<=', 4, 'no page is longer than MCPListPage');
    }
    my @names = map { $_->{name} } tools(@pages);
    my %once = map { $_ => 1 } @names;
    is(scalar keys %once, scalar @names, 'no tool is on two pages');
    is_deeply(\@names, [sort @names], 'the pages together are in order');
    ok($once{'webdav__read_file'} && $once{'webdav__write_file'} && $once{'shapes__word'}, 'and complete');
    my $call = result($client->call('webdav__read_file', $file));
    ok(!exists $call->{ttlMs} && !exists $call->{cacheScope}, 'a call has no caching fields');
};

subtest 'R03: lists that depend on the caller are private' => sub {
    my @all  = pages($client);
    my @less = pages($read_only);
    isnt(join(q( ), map { $_->{name} } tools(@all)), join(q( ), map { $_->{name} } tools(@less)), 'two tokens see two lists');
    is(result($_)->{cacheScope}, 'private', 'which is why they are private') for @all, @less;
};

subtest 'R04: the order is the same each time' => sub {
    my @first = map { listed($_) } pages($client);
    for (1 .. 5) {
        is_deeply([map { listed($_) } pages($client)], \@first, 'the same bytes on each page');
    }
    my $other = MCP::Client->new(url => $client->url, token => $stack->grant('member@example.org')->{token});
    is_deeply([map { $_->{name} } tools(pages($other))], [map { $_->{name} } tools(pages($client))],
        'also through another grant of the same member');
};

subtest 'R05: other calls leave the list alone' => sub {
    my @first = map { listed($_) } pages($client);
    seen($client->call('webdav__read_file', $file));
    seen($client->call('webdav__write_file', { path => 'r05.txt', content => 'x' }));
    seen($client->call('nobody__has_this',   {}));
    is_deeply([map { listed($_) } pages($client)], \@first, 'the same bytes as before on each page');
};

subtest 'R06: a cursor that is none of ours is refused with -32602' => sub {
    my $cursor = result($client->list)->{nextCursor};
    ok(defined $cursor, 'there is a second page') or return;
    my $changed = $cursor;
    substr($changed, 3, 1) = substr($changed, 3, 1) eq 'A' ? 'B' : 'A';
    my %cursors = (
        'two letters'    => 'zz',
        'nothing'        => q(),
        'a number'       => 4,
        'null'           => undef,
        'a list'         => [$cursor],
        'a changed one'  => $changed,
        'a longer one'   => "${cursor}A",
        'a shorter one'  => substr($cursor, 0, -1),
        'a long one'     => 'A' x 10000,
        'bytes and NUL'  => "\x{e9}\x{4e16}"
    );
    for my $what (sort keys %cursors) {
        my $answer = seen($client->mcp('tools/list', { cursor => $cursors{$what} }, id => 9));
        is(rpc_code($answer), -32602, "$what is refused");
        is($answer->{status}, 200, "$what: with 200");
        is(raw_id($answer), 9, "$what: and the id");
    }
    is(rpc_code(seen($read_only->mcp('tools/list', { cursor => $cursor }))), -32602, "another caller's cursor too");
    is(verdict($client->mcp('tools/list', { cursor => $cursor })), '200/result', 'its own is served');
};

subtest 'R07: names and input schemas have their form' => sub {
    my @tools = tools(pages($client));
    cmp_ok(scalar @tools, '>=', 12, 'there are tools');
    for my $tool (@tools) {
        my $name = $tool->{name};
        like($name, qr/^[A-Za-z0-9_-]{1,64}\z/, "$name is a name");
        is($tool->{inputSchema}{type}, 'object', "$name takes an object");
        like($tool->{description}, qr/\S/, "$name is described");
        my $hints = $tool->{annotations};
        is_deeply([sort grep { /Hint$/ } keys %$hints], [qw(destructiveHint idempotentHint openWorldHint readOnlyHint)],
            "$name has its four hints");
        ok(!(grep { ref $hints->{$_} ne 'JSON::PP::Boolean' } grep { /Hint$/ } keys %$hints), "$name: all of them true or false");
    }
    my %tool = map { $_->{name} => $_ } @tools;
    my @hints = (
        [ 'webdav__read_file',   1, 0 ],
        [ 'webdav__list_root',   1, 0 ],
        [ 'webdav__write_file',  0, 0 ],
        [ 'webdav__delete_file', 0, 1 ],
        [ 'webdav__move_file',   0, 1 ]
    );
    for my $row (@hints) {
        my ($name, $reads, $destroys) = @$row;
        is(!!$tool{$name}{annotations}{readOnlyHint}    ? 1 : 0, $reads,    "$name: readOnlyHint as it is classified");
        is(!!$tool{$name}{annotations}{destructiveHint} ? 1 : 0, $destroys, "$name: destructiveHint as it is classified");
    }
    my $empty = $tool{'shapes__object'}{inputSchema};
    is_deeply([ $empty->{additionalProperties}, $empty->{properties} || {}, $empty->{required} || [] ],
        [ MCP::Json::false(), {}, [] ], 'a tool without parameters takes none');
    ok(!exists $tool{'webdav__lock_file'}, 'a forbidden operation is not there');
};

subtest 'R08: an unknown tool is -32602' => sub {
    my @sent = $stack->upstream_log;
    for my $name ('nope', 'webdav__nope', 'webdav__', '__read_file', 'WEBDAV__read_file', 'webdav__read_file ', 'webdav_read_file',
        'webdav__read_file__', 'a' x 64, 'a' x 65, '../webdav__read_file', 'webdav__read_file%00')
    {
        my $answer = seen($client->call($name, {}, id => '"r8"', name_header => $name =~ / $/ ? '=?base64?d2ViZGF2X19yZWFkX2ZpbGUg?=' : $name));
        is(verdict($answer), '200/-32602', "'$name' is refused");
        is(raw_id($answer), '"r8"', "'$name': with the id");
        is($answer->{json}{error}{message}, "Unknown tool: $name", "'$name': and named");
    }
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
};

subtest 'R09: arguments that break the schema are an isError' => sub {
    my @sent = $stack->upstream_log;
    my @cases = (
        # tool, arguments, what the message names
        [ 'webdav__read_file', {}, qr/path/ ],
        [ 'webdav__read_file', { path => 7 }, qr{/path} ],
        [ 'webdav__read_file', { path => undef }, qr{/path} ],
        [ 'webdav__read_file', { path => ['a.txt'] }, qr{/path} ],
        [ 'webdav__read_file', { path => q() }, qr{/path.*minLength}s ],
        [ 'webdav__read_file', { path => 'a' x 1025 }, qr{/path.*maxLength}s ],
        [ 'webdav__read_file', { path => 'a.txt', more => 1 }, qr/additionalProperties/ ],
        [ 'webdav__read_file', { path => 'a.txt', Range => 'lines=1' }, qr{/Range.*pattern}s ],
        [ 'webdav__move_file', { path => 'a.txt', Destination => 'b.txt' }, qr/Overwrite/ ],
        [ 'webdav__move_file', { path => 'a.txt', Destination => 'b.txt', Overwrite => 'X' }, qr{/Overwrite.*enum}s ],
        [ 'webdav__write_file', { path => 'b.txt' }, qr/content/ ],
        [ 'shapes__object', { x => 1 }, qr/additionalProperties/ ]
    );
    for my $case (@cases) {
        my ($tool, $arguments, $names) = @$case;
        my $answer = seen($client->call($tool, $arguments, id => 9));
        my $shown = length MCP::Json::encode($arguments) > 80 ? 'a long one' : MCP::Json::encode($arguments);
        is(verdict($answer), '200/isError', "$tool $shown is refused in-band");
        is(MCP::Client::code($answer), 'invalid_arguments', "$tool $shown: with its code");
        like(MCP::Client::text($answer), $names, "$tool $shown: the message says where and why");
        is(raw_id($answer), 9, "$tool $shown: with the id");
    }
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
    is(verdict($client->mcp('tools/call', { name => 'shapes__object' })), '200/result', 'arguments can be left out where none are needed');
};

subtest 'R10: a call that breaks the shape of tools/call is -32602' => sub {
    my @sent = $stack->upstream_log;
    my %params = (
        'arguments in a list'         => { name => 'webdav__read_file', arguments => [] },
        'arguments as text'           => { name => 'webdav__read_file', arguments => '{"path":"a.txt"}' },
        'arguments null'              => { name => 'webdav__read_file', arguments => undef },
        'no name, arguments in a list' => { arguments => [] },
        'no name'                     => { arguments => {} },
        'a name that is a number'     => { name => 7, arguments => {} },
        'a name that is null'         => { name => undef, arguments => {} },
        'a name in a list'            => { name => ['webdav__read_file'], arguments => {} },
        'an empty name'               => { name => q(), arguments => {} }
    );
    my @rows = attempts($stack, sub {
        for my $what (sort keys %params) {
            my $name = $params{$what}{name};
            my $answer = seen(
                $client->mcp('tools/call', $params{$what}, id => 9, name_header => defined $name && !ref $name && length $name ? $name : undef));
            $answer = seen($client->mcp('tools/call', $params{$what}, id => 9, name_header => q())) if $what eq 'an empty name';
            is(verdict($answer), '200/-32602', "$what: refused");
            is(raw_id($answer), 9, "$what: with the id");
        }
        is(rpc_code(seen($client->call('n' x 5000, {}))), -32602, 'a name without an end: refused');
    });
    is_deeply([$stack->upstream_log], \@sent, 'nothing went upstream');
    is_deeply(\@rows, [], 'none of them is an attempt');
};

subtest 'R11: a structured result is there as text too' => sub {
    my %bodies = (object => { items => [ { n => 1 }, { n => 2 } ], total => 2 }, array => [1, 2], word => 'word');
    for my $what (sort keys %bodies) {
        my $result = result(seen($client->call("shapes__$what", {})));
        is_deeply($result->{structuredContent}, $bodies{$what}, "$what: structuredContent is the body");
        is_deeply(MCP::Json::decode($result->{content}[0]{text}), $bodies{$what}, "$what: its text is the body");
        is(scalar @{ $result->{content} }, 1, "$what: once");
        ok(!$result->{isError}, "$what: and no error");
    }
    my $plain = result(seen($client->call('webdav__read_file', $file)));
    is($plain->{content}[0]{text}, $stack->file('a.txt'), 'a text file is its text');
    ok(!exists $plain->{structuredContent}, 'and nothing structured');
};

subtest 'R12: no answer to a modern request has a code that the revision does not define' => sub {
    my @codes = grep { defined } map { rpc_code($_) } @seen;
    cmp_ok(scalar @codes, '>', 20, 'there were errors');
    my @wrong = grep { $_ >= -32099 && $_ <= -32000 && $_ != -32020 && $_ != -32021 && $_ != -32022 } @codes;
    is_deeply(\@wrong, [], 'each of them allowed');
};

$stack->end;
done_testing;
