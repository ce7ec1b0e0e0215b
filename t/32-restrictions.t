# Restrictions through the endpoint: each rule of who may have what, seen from a member's client, from the audit and from
# the upstream, whose log is the witness of what was sent.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts result verdict);

my $root;
my $upstream;
my $stack = MCP::Stack->new(webdav => 0, allow => []);
$root = $stack->root;
$upstream = MCP::Upstream->start(root => $root, serve => sub { return MCP::Upstream::json(200, { target => $_[0]{target} }) });
$stack->reconfigure(allow => [ $upstream->origin ]);
$stack->gateway->graceful;

sub op {
    my ($id, $method, $path, @parameters) = @_;
    my @all = map { ref $_ ? $_ : { name => $_, in => 'path', required => MCP::Json::true(), schema => { type => 'string' } } }
        @parameters;
    return { id => $id, method => $method, path => $path, description => "$id of the people", @all ? (parameters => \@all) : () };
}

sub people {
    my ($slug) = @_;
    return {
        slug       => $slug,
        label      => "People of $slug",
        base_url   => $upstream->origin . "/$slug",
        operations => [
            op('list_users',  'GET',    '/users'),
            op('get_user',    'GET',    '/users/{id}', 'id'),
            op('get_admin',   'GET',    '/users/admin'),
            op('create_user', 'POST',   '/users'),
            op('delete_user', 'DELETE', '/users/{id}', 'id'),
            { %{ op('wipe', 'DELETE', '/everything') }, classification => 'forbidden' }
        ]
    };
}

$stack->connector(people($_)) for qw(crm hr);
$stack->member('second@example.org', 'Member');
my $member = $stack->client;
my $second = $stack->client(member => 'second@example.org');

sub rule { my (%rule) = @_; return $stack->ctl(qw(restrictions create), {%rule})->{restriction} }
sub drop { $stack->ctl(qw(restrictions delete), { restriction => $_ }) for @_; return }
sub connected { my ($who) = @_; return [ MCP::Client::connected($who->list) ] }
sub sent { return scalar(my @all = $upstream->requests) }

my @crm = map { "crm__$_" } qw(create_user delete_user get_admin get_user list_users);
my @hr  = map { "hr__$_" } qw(create_user delete_user get_admin get_user list_users);
my @all = (@crm, @hr);

# A call that must look like a name that never existed: same bytes but for the id and the name, one row, nothing sent.
sub is_nothing {
    my ($who, $tool, $code, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $never = 'x' x length $tool;
    my $mark = sent();
    my ($withheld, $unknown);
    my @rows = attempts($stack, sub { $withheld = $who->call($tool, {%arguments}, id => '7') });
    $unknown = $who->call($never, {%arguments}, id => '7');
    (my $body = $withheld->{body}) =~ s/\Q$tool\E/$never/g;
    is($body, $unknown->{body}, "$what: the bytes of a name that never existed");
    is($withheld->{status}, $unknown->{status}, "$what: and its status");
    is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ["denied $code"], "$what: the row says $code");
    is(sent(), $mark, "$what: nothing is sent");
    return;
}

