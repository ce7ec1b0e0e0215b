# A REST service that nobody here wrote (json-server): JSON bodies and answers, query strings, error statuses, and
# the four kinds of credential as they leave.

use strict;
use warnings;
use Encode qw(encode_utf8);
use Test::More;
use MCP::Json;
use MCP::JsonServer;
use MCP::Node;
use MCP::Stack;
use MCP::Upstream;

my $missing = MCP::Node::missing();
plan skip_all => $missing if defined $missing;

my $stack = MCP::Stack->new(webdav => 0);
my $server = MCP::JsonServer->start(
    root => $stack->root,
    data => {
        notes => [
            { id => 1, title => 'first', stars => 3 },
            { id => 2, title => 'second & third', stars => 5 },
            { id => 3, title => "\x{fc}n\x{ef}c\x{f6}d\x{e9}", stars => 1 }
        ]
    }
);
my $upstream = MCP::Upstream->start(root => $stack->root);
$stack->reconfigure(allow => [$server->origin, $upstream->origin]);
ok $stack->gateway->graceful, 'the gateway learns of the servers by a graceful restart';

my $note = { type => 'object', properties => { title => { type => 'string' }, stars => { type => 'integer' } } };
my $id = { name => 'id', in => 'path', schema => { type => 'string', maxLength => 64 } };
$stack->connector(
    {
        slug       => 'notes',
        base_url   => $server->origin,
        operations => [
            {
                id          => 'list',
                method      => 'GET',
                path        => '/notes',
                description => 'Lists notes.',
                parameters  => [
                    { name => 'title',  in => 'query', schema => { type => 'string' } },
                    { name => '_limit', in => 'query', schema => { type => 'integer', minimum => 1 } },
                    { name => '_sort',  in => 'query', schema => { type => 'string' }, fixed => 'id' },
                    { name => 'id',     in => 'query', schema => { type => 'array', items => { type => 'integer' } } }
                ]
            },
            { id => 'get', method => 'GET', path => '/notes/{id}', description => 'One note.', parameters => [$id] },
            {
                id          => 'create',
                method      => 'POST',
                path        => '/notes',
                description => 'Makes a note.',
                body        => {
                    content_type => 'application/json',
                    required     => MCP::Json::true(),
                    schema       => { %$note, required => ['title'] }
                }
            },
            {
                id          => 'change',
                method      => 'PATCH',
                path        => '/notes/{id}',
                description => 'Changes a note.',
                parameters  => [$id],
                body        => { content_type => 'application/json', required => MCP::Json::true(), schema => $note }
            },
            {
                id          => 'remove',
                method      => 'DELETE',
                path        => '/notes/{id}',
                description => 'Removes a note.',
                parameters  => [$id]
            }
        ]
    }
);
my $client = $stack->client;

# The text of an answer is characters by now.
sub data   { return MCP::Json::decode(encode_utf8(MCP::Client::text($_[0]))) }
sub titles { return [map { $_->{title} } @{ data($_[0]) }] }

is_deeply [MCP::Client::connected($client->list)], [map { "notes__$_" } qw(change create get list remove)],
    'the tools are listed in order';

my $answer = $client->call('notes__list', {});
is_deeply titles($answer), ['first', 'second & third', "\x{fc}n\x{ef}c\x{f6}d\x{e9}"], 'a list comes as JSON text';
$answer = $client->call('notes__list', { title => 'second & third' });
is_deeply titles($answer), ['second & third'], 'a query value with & and blanks arrives whole';
$answer = $client->call('notes__list', { title => "\x{fc}n\x{ef}c\x{f6}d\x{e9}" });
is scalar @{ titles($answer) }, 1, '... and one beyond ASCII';
$answer = $client->call('notes__list', { _limit => 2 });
is scalar @{ titles($answer) }, 2, 'a number arrives';
$answer = $client->call('notes__list', { id => [1, 3] });
is scalar @{ titles($answer) }, 2, 'an array is exploded as OpenAPI says';

$answer = $client->call('notes__get', { id => '2' });
is_deeply $answer->{json}{result}{structuredContent}, { id => 2, title => 'second & third', stars => 5 },
    'an object comes as structured content';
is_deeply data($answer), $answer->{json}{result}{structuredContent}, '... and as text';

