# Toolboxes through the endpoint: entries under their own names, frozen parameters, defaults, merged tools, own connections. The
# upstream's log is the witness of what was sent, and of what was sent instead.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts result verdict);

my $stack = MCP::Stack->new(webdav => 0);
my $upstream = MCP::Upstream->start(
    root  => $stack->root,
    serve => sub {
        my ($request) = @_;
        return MCP::Upstream::json(200, { target => $request->{target}, body => $request->{body} });
    }
);
$stack->reconfigure(allow => [ $upstream->origin ]);
$stack->gateway->graceful;

my $yes = MCP::Json::true();
my $text = { type => 'string' };
my $desk = {
    slug       => 'desk',
    label      => 'Desk',
    base_url   => $upstream->origin . '/{tenant}',
    variables  => { tenant => { pattern => '^[a-z]+$', default => 'main' } },
    operations => [
        {
            id          => 'create_ticket',
            method      => 'POST',
            path        => '/tickets',
            description => 'Files a ticket.',
            parameters  => [ { name => 'notify', in => 'query', schema => { type => 'string', enum => [qw(yes no)] } } ],
            body        => {
                content_type => 'application/json',
                required     => $yes,
                schema       => {
                    type       => 'object',
                    required   => [qw(title queue)],
                    properties => {
                        title => $text,
                        queue => $text,
                        meta  => {
                            type       => 'object',
                            required   => ['origin'],
                            properties => {
                                origin => {
                                    type       => 'object',
                                    required   => ['team'],
                                    properties => { team => $text, person => $text, place => $text }
                                },
                                note => $text
                            }
                        }
                    }
                }
            }
        },
        {
            id          => 'get_ticket',
            method      => 'GET',
            path        => '/tickets/{id}',
            description => 'One ticket.',
            parameters  => [ { name => 'id', in => 'path', required => $yes, schema => $text }, { name => 'connection', in => 'query', schema => $text } ]
        },
        {
            id          => 'open_case',
            method      => 'POST',
            path        => '/cases/{kind}',
            description => 'Opens a case.',
            parameters  => [ { name => 'kind', in => 'path', required => $yes, schema => { '$ref' => '#/$defs/kind', '$defs' => { kind => { type => 'string', enum => [qw(bug wish)] } } } } ],
            body        => {
                content_type => 'application/json',
                required     => $yes,
                schema       => {
                    type       => 'object',
                    required   => [qw(from to both)],
                    properties => {
                        from => { '$ref' => '#/$defs/person' },
                        to   => { '$ref' => '#/$defs/person' },
                        both => {
                            allOf => [
                                { type => 'object', required => ['team'], properties => { team => $text } },
                                { type => 'object', required => [qw(team rank)], properties => { team => { minLength => 2 }, rank => { '$ref' => '#/$defs/rank' } } }
                            ]
                        },
                        chain => { '$ref' => '#/$defs/link' }
                    },
                    '$defs' => {
                        person => { type => 'object', required => [qw(name mail)], properties => { name => $text, mail => $text, boss => { '$ref' => '#/$defs/person' } } },
                        rank   => { type => 'integer', minimum => 1 },
                        link   => { '$ref' => '#/$defs/rank' }
                    }
                }
            }
        },
        { id => 'list_tickets', method => 'GET', path => '/tickets', description => 'All tickets.' },
        {
            id          => 'drop_ticket',
            method      => 'DELETE',
            path        => '/tickets/{id}',
            description => 'Drops one.',
            parameters  => [ { name => 'id', in => 'path', required => $yes, schema => $text } ]
        }
    ]
};
$stack->ctl(qw(connectors create), { auth => { type => 'none' }, %$desk });
my %id;
for my $label (qw(north south west)) {
    $id{$label} = $stack->ctl(qw(connections create), { connector => 'desk', label => $label, shared => $yes, toolbox_only => $yes, variables => { tenant => $label } })->{connection};
}
$id{open} = $stack->ctl(qw(connections create), { connector => 'desk', label => 'open', shared => $yes, variables => { tenant => 'open' } })->{connection};
$stack->member('second@example.org', 'Member');
my $member = $stack->client;
my $second = $stack->client(member => 'second@example.org');

