# What an earlier review asked for: what is fixed, frozen or secret is not said a second time under another spelling; a frozen key's
# name is nowhere to be read; odd methods and odd paths get a plain answer.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(result verdict);

my $yes = MCP::Json::true();
my $stack = MCP::Stack->new(webdav => 0, server => "<Location /api/v1>\nMCPApi On\n</Location>\n");
my $upstream = MCP::Upstream->start(root => $stack->root);
$stack->reconfigure(allow => [ $upstream->origin ]);
$stack->gateway->graceful;
my $member = $stack->client;

sub sent { return scalar(my @all = $upstream->requests) }
sub newest { return ($upstream->requests)[-1] }
sub code { return MCP::Client::code($_[0]) }
sub tool { my ($name) = @_; return (grep { $_->{name} eq $name } @{ result($member->list)->{tools} })[0] }

my $text = { type => 'string' };
my $open = { type => 'object', additionalProperties => $text };
my $secret = 'k3y-of-the-gateway';

# Each is refused in-band, with a word of neither the value nor the other name, and nothing leaves.
sub refused {
    my ($name, $unsaid, @arguments) = @_;
    for my $arguments (@arguments) {
        my $mark = sent();
        my $answer = $member->call($name, $arguments);
        my $what = "$name " . MCP::Json::encode($arguments);
        is(code($answer), 'invalid_arguments', "$what is refused");
        unlike($answer->{body}, $unsaid, "$what: the answer says nothing of what is there already");
        is(sent(), $mark, "$what: nothing is sent");
    }
    return;
}

# --- the credential -----------------------------------------------------------------------------

my @open_query = (
    { name => 'extra',  in => 'query', schema => $open },
    { name => 'filter', in => 'query', style => 'deepObject', schema => $open },
    { name => 'list',   in => 'query', schema => { type => 'array', items => $text } }
);
for my $place ([ 'inquery', 'key' ], [ 'inbrackets', 'filter[key]' ]) {
    my ($slug, $name) = @$place;
    $stack->connector(
        {
            slug       => $slug,
            base_url   => $upstream->origin . "/$slug",
            auth       => { type => 'api_key', in => 'query', name => $name },
            operations => [
                { id => 'find', method => 'GET', path => '/find', description => 'Finds.', parameters => \@open_query }
            ]
        },
        credential => { value => $secret }
    );
}