$answer = $client->call('notes__create', { title => "line\nbreak \"quoted\"", stars => 9007199254740993 });
ok !defined MCP::Client::code($answer), 'a JSON body is made of flat arguments' or diag MCP::Client::text($answer);
is_deeply [map { $_->{title} } grep { $_->{id} == 4 } @{ $server->data->{notes} }], ["line\nbreak \"quoted\""],
    '... and arrives';
$client->call('notes__change', { id => '1', stars => 4 });
is_deeply [grep { $_->{id} eq '1' } @{ $server->data->{notes} }], [{ id => 1, title => 'first', stars => 4 }],
    'PATCH sends what was given and nothing else';
$client->call('notes__remove', { id => '3' });
is scalar(grep { $_->{id} == 3 } @{ $server->data->{notes} }), 0, 'DELETE deletes';

$answer = $client->call('notes__get', { id => '99' });
is MCP::Client::code($answer), 'upstream_status', 'a 404 of the service is an in-band error';
like MCP::Client::text($answer), qr/404/, '... that tells the status';
is $answer->{status}, 200, '... in an answer that went well';
$answer = $client->call('notes__create', { stars => 1 });
is MCP::Client::code($answer), 'invalid_arguments', 'a body that lacks a required member is not sent';
like MCP::Client::text($answer), qr/title/, '... the error names it';
$answer = $client->call('notes__list', { _limit => 'many' });
is MCP::Client::code($answer), 'invalid_arguments', 'nor is an argument of another type';
$answer = $client->call('notes__list', { limit => 1 });
is MCP::Client::code($answer), 'invalid_arguments', 'nor one that the schema does not know';

my @rows = $stack->calls(tool => 'notes__create');
is_deeply [map { "$_->{outcome} " . ($_->{error_code} || '-') } @rows], ['ok -', 'error invalid_arguments'],
    'the record has both attempts to make a note';
is_deeply $rows[0]{arg_names}, ['stars', 'title'], '... with the names of arguments';
is $rows[0]{upstream_status}, 201, '... and the status of the service';

# Each kind of credential, at an upstream that records what it gets.
my %kinds = (
    header => [
        { type => 'api_key', in => 'header', name => 'X-Api-Key' }, { value => 'k-123' },
        sub { header($_[0], 'X-Api-Key') eq 'k-123' }
    ],
    query => [
        { type => 'api_key', in => 'query', name => 'key' }, { value => 'k 1&2' },
        sub { $_[0]{target} =~ /[?&]key=k%201%262$/ }
    ],
    basic => [
        { type => 'basic' }, { username => 'ada', password => 's:e' },
        sub { header($_[0], 'Authorization') eq 'Basic YWRhOnM6ZQ==' }
    ],
    bearer => [{ type => 'bearer' }, { token => 't-9' }, sub { header($_[0], 'Authorization') eq 'Bearer t-9' }],
);

sub header {
    my ($request, $name) = @_;
    my ($value) = map { $_->[1] } grep { lc $_->[0] eq lc $name } @{ $request->{headers} };
    return defined $value ? $value : q();
}

for my $kind (sort keys %kinds) {
    my ($auth, $credential, $is_right) = @{ $kinds{$kind} };
    $stack->connector(
        {
            slug       => "auth-$kind",
            base_url   => $upstream->origin,
            auth       => $auth,
            operations => [{ id => 'ask', method => 'GET', path => "/$kind", description => 'Asks.' }]
        },
        credential => $credential
    );
    $answer = $client->call("auth-${kind}__ask", {});
    ok !defined MCP::Client::code($answer), "$kind: the call succeeds" or diag MCP::Client::text($answer);
    my ($request) = grep { $_->{target} =~ m{^/$kind} } $upstream->requests;
    ok $request && $is_right->($request), '... with its credential' or diag explain $request;
    my $bytes = MCP::Json::encode($request);
    ok index($bytes, $client->token) < 0, '... and without the token of the caller';
}
my $listing = MCP::Json::encode($stack->ctl(qw(connections list)));
ok index($listing, $_) < 0, 'no listing shows a credential' for ('k-123', 't-9', 's:e');

$stack->watch($server->log);
$stack->end;
done_testing;