sub connected { my ($who) = @_; return [ MCP::Client::connected($who->list) ] }
sub tool { my ($who, $name) = @_; my ($found) = grep { $_->{name} eq $name } @{ result($who->list)->{tools} }; return $found }
sub entry { my ($operation, $connections, %more) = @_; return { connector => 'desk', operation => $operation, connections => $connections, %more } }
sub box { my ($name, $entries, %more) = @_; return $stack->ctl(qw(toolboxes create), { name => $name, roles => ['Member'], entries => $entries, %more }) }
sub unbox { $stack->ctl(qw(toolboxes delete), { toolbox => $_ }) for @_; return }

# What the upstream received last, with its body as data.
sub received {
    my @all = $upstream->requests;
    my $last = $all[-1] || {};
    return { %$last, data => $last->{body} ? MCP::Json::decode($last->{body}) : undef };
}
sub sent { return scalar(my @all = $upstream->requests) }

subtest 'connections that serve toolboxes only give no plain tools' => sub {
    my @open = map { "open__$_" } qw(create_ticket drop_ticket get_ticket list_tickets open_case);
    is_deeply(connected($member), \@open, 'only the plain connection is listed');
    my $withheld = $member->call('north__list_tickets', {}, id => '1');
    my $unknown = $member->call('nnnnn__list_tickets', {}, id => '1');
    (my $body = $withheld->{body}) =~ s/north__/nnnnn__/g;
    is($body, $unknown->{body}, 'a call of the others is a name that never existed');
};

subtest 'an entry is for the roles and members it names' => sub {
    box('tools', [ entry('list_tickets', ['north']) ], roles => [], members => ['member@example.org']);
    ok(grep({ $_ eq 'tools__list_tickets' } @{ connected($member) }), 'the member named has it');
    ok(!grep({ $_ eq 'tools__list_tickets' } @{ connected($second) }), 'another has not');
    is(verdict($member->call('tools__list_tickets', {})), '200/result', 'and calls it');
    is(received()->{target}, '/north/tickets', 'over the connection of the entry');
    my @rows = attempts($stack, sub { $second->call('tools__list_tickets', {}) });
    is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ['denied restricted'], 'the other is denied');
    $stack->ctl(qw(toolboxes update), { toolbox => 'tools', members => [], roles => ['Member'] });
    is(verdict($second->call('tools__list_tickets', {})), '200/result', 'a role opens it to all who hold it, on the next call');
    my @row = $stack->calls;
    is($row[-1]{connection}, 'north', 'the row names the account reached');
    is($row[-1]{tool}, 'tools__list_tickets', 'and the tool');
    unbox('tools');
};

subtest 'a renamed entry with a description of its own' => sub {
    box('help', [ entry('list_tickets', ['north'], name => 'all', description => 'Every ticket of the north.') ]);
    my $tool = tool($member, 'help__all');
    is($tool->{description}, 'Every ticket of the north.', 'description as written');
    is(verdict($member->call('help__all', {})), '200/result', 'called by its name');
    unbox('help');
    is(tool($member, 'help__all'), undef, 'gone with its toolbox');
};