sub works {
    my ($who, $tool, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $mark = sent();
    my $answer = $who->call($tool, {%arguments});
    is(verdict($answer), '200/result', "$what: it is called");
    is(sent(), $mark + 1, "$what: and sent once");
    return;
}

subtest 'no rule at all means everything but the forbidden' => sub {
    is_deeply(connected($member), \@all, 'all is listed');
    works($member, 'crm__get_user', 'a tool', id => '1');
    is_nothing($member, 'crm__wipe', 'forbidden', 'a forbidden one');
};

subtest 'an allow rule with no items denies everything, and its removal restores all' => sub {
    my $rule = rule(effect => 'allow', target => { role => 'Member' }, items => []);
    is_deeply(connected($member), [], 'tools/list shows no connected tool');
    is_nothing($member, $_, 'restricted', $_, id => '1') for qw(crm__get_user hr__list_users);
    is_deeply([ map { $_->{slug} } @{ rest($member, 'connectors__list', {})->{items} } ], [], 'browse shows no connector');
    my $get = $member->call('elaichi__connectors__get', { connector => 'crm' });
    my $none = $member->call('elaichi__connectors__get', { connector => 'nix' });
    is(MCP::Client::code($get), 'not_found', 'a connector is not found');
    is(MCP::Client::code($none), 'not_found', 'like one that never existed');
    my $connect = $member->call('elaichi__connections__create', { connector => 'crm', label => 'mine' });
    is(MCP::Client::code($connect), 'not_found', 'connect is refused');
    drop($rule);
    is_deeply(connected($member), \@all, 'removing it restores the list');
    works($member, 'crm__get_user', 'and the call', id => '1');
    is_deeply([ sort map { $_->{slug} } @{ rest($member, 'connectors__list', {})->{items} } ], [qw(crm hr)], 'and browse');
    is(verdict($member->call('elaichi__connections__create', { connector => 'crm', label => 'mine' })), '200/result', 'and connect');
    $stack->ctl(qw(connections delete), { connection => connection_id('mine') });
};

sub connection_id {
    my ($label) = @_;
    my ($found) = grep { $_->{label} eq $label } @{ $stack->ctl(qw(connections list --all))->{items} };
    return $found->{connection};
}

# A control-plane operation as the member sees it, over MCP.
sub rest {
    my ($who, $op, $arguments) = @_;
    my $answer = $who->call("elaichi__$op", $arguments);
    return result($answer)->{structuredContent};
}

subtest 'the rules of a role hold for its members, and for nobody else' => sub {
    my $rule = rule(effect => 'block', target => { role => 'Admin' }, items => [ { connector => 'crm' } ]);
    is_deeply(connected($member), \@all, 'a block for Admin leaves a Member alone');
    $stack->member('admin@example.org', 'Admin');
    my $admin = $stack->client(member => 'admin@example.org');
    is_deeply(connected($admin), \@hr, 'and holds for an Admin');
    drop($rule);
};

subtest 'all of a member\'s roles count: allows unite, blocks unite, blocks beat allows' => sub {
    $stack->ctl(qw(roles create), { name => 'Desk', permissions => ['tool:execute'] });
    $stack->member('both@example.org', 'Member', 'Desk');
    my $both = $stack->client(member => 'both@example.org');
    my @rules = (
        rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_user' } ]),
        rule(effect => 'allow', target => { role => 'Desk' }, items => [ { connector => 'hr' } ])
    );
    is_deeply(connected($both), [ 'crm__get_user', @hr ], 'the allows of both roles');
    is_deeply(connected($member), ['crm__get_user'], 'a member of one role has that role\'s');
    push @rules, rule(effect => 'block', target => { role => 'Desk' }, items => [ { connector => 'crm', operation => 'get_user' }, { connector => 'hr', operation => 'list_users' } ]);
    is_deeply(connected($both), [ grep { $_ ne 'hr__list_users' } @hr ], 'a block of one role beats the allow of the other');
    is_nothing($both, 'crm__get_user', 'restricted', 'what is blocked', id => '1');
    drop(@rules);
};

subtest 'a member with any rule of his own is governed by his own rules alone' => sub {
    my $role = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm' } ]);
    is_deeply(connected($member), \@hr, 'the role\'s block holds');
    my $own = rule(effect => 'block', target => { member => 'member@example.org' }, items => [ { connector => 'hr', operation => 'list_users' } ]);
    is_deeply(connected($member), [ @crm, grep { $_ ne 'hr__list_users' } @hr ], 'until there is a rule of his own, which replaces it');
    is_deeply(connected($second), \@hr, 'for another member the role\'s still holds');
    drop($own);
    is_deeply(connected($member), \@hr, 'without it the role\'s holds again');
    drop($role);
};

subtest 'renaming an account neither escapes a block nor gains an allow' => sub {
    my $cxn = connection_id('crm');
    my $rename = sub { $stack->ctl(qw(connections update), { connection => $cxn, label => $_[0] }); return };
    my $block = rule(effect => 'block', target => { role => 'Member' }, items => [ { tool => 'crm__get_user' } ]);
    is_nothing($member, 'crm__get_user', 'restricted', 'a block by name', id => '1');
    $rename->('sales');
    is_nothing($member, 'sales__get_user', 'restricted', 'the same operation under another account', id => '1');
    ok(!grep({ $_ eq 'sales__get_user' } @{ connected($member) }), 'and it is not listed');
    works($member, 'hr__get_user', 'an operation of the same id on another connector is not meant', id => '1');
    drop($block);
    my $allow = rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'hr', operation => 'get_user' } ]);
    $stack->ctl(qw(connections update), { connection => connection_id('hr'), label => 'staff' });
    $rename->('hr');
    is_deeply(connected($member), ['staff__get_user'], 'an account that takes the name of an allowed one gains nothing');
    is_nothing($member, 'hr__get_user', 'restricted', 'the one in its place', id => '1');
    works($member, 'staff__get_user', 'the operation that was pinned', id => '1');
    drop($allow);
    $rename->('crm');
    $stack->ctl(qw(connections update), { connection => connection_id('staff'), label => 'hr' });
};