subtest 'a credential in the query is not said twice' => sub {
    my $answer = $member->call('inquery__find', { extra => { a => 'b' }, filter => { c => 'd' }, list => ['e'] });
    is(verdict($answer), '200/result', 'other keys go out');
    is_deeply([ sort split /&/, newest()->{target} =~ s/^[^?]*\?//r ], [ sort "key=$secret", 'a=b', 'filter%5Bc%5D=d', 'list=e' ], 'beside the credential');
    refused('inquery__find', qr/\Q$secret\E|credential/, map { { extra => { $_ => 'evil' } } } 'key', 'KEY', 'Key', 'key[]', 'key[0]', ' key', '[key]');
    refused('inbrackets__find', qr/\Q$secret\E|credential/, (map { { filter => { $_ => 'evil' } } } 'key', 'KEY', 'key]['), (map { { extra => { $_ => 'evil' } } } 'filter[key]', 'FILTER[key]', 'filter[key][]'));
};

# --- what is frozen or fixed ------------------------------------------------------------------------

my $form = { type => 'object', properties => { tenant => $text, note => $text }, additionalProperties => $text };
my %rules = (
    type              => 'object',
    properties        => { tenant => $text, note => $text, kind => $text },
    required          => [qw(tenant note)],
    propertyNames     => { enum => [qw(tenant note kind other)] },
    patternProperties => { '^tenant$' => $text, '^(?:tenant|region)$' => $text, '^oth' => $text },
    dependentRequired => { tenant => ['kind'], note => ['tenant'], kind => [qw(tenant note)] },
    dependentSchemas  => { tenant => { required => ['note'] } },
    allOf             => [ { required => ['tenant'] }, { properties => { tenant => { minLength => 1 } } } ]
);
$stack->connector(
    {
        slug       => 'crm',
        base_url   => $upstream->origin . '/crm',
        operations => [
            { id => 'search', method => 'GET', path => '/search', description => 'Searches.', parameters => [ { name => 'tenant', in => 'query', schema => $text }, { name => 'realm', in => 'query', schema => $text, fixed => 'ours' }, @open_query ] },
            { id => 'literal', method => 'GET', path => '/literal?tenant=ours', description => 'Searches.', parameters => \@open_query },
            (map { { id => $_->[0], method => 'POST', path => "/$_->[0]", description => 'Sends.', body => { content_type => $_->[1], schema => $form } } } [ 'form', 'application/x-www-form-urlencoded' ], [ 'parts', 'multipart/form-data' ]),
            { id => 'put', method => 'PUT', path => '/put', description => 'Puts.', body => { content_type => 'application/json', schema => \%rules } }
        ]
    },
    toolbox_only => $yes
);

# where an object body is one argument, its keys are reached by a pointer
sub frozen_at { my ($schema, $key) = @_; return exists $schema->{properties}{body} ? "/body/$key" : $key }
sub into { my ($name, %keys) = @_; return exists tool($name)->{inputSchema}{properties}{body} ? { body => {%keys} } : {%keys} }

$stack->ctl(qw(toolboxes create), { name => 'plain', roles => ['Member'], entries => [ map { { connector => 'crm', operation => $_, connections => ['crm'] } } qw(search literal form parts put) ] });
my %schema = map { $_ => tool("plain__$_")->{inputSchema} } qw(form parts put);
my %frozen = (search => { tenant => 'mine', '/filter/tenant' => 'mine' }, literal => {}, map { $_ => { frozen_at($schema{$_}, 'tenant') => 'mine' } } qw(form parts put));
$stack->ctl(qw(toolboxes create), { name => 'own', roles => ['Member'], entries => [ map { { connector => 'crm', operation => $_, connections => ['crm'], frozen => $frozen{$_} } } sort keys %frozen ] });

my @spellings = ('tenant', 'TENANT', 'tenant[]', 'tenant[0]', ' tenant', 'tenant ', '[tenant]');

subtest 'a frozen or fixed query parameter is not said twice' => sub {
    is(verdict($member->call('own__search', { extra => { a => 'b' }, filter => { c => 'd', tenant => 'evil' } })), '200/result', 'other keys go out');
    is_deeply([ sort split /&/, newest()->{target} =~ s/^[^?]*\?//r ], [ sort qw(tenant=mine realm=ours a=b filter%5Bc%5D=d filter%5Btenant%5D=mine) ], 'with what is frozen and fixed');
    refused('own__search', qr/mine|ours/, (map { { extra => { $_ => 'evil' } } } @spellings, qw(realm Realm realm[] filter[tenant] FILTER[tenant] filter[tenant][])), (map { { filter => { $_ => 'evil' } } } 'TENANT', 'tenant][a', ' tenant', '][tenant'));
    refused('own__literal', qr/ours/, map { { extra => { $_ => 'evil' } } } @spellings);
};

subtest 'nor a frozen field of a form' => sub {
    for my $kind (qw(form parts)) {
        is(verdict($member->call("own__$kind", into("own__$kind", note => 'n', more => 'm'))), '200/result', "$kind: other fields go out");
        my $body = newest()->{body};
        my $count = () = $body =~ /tenant/gi;
        is($count, 1, "$kind: one field of this name");
        like($body, $kind eq 'form' ? qr/(?:\A|&)tenant=mine(?:&|\z)/ : qr/name="tenant"\r\n(?:[^\r\n]+\r\n)*\r\nmine\r\n/, "$kind: with the frozen value");
        $member->call("own__$kind", into("own__$kind", tenant => 'evil'));
        unlike(newest()->{body}, qr/evil/, "$kind: its own name does not overrule it");
        refused("own__$kind", qr/mine/, map { into("own__$kind", $_ => 'evil') } 'TENANT', 'tenant[]', 'tenant[0]', ' tenant');
    }
};

subtest 'the name of a frozen key is in no keyword of the schema and in no error' => sub {
    my $tool = tool('own__put');
    unlike(MCP::Json::encode($tool->{inputSchema}), qr/tenant/, 'the schema does not name it');
    like(MCP::Json::encode(tool('plain__put')->{inputSchema}), qr/tenant/, 'where it is not frozen it does');
    for my $detail (result($member->call('elaichi__tools__get', { names => ['own__put'] })), { items => [ grep { $_->{name} eq 'own__put' } @{ result($member->call('search_tools', { query => 'own put' }))->{structuredContent}{items} } ] }) {
        unlike(MCP::Json::encode($detail), qr/tenant/, 'nor do its details');
    }
    for my $arguments ({}, into('own__put', kind => 'k'), into('own__put', note => 1), into('own__put', note => 'n', wrong => 'x'), into('own__put', note => 'n', kind => 7), { surplus => 1 }) {
        my $answer = $member->call('own__put', $arguments);
        is(code($answer), 'invalid_arguments', MCP::Json::encode($arguments) . ' is refused');
        unlike($answer->{body}, qr/tenant|mine/, 'without naming it');
    }
    is(verdict($member->call('own__put', into('own__put', note => 'n', kind => 'k'))), '200/result', 'good arguments go out');
    is_deeply(MCP::Json::decode(newest()->{body}), { note => 'n', kind => 'k', tenant => 'mine' }, 'with the frozen value');
};

# --- methods and paths ----------------------------------------------------------------------------

my @canary = ('X-Canary' => 'canary-7261', 'Cookie' => 'c=canary-7261');

subtest 'odd methods get 401 or 405, and nothing back' => sub {
    my @auth = (Authorization => 'Bearer ' . $member->token);
    for my $path ('/mcp', '/api/v1/whoami', '/api/v1/members') {
        for my $method (qw(TRACE TRACK CONNECT PROPFIND MOVE BREW get Options)) {
            next if $method eq 'CONNECT';    # its target is no path
            my $without = $member->request($method, $path, [@canary]);
            my $with = $member->request($method, $path, [ @canary, @auth ]);
            like($without->{status}, qr/^(?:401|405)\z/, "$method $path without a token");
            is($with->{status}, 405, "$method $path with one");
            for my $answer ($without, $with) {
                unlike($answer->{body} . MCP::Json::encode($answer->{headers}), qr/canary|\Q@{[$member->token]}\E/, "$method $path: nothing is echoed");
            }
        }
    }
};

subtest 'odd paths of the API get a plain answer' => sub {
    my @auth = (Authorization => 'Bearer ' . $member->token, @canary);
    my %long = (
        'one segment'    => '/api/v1/' . 'x' x 5000,
        'an object'      => '/api/v1/connectors/' . 'x' x 5000,
        'encoded'        => '/api/v1/connectors/' . '%78' x 1600,
        'many segments'  => '/api/v1' . '/x' x 2500,
        'a long query'   => '/api/v1/connectors?limit=' . '1' x 5000
    );
    for my $what (sort keys %long) {
        my $answer = $member->get($long{$what}, @auth);
        like($answer->{status}, $what =~ /query/ ? qr/^(?:400|414)\z/ : qr/^(?:404|414)\z/, "$what: $answer->{status}");
        cmp_ok(length $answer->{body}, '<', 2000, "$what: in few words");
        unlike($answer->{body}, qr/canary/, "$what: nothing is echoed");
    }
    is($member->get('/api/v1/connectors/' . 'x' x 9000, @auth)->{status}, 414, 'beyond what httpd reads: 414');
    for my $path ('/api/v1/connectors/a%2fb', '/api/v1/connectors/a%2Fb', '/api/v1%2fconnectors', '/api/v1/connectors/%2e%2e%2fwhoami', '/api/v1/connectors/a%00b') {
        is($member->get($path, @auth)->{status}, 404, "$path: 404, as doc/rest.md says");
        is($member->get($path)->{status} =~ /^40[14]\z/ ? 1 : 0, 1, "$path without a token: no more than that");
    }
};

subtest 'where httpd leaves an encoded slash alone the API answers it' => sub {
    $stack->reconfigure(server => "AllowEncodedSlashes NoDecode\n<Location /api/v1>\nMCPApi On\n</Location>\n");
    $stack->gateway->graceful;
    my $answer = $member->get('/api/v1/connectors/a%2fb', Authorization => 'Bearer ' . $member->token);
    is($answer->{status}, 404, 'there is no such connector');
    like(MCP::Client::header($answer, 'Content-Type'), qr{^application/problem\+json}, 'in our words');
    is($member->get('/api/v1/connectors/a%2fb')->{status}, 401, 'to whoever has a token');
};

is(verdict($member->call('crm__search', {})), '200/-32602', 'the connection is for toolboxes alone');
$upstream->stop;
$stack->end;
done_testing;