subtest 'a frozen key is absent from the schema, and the frozen value is what the upstream receives' => sub {
    box('front', [ entry('create_ticket', ['north'], name => 'file', frozen => { queue => 'intake', '/meta/origin/team' => 'desk' }, defaults => { notify => 'no', '/meta/origin/place' => 'hall' }) ]);
    my $tool = tool($member, 'front__file');
    my $schema = $tool->{inputSchema};
    ok(!exists $schema->{properties}{queue}, 'not a property');
    is_deeply([ sort @{ $schema->{required} } ], ['title'], 'not required');
    ok(!exists $schema->{properties}{meta}{properties}{origin}{properties}{team}, 'nor the one two levels down');
    unlike(MCP::Json::encode($schema), qr/"team"|"queue"|intake/, 'no trace of key or value');
    like($tool->{description}, qr/some values are frozen/i, 'the description says that some are');
    unlike($tool->{description}, qr/queue|team|intake/, 'and not which');

    is(verdict($member->call('front__file', { title => 'a' })), '200/result', 'called without it');
    my $got = received();
    is_deeply($got->{data}, { title => 'a', queue => 'intake', meta => { origin => { team => 'desk', place => 'hall' } } }, 'frozen and default values are sent');
    like($got->{target}, qr{^/north/tickets\?notify=no$}, 'a default in the query too');

    is(verdict($member->call('front__file', { title => 'b', queue => 'secret', notify => 'yes', meta => { origin => { team => 'evil', person => 'ada', place => 'roof' }, note => 'n' } })), '200/result', 'called with the frozen keys');
    $got = received();
    is_deeply($got->{data}, { title => 'b', queue => 'intake', meta => { origin => { team => 'desk', person => 'ada', place => 'roof' }, note => 'n' } }, 'defaults < caller < frozen, at the top and two levels down');
    like($got->{target}, qr/notify=yes$/, 'the caller beats a default');

    my $mark = sent();
    my $answer = $member->call('front__file', { title => 'c', meta => { origin => 'not an object' } });
    is(MCP::Client::code($answer), 'invalid_arguments', 'a parent of the wrong type is invalid');
    unlike($answer->{body}, qr/intake|"queue"|desk"/, 'the error names no frozen key or value');
    is(sent(), $mark, 'and nothing is sent');
    my @rows = attempts($stack, sub { $member->call('front__file', { title => 'd', queue => 'x' }) });
    is_deeply($rows[0]{arg_names}, ['title'], 'the audit names what the advertised schema knows');
    is($rows[0]{arg_count}, 2, 'and counts the rest');
    my $shown = $stack->ctl(qw(toolboxes get), { toolbox => 'front' });
    is_deeply($shown->{entries}[0]{frozen}, { queue => 'intake', '/meta/origin/team' => 'desk' }, 'who may write toolboxes sees the values');
    my $seen = result($member->call('elaichi__toolboxes__get', { toolbox => 'front' }));
    unlike(MCP::Json::encode($seen), qr/intake/, 'a member does not');
    unbox('front');
};

# Where a schema leads from a place, following references: the schema there, or undef.
sub leads {
    my ($root, @path) = @_;
    my @at = ($root);
    for my $step (@path) {
        my @next;
        my @open = @at;
        for (my $i = 0; $i < @open && $i < 100; $i++) {
            my $schema = $open[$i];
            push @open, $root->{'$defs'}{$1} if ($schema->{'$ref'} || q()) =~ m{^#/\$defs/(.+)\z};
            push @open, @{ $schema->{allOf} || [] };
            push @next, $schema->{properties}{$step} if exists(($schema->{properties} || {})->{$step});
        }
        @at = @next;
    }
    return @at ? $at[0] : undef;
}

sub required_at {
    my ($root, @path) = @_;
    my @open = @path ? leads($root, @path) : ($root);
    my %required;
    for (my $i = 0; $i < @open && $i < 100; $i++) {
        my $schema = $open[$i] || {};
        push @open, $root->{'$defs'}{$1} if ($schema->{'$ref'} || q()) =~ m{^#/\$defs/(.+)\z};
        push @open, @{ $schema->{allOf} || [] };
        $required{$_} = 1 for @{ $schema->{required} || [] };
    }
    return join q( ), sort keys %required;
}

subtest 'a frozen key is absent through references and allOf too, there and nowhere else' => sub {
    my $plain = tool($member, 'open__open_case')->{inputSchema};
    is_deeply([ map { required_at($plain, $_) } qw(from to both) ], [ 'mail name', 'mail name', 'rank team' ], 'the operation\'s own schema asks for all of it');
    ok(leads($plain, qw(from mail)) && leads($plain, qw(both team)) && leads($plain, qw(kind)), 'and shows it');
    box('cases', [ entry('open_case', ['north'], name => 'open', frozen => { kind => 'bug', '/from/mail' => 'desk@example.org', '/both/team' => 'desk', chain => 3 }) ]);
    my $tool = tool($member, 'cases__open');
    my $schema = $tool->{inputSchema};
    is(required_at($schema), 'both from to', 'a parameter that is frozen is not required');
    is(leads($schema, @$_), undef, "/@$_: absent") for ['kind'], ['chain'], [qw(from mail)], [qw(both team)];
    is(required_at($schema, 'from'), 'name', '/from: what is left is required');
    is(required_at($schema, 'both'), 'rank', '/both: in every part of allOf');
    ok(leads($schema, qw(to mail)), '/to, which refers to the same definition, keeps it');
    is(required_at($schema, 'to'), 'mail name', '/to: and requires it');
    ok(leads($schema, qw(from boss mail)), '/from/boss too, one level below');
    ok(leads($schema, qw(both rank)), '/both: its neighbour in allOf is there');
    unlike(MCP::Json::encode($tool), qr/desk\@example|"desk"|"bug"/, 'no value shows');

    my %good = (from => { name => 'ada' }, to => { name => 'bob', mail => 'bob@example.org' }, both => { rank => 2 });
    is(verdict($member->call('cases__open', \%good)), '200/result', 'called as the schema says');
    my $got = received();
    is($got->{target}, '/north/cases/bug', 'the frozen value is in the path');
    is_deeply($got->{data}, { from => { name => 'ada', mail => 'desk@example.org' }, to => { name => 'bob', mail => 'bob@example.org' }, both => { rank => 2, team => 'desk' }, chain => 3 },
        'and in the body, at each place and no other');
    is(verdict($member->call('cases__open', { kind => 'wish', chain => 9, from => { name => 'ada', mail => 'x@y', boss => { name => 'eve', mail => 'eve@example.org' } }, to => $good{to}, both => { rank => 2, team => 'evil' } })),
        '200/result', 'called with the frozen keys');
    $got = received();
    is($got->{target}, '/north/cases/bug', 'frozen in the path');
    is_deeply($got->{data}, { from => { name => 'ada', mail => 'desk@example.org', boss => { name => 'eve', mail => 'eve@example.org' } }, to => $good{to}, both => { rank => 2, team => 'desk' }, chain => 3 },
        'frozen in the body; the same key elsewhere is the caller\'s');
    for my $bad ({ %good, to => { name => 'bob' } }, { %good, both => {} }, { %good, both => { rank => 0 } }, { %good, from => {} }, { %good, from => 'ada' }) {
        my $mark = sent();
        my $answer = $member->call('cases__open', $bad);
        is(MCP::Client::code($answer), 'invalid_arguments', MCP::Json::encode($bad) . ': what is left of the schema holds');
        unlike($answer->{body}, qr/desk|chain|kind/, 'the error names nothing frozen');
        is(sent(), $mark, 'and nothing is sent');
    }
    unbox('cases');
};

subtest 'a default makes its key optional, shows in no error, and yields to the caller' => sub {
    box('easy', [ entry('get_ticket', ['north'], name => 'get', defaults => { id => '42' }), entry('create_ticket', ['north'], name => 'file', defaults => { title => 'none', queue => 'all' }) ]);
    my $tool = tool($member, 'easy__get');
    ok($tool->{inputSchema}{properties}{id}, 'it stays a property');
    is(required_at($tool->{inputSchema}), q(), 'which is not required any more');
    is(verdict($member->call('easy__get', {})), '200/result', 'left out');
    is(received()->{target}, '/north/tickets/42', 'the default is sent');
    is(verdict($member->call('easy__get', { id => '7' })), '200/result', 'given');
    is(received()->{target}, '/north/tickets/7', 'the caller\'s is sent');
    is(verdict($member->call('easy__file', { title => 'x' })), '200/result', 'one of two');
    is_deeply(received()->{data}, { title => 'x', queue => 'all' }, 'each by itself');
    my $mark = sent();
    is(MCP::Client::code($member->call('easy__file', { title => 7 })), 'invalid_arguments', 'a wrong value of the caller is not replaced');
    is(sent(), $mark, 'and nothing is sent');
    is($stack->policyd->ctl_refusal(qw(toolboxes create), { name => 'bad', roles => [], entries => [ entry('create_ticket', ['north'], defaults => { $_ => 'x' }) ] }), 'invalid_request', "a default for $_ is refused when written")
        for qw(nix /meta/nix);
    unbox('easy');
    box('easy', [ entry('create_ticket', ['north'], name => 'file', defaults => { queue => 'all', '/meta/origin/team' => 'any' }, frozen => { queue => 'one', '/meta/origin' => { team => 'desk' } }) ]);
    is(leads(tool($member, 'easy__file')->{inputSchema}, 'queue'), undef, 'a key with both is frozen');
    for my $arguments ({ title => 'x' }, { title => 'x', queue => 'two', meta => { origin => { team => 'evil' } } }) {
        is(verdict($member->call('easy__file', $arguments)), '200/result', 'called');
        is_deeply(received()->{data}, { title => 'x', queue => 'one', meta => { origin => { team => 'desk' } } }, 'and what is frozen is sent, at the top and below');
    }
    unbox('easy');
};

subtest 'always_visible is kept with the entry, and changes nothing of what is listed' => sub {
    box('pins', [ entry('list_tickets', ['north'], name => 'pinned', always_visible => $yes), entry('list_tickets', ['north'], name => 'plain') ]);
    my $shown = sub { return [ map { "$_->{name} " . ($_->{always_visible} ? 1 : 0) } @{ $stack->ctl(qw(toolboxes get), { toolbox => 'pins' })->{entries} } ] };
    is_deeply($shown->(), [ 'pinned 1', 'plain 0' ], 'as written');
    is_deeply([ grep { /^pins__/ } @{ connected($member) } ], [qw(pins__pinned pins__plain)], 'both are listed');
    my ($exported) = grep { $_->{name} eq 'pins' } @{ $stack->ctl(qw(policy export))->{toolboxes} };
    is_deeply([ map { "$_->{name} " . ($_->{always_visible} ? 1 : 0) } @{ $exported->{entries} } ], [ 'pinned 1', 'plain 0' ], 'exported');
    my $entries = $stack->ctl(qw(toolboxes get), { toolbox => 'pins' })->{entries};
    $_->{always_visible} = $_->{name} eq 'plain' ? $yes : MCP::Json::false() for @$entries;
    $stack->ctl(qw(toolboxes update), { toolbox => 'pins', entries => $entries });
    is_deeply($shown->(), [ 'pinned 0', 'plain 1' ], 'changed');
    unbox('pins');
};

subtest 'freezing what the operation does not know is refused when written' => sub {
    for my $frozen ({ nix => 1 }, { '/meta/nix' => 1 }, { '/meta/origin/team/x' => 1 }) {
        is($stack->policyd->ctl_refusal(qw(toolboxes create), { name => 'bad', roles => ['Member'], entries => [ entry('create_ticket', ['north'], frozen => $frozen) ] }),
            'invalid_request', MCP::Json::encode($frozen));
    }
};

subtest 'a merged tool is advertised once, with the account as an argument' => sub {
    box('all', [ entry('list_tickets', [qw(north south west)], name => 'list') ]);
    my $tool = tool($member, 'all__list');
    is_deeply($tool->{inputSchema}{properties}{connection}{enum}, [qw(north south west)], 'the enum holds the labels');
    is_deeply($tool->{inputSchema}{required}, ['connection'], 'and it is required');
    like($tool->{description}, qr/Set `connection`: north, south, west/, 'the description says so');
    for my $label (qw(north south west)) {
        is(verdict($member->call('all__list', { connection => $label })), '200/result', "$label: called");
        is(received()->{target}, "/$label/tickets", "$label: reached, without the argument");
    }
    my @rows = $stack->calls;
    is($rows[-1]{connection}, 'west', 'the row names the account actually reached');
    for my $wrong ({}, { connection => 'open' }, { connection => 'nix' }, { connection => 7 }, { connection => '' }) {
        my $mark = sent();
        my $answer;
        my @row = attempts($stack, sub { $answer = $member->call('all__list', $wrong) });
        is(MCP::Client::code($answer), 'invalid_arguments', MCP::Json::encode($wrong) . ': invalid_arguments');
        like(MCP::Client::text($answer), qr/north, south, west/, 'lists the accounts');
        is(scalar @row, 1, 'one row');
        is(sent(), $mark, 'nothing is sent');
    }
    $stack->ctl(qw(connections delete), { connection => $id{west} });
    is_deeply(tool($member, 'all__list')->{inputSchema}{properties}{connection}{enum}, [qw(north south)], 'an account that is gone leaves the enum');
    $stack->ctl(qw(connections update), { connection => $id{south}, label => 'deep' });
    is_deeply(tool($member, 'all__list')->{inputSchema}{properties}{connection}{enum}, [qw(deep north)], 'a renamed one keeps its place under its new name');
    is(verdict($member->call('all__list', { connection => 'deep' })), '200/result', 'and is called by it');
    $stack->ctl(qw(connections update), { connection => $id{south}, label => 'south' });
    unbox('all');
    box('pair', [ entry('list_tickets', [qw(north south)], name => 'list') ]);
    my $off = $stack->ctl(qw(connections create), { connector => 'desk', label => 'extra', shared => $yes, toolbox_only => $yes });
    $stack->ctl(qw(toolboxes update), { toolbox => 'pair', entries => [ entry('list_tickets', [qw(north extra)], name => 'list') ] });
    $stack->ctl(qw(connections delete), { connection => $off->{connection} });
    $tool = tool($member, 'pair__list');
    ok(!grep({ $_ eq 'connection' } @{ $tool->{inputSchema}{required} || [] }), 'one left: the argument is optional');
    is(verdict($member->call('pair__list', {})), '200/result', 'and may be left out');
    is(verdict($member->call('pair__list', { connection => 'north' })), '200/result', 'or given');
    is(MCP::Client::code($member->call('pair__list', { connection => 'south' })), 'invalid_arguments', 'but not another');
    unbox('pair');
};

subtest 'an argument of the operation\'s own by that name is kept under another' => sub {
    box('two', [ entry('get_ticket', [qw(north south)], name => 'get') ]);
    my $tool = tool($member, 'two__get');
    is_deeply($tool->{inputSchema}{properties}{connection}{enum}, [qw(north south)], 'connection chooses the account');
    ok($tool->{inputSchema}{properties}{arg_connection}, 'arg_connection is the operation\'s');
    is(verdict($member->call('two__get', { connection => 'south', arg_connection => 'wire', id => '5' })), '200/result', 'called with both');
    is(received()->{target}, '/south/tickets/5?connection=wire', 'each goes where it belongs');
    unbox('two');
};

subtest '@own means the caller\'s own connections' => sub {
    box('mine', [ entry('list_tickets', ['@own'], name => 'list') ]);
    is(tool($member, 'mine__list'), undef, 'who has none does not see it');
    my $own = $stack->ctl(qw(connections create), { connector => 'desk', label => 'ada', owner => 'member@example.org', variables => { tenant => 'ada' } });
    ok(tool($member, 'mine__list'), 'who has one does');
    is(tool($second, 'mine__list'), undef, 'another still does not');
    is(verdict($member->call('mine__list', {})), '200/result', 'called');
    is(received()->{target}, '/ada/tickets', 'over his own');
    my $more = $stack->ctl(qw(connections create), { connector => 'desk', label => 'bob', owner => 'second@example.org', variables => { tenant => 'bob' } });
    is(verdict($second->call('mine__list', {})), '200/result', 'the other with one of his own');
    is(received()->{target}, '/bob/tickets', 'reaches his');
    is(MCP::Client::code($second->call('mine__list', { connection => 'ada' })), 'invalid_arguments', 'and never somebody else\'s');
    $stack->ctl(qw(connections delete), { connection => $_->{connection} }) for $own, $more;
    unbox('mine');
};

subtest 'restrictions hold for entries: by operation and by name' => sub {
    box('box', [ entry('list_tickets', [qw(north south)], name => 'list'), entry('drop_ticket', ['north'], name => 'drop') ]);
    my $rule = $stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { connector => 'desk', operation => 'list_tickets' } ] })->{restriction};
    is_deeply([ grep { /^box__/ } @{ connected($member) } ], ['box__drop'], 'a block of the operation withholds the entry');
    my @rows = attempts($stack, sub { $member->call('box__list', { connection => 'north' }) });
    is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ['denied restricted'], 'and its call');
    $stack->ctl(qw(restrictions delete), { restriction => $rule });
    my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    is_deeply([ grep { /^box__/ } @{ connected($low) } ], ['box__list'], 'a scope that is missing hides what needs it');
    is($low->call('box__drop', { id => '1' })->{status}, 403, 'and a call is told which');
    unbox('box');
};