subtest 'renaming an entry of a toolbox neither escapes a block nor gains an allow' => sub {
    my $make = sub {
        my ($name) = @_;
        return { connector => 'crm', operation => 'get_user', connections => ['crm'], name => $name };
    };
    my $box = $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ $make->('look') ] });
    my $entry = $box->{entries}[0]{entry};
    works($member, 'desk__look', 'an entry', id => '1');
    my $block = rule(effect => 'block', target => { role => 'Member' }, items => [ { tool => 'desk__look' } ]);
    is_nothing($member, 'desk__look', 'restricted', 'blocked by its name', id => '1');
    is_nothing($member, 'crm__get_user', 'restricted', 'the operation it was pinned to, under the account', id => '1');
    $stack->ctl(qw(toolboxes update), { toolbox => 'desk', entries => [ { %{ $make->('peek') }, entry => $entry } ] });
    is_nothing($member, 'desk__peek', 'restricted', 'under a new name', id => '1');
    drop($block);
    my $allow = rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'list_users' } ]);
    $stack->ctl(qw(toolboxes update), { toolbox => 'desk', entries => [ { %{ $make->('list_users') }, entry => $entry } ] });
    is_nothing($member, 'desk__list_users', 'restricted', 'an entry named like what is allowed', id => '1');
    is_deeply(connected($member), ['crm__list_users'], 'gains nothing');
    drop($allow);
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
};

subtest 'an allow that names what the catalog lacks is refused when written' => sub {
    for my $item ({ connector => 'nix' }, { connector => 'crm', operation => 'nix' }, { tool => 'crm__nix' }) {
        my $code = $stack->policyd->ctl_refusal(qw(restrictions create), { effect => 'allow', target => { role => 'Member' }, items => [$item] });
        like($code, qr/^(?:not_found|invalid_request)$/, MCP::Json::encode($item));
    }
    is_deeply(connected($member), \@all, 'and changed nothing');
    my $kept = $stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { tool => 'crm__nix' } ] });
    ok(@{ $kept->{warnings} || [] }, 'a block by a name that nobody has is kept, with a warning');
    is_deeply(connected($member), \@all, 'and blocks nothing');
    drop($kept->{restriction});
    is($stack->policyd->ctl_refusal(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { tool => 'elaichi__members__list' } ] }),
        'invalid_request', 'a name of the control plane is refused');
};

subtest 'a target is one role or one member, nothing else' => sub {
    for my $target ({}, { role => 'Member', member => 'member@example.org' }, { role => 'Nobody' }, { member => 'nobody@example.org' }) {
        my $code = $stack->policyd->ctl_refusal(qw(restrictions create), { effect => 'block', target => $target, items => [] });
        like($code, qr/^(?:not_found|invalid_request)$/, MCP::Json::encode($target));
    }
};

subtest 'values that normalise onto a withheld operation are refused, and nothing is sent' => sub {
    my $block = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_admin' } ]);
    for my $id ('admin', '%61dmin', '%2561dmin', '../users/admin', './admin', 'x/../admin', 'ADMIN', 'Admin', 'admin/', 'admin;v=1', 'admin%2f', '%2e%2e/users/admin', 'admin.', ' admin', 'admin%00') {
        my $mark = sent();
        my $answer;
        my @rows = attempts($stack, sub { $answer = $member->call('crm__get_user', { id => $id }) });
        is(MCP::Client::code($answer), 'url_restricted', "id $id: url_restricted");
        is(sent(), $mark, "id $id: nothing is sent");
        is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ['denied url_restricted'], "id $id: one row");
        unlike($answer->{body}, qr/get_admin/, "id $id: what is withheld is not named");
    }
    works($member, 'crm__get_user', 'an ordinary value', id => '17');
    works($member, 'crm__get_user', 'a value that only begins like it', id => 'administrator');
    drop($block);
    works($member, 'crm__get_user', 'without the rule the same URL is sent', id => 'admin');
};