subtest 'an operation that only an entry opens guards its neighbours\' URLs' => sub {
    box('one', [ entry('get_ticket', ['north'], name => 'get', defaults => { connection => 'x' }) ]);
    is(verdict($member->call('one__get', { id => '9' })), '200/result', 'called');
    is(received()->{target}, '/north/tickets/9?connection=x', 'with its default');
    my $mark = sent();
    is(MCP::Client::code($member->call('one__get', { id => '../tickets' })), 'url_restricted', 'a value that leads elsewhere is refused');
    is(sent(), $mark, 'nothing is sent');
    unbox('one');
};

subtest 'a frozen value is not undone by the URL of another operation' => sub {
    $stack->ctl(
        qw(connectors create),
        {
            slug       => 'pay',
            label      => 'Pay',
            base_url   => $upstream->origin . '/pay',
            auth       => { type => 'none' },
            operations => [
                { id => 'report', method => 'GET', path => '/reports/{kind}', description => 'x', parameters => [ { name => 'kind', in => 'path', required => $yes, schema => $text } ] },
                { id => 'salaries', method => 'GET', path => '/reports/salaries', description => 'x', parameters => [ { name => 'dept', in => 'query', schema => $text } ] }
            ]
        }
    );
    $stack->ctl(qw(connections create), { connector => 'pay', label => 'pay', shared => $yes, toolbox_only => $yes });
    my @entries = map { { connector => 'pay', connections => ['pay'], operation => $_->[0], frozen => $_->[1] } } [ report => {} ], [ salaries => { dept => 'mine' } ];
    box('sums', \@entries);
    is(verdict($member->call('sums__salaries', {})), '200/result', 'the entry is called');
    is(received()->{target}, '/pay/reports/salaries?dept=mine', 'with its frozen value');
    is(verdict($member->call('sums__report', { kind => 'travel' })), '200/result', 'the other operation too');
    my $mark = sent();
    is(MCP::Client::code($member->call('sums__report', { kind => 'salaries' })), 'url_restricted', 'but not to the URL of the first');
    is(sent(), $mark, 'nothing is sent');
    unbox('sums');
};

subtest 'a frozen value is not said once more under a name that reads the same' => sub {
    my $open = { type => 'object', additionalProperties => $text };
    my $names = { type => 'object', properties => { tenant => $text, note => $text }, propertyNames => { enum => [qw(tenant note)] }, patternProperties => { '^tenant$' => $text } };
    $stack->ctl(
        qw(connectors create),
        {
            slug       => 'crm',
            label      => 'CRM',
            base_url   => $upstream->origin . '/crm',
            auth       => { type => 'none' },
            operations => [
                { id => 'search', method => 'GET', path => '/search', description => 'x', parameters => [ { name => 'tenant', in => 'query', schema => $text }, { name => 'extra', in => 'query', schema => $open },
                    { name => 'filter', in => 'query', style => 'deepObject', schema => $open } ] },
                { id => 'send', method => 'POST', path => '/send', description => 'x', body => { content_type => 'application/x-www-form-urlencoded', schema => { %$open, properties => { tenant => $text } } } },
                { id => 'put', method => 'POST', path => '/put', description => 'x', body => { content_type => 'application/json', schema => $names } }
            ]
        }
    );
    $stack->ctl(qw(connections create), { connector => 'crm', label => 'crm', shared => $yes, toolbox_only => $yes });
    my %frozen = (search => { tenant => 'mine', '/filter/tenant' => 'mine' }, send => { '/body/tenant' => 'mine' }, put => { '/body/tenant' => 'mine' });
    box('own', [ map { { connector => 'crm', connections => ['crm'], operation => $_, frozen => $frozen{$_} } } sort keys %frozen ]);
    is(verdict($member->call('own__search', { extra => { a => 'b' }, filter => { c => 'd', tenant => 'evil' } })), '200/result', 'other keys go out');
    is_deeply([ sort split /&/, received()->{target} =~ s/^[^?]*\?//r ], [ sort qw(tenant=mine a=b filter%5Bc%5D=d filter%5Btenant%5D=mine) ], 'with the frozen values');
    my $mark = sent();
    my @evil = (
        (map { [ search => { extra => { $_ => 'evil' } } ] } 'tenant', 'Tenant', 'tenant[]', ' tenant', '[tenant]', 'filter[tenant]', 'filter', 'FILTER[tenant][]'),
        (map { [ search => { filter => { $_ => 'evil' } } ] } 'tenant][a', 'TENANT', 'tenant ', '][tenant'),
        (map { [ send => { body => { $_ => 'evil' } } ] } 'Tenant', 'tenant[]', 'tenant[0]', ' tenant')
    );
    for my $case (@evil) {
        my $answer = $member->call("own__$case->[0]", $case->[1]);
        my $name = MCP::Json::encode($case->[1]);
        is(MCP::Client::code($answer), 'invalid_arguments', $name);
        unlike($answer->{body}, qr/mine|another parameter/, "$name: says nothing of what is frozen");
    }
    is(sent(), $mark, 'nothing is sent');
    my $schema = tool($member, 'own__put')->{inputSchema};
    unlike(MCP::Json::encode($schema), qr/tenant/, 'propertyNames and patternProperties do not name it');
    unbox('own');
};

subtest 'toolbox names and account labels share one name space' => sub {
    box('taken', [ entry('list_tickets', ['north']) ]);
    is($stack->policyd->ctl_refusal(qw(connections create), { connector => 'desk', label => 'taken', shared => $yes }), 'conflict', 'a shared label');
    is($stack->policyd->ctl_refusal(qw(connections create), { connector => 'desk', label => 'taken', owner => 'member@example.org' }), 'conflict', 'a member\'s own label');
    is($stack->policyd->ctl_refusal(qw(toolboxes create), { name => 'open', roles => [], entries => [] }), 'conflict', 'the other way round');
    is($stack->policyd->ctl_refusal(qw(toolboxes create), { name => 'elaichi', roles => [], entries => [] }), 'conflict', 'the control prefix is reserved');
    unbox('taken');
};

$upstream->stop;
$stack->end;
done_testing;