subtest 'counts and catalog show nothing of what is withheld' => sub {
    my $block = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'delete_user' }, { connector => 'hr' } ]);
    my $list = rest($member, 'connectors__list', {});
    is_deeply([ map { $_->{slug} } @{ $list->{items} } ], ['crm'], 'the withheld connector is not there');
    is($list->{items}[0]{operations}, 4, 'the count leaves out the withheld and the forbidden');
    is($list->{items}[0]{by_class}{destructive}, 0, 'by class too');
    my $one = rest($member, 'connectors__get', { connector => 'crm' });
    ok(!grep({ $_->{id} eq 'delete_user' } @{ $one->{operations} }), 'get shows no withheld operation');
    unlike(MCP::Json::encode($one), qr/delete_user/, 'not anywhere');
    drop($block);
};

subtest 'explain tells the layer, the rule and the four points' => sub {
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_admin' } ]);
    my $why = $stack->ctl(qw(restrictions explain), { member => 'member@example.org', tool => 'crm__get_admin' });
    is($why->{governed}, 'roles', 'the roles\' layer won');
    is($why->{decided_by}{restriction}, $rule, 'this rule decided');
    is($why->{decided_by}{effect}, 'block', 'a block');
    is($why->{points}{$_}{answer}, 'blocked', "$_: blocked") for qw(browse advertise execute);
    is($why->{points}{connect}{answer}, 'ok', 'connect: the connector itself is not withheld');
    my $fine = $stack->ctl(qw(restrictions explain), { member => 'member@example.org', tool => 'crm__get_user' });
    is($fine->{points}{execute}{answer}, 'ok', 'another tool is fine');
    like(MCP::Json::encode($fine->{url}), qr/get_admin/, 'and the URL check names the withheld sibling');
    my $own = rule(effect => 'allow', target => { member => 'member@example.org' }, items => []);
    $why = $stack->ctl(qw(restrictions explain), { member => 'member@example.org', tool => 'crm__get_user' });
    is($why->{governed}, 'user', 'a rule of the member\'s own wins');
    is($why->{points}{$_}{answer}, 'not on the allowlist', "$_: not allowed") for qw(browse connect advertise execute);
    drop($own, $rule);
    $why = $stack->ctl(qw(restrictions explain), { member => 'member@example.org', tool => 'crm__get_user' });
    is($why->{governed}, 'none', 'and without rules none');
};

subtest 'a dry run tells who loses what, and changes nothing' => sub {
    my $revision = $stack->ctl('whoami')->{policy_revision};
    my $dry = $stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' } ], dry_run => MCP::Json::true() });
    ok($dry->{dry_run}, 'it says that it is one');
    is_deeply([ map { $_->{lose_count} } @{ $dry->{impact}{groups} } ], [ (5) x @{ $dry->{impact}{groups} } ], 'five tools are lost');
    my %who = map { $_ => 1 } map { @{ $_->{members} } } @{ $dry->{impact}{groups} };
    ok($who{'member@example.org'}, 'by the member');
    ok(!$who{'auditor@example.org'}, 'and not by the Auditor, who has none');
    is($stack->ctl('whoami')->{policy_revision}, $revision, 'the revision stays');
    is_deeply(connected($member), \@all, 'and so does the list');
    is_deeply($stack->ctl(qw(restrictions list))->{items}, [], 'there is no rule');
};

subtest 'a change holds on the next call' => sub {
    my $keep = $stack->client(keep => 1);
    works($keep, 'crm__list_users', 'before');
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm' } ]);
    is_nothing($keep, 'crm__list_users', 'restricted', 'right after the rule was written, on the same connection');
    drop($rule);
    works($keep, 'crm__list_users', 'right after it was removed');
};

$upstream->stop;
$stack->end;
done_testing;
