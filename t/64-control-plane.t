# The control plane's operations, asked at the admin socket by people of every role: the shapes that others rely
# on, who may do and give what, what happens to labels, credentials and removed members; and that each change and
# each denial leaves exactly one row which says all about it.

use strict;
use warnings;
use Test::More;
use MCP::Admin;
use MCP::Json;
use MCP::Log;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;

plan skip_all => 'takes root, to be several members' if $> != 0;

my $gid = (getpwnam 'www-data')[3];
my ($true, $false) = (MCP::Json::true(), MCP::Json::false());
my @people = qw(owner admin member guest auditor billing helper other lead);
my %uid = map { $people[$_] => 60201 + $_ } 0 .. $#people;

my $root = MCP::Root->new;
my $policyd = MCP::Policyd->new(
    root   => $root,
    config => {
        admin_group     => scalar getgrgid($gid),
        reserved_labels => 'gateway old-prefix',
        actor           => [map { "unix:$uid{$_} $_\@example.org" } @people]
    }
)->start;
my $path = $policyd->socket;
my %row = map { $_->{name} => $_ } @{ $policyd->admin('rpc.describe')->{result} };
my (%id, %roles);    # of the people, as far as a test has not changed them

# --- asking, and what it leaves ------------------------------------------------------

sub act {
    my ($who, $method, $params) = @_;
    return MCP::Admin::call($path, $method, $params) if $who eq 'root';
    return MCP::Admin::as($uid{$who}, $gid, sub { return MCP::Admin::call($path, $method, $params) });
}

# As root, which has to go well.
sub make {
    my ($method, $params) = @_;
    my ($result, $error) = act('root', $method, $params);
    die "$method: $error->{code}: $error->{message}\n" if !$result;
    return $result;
}

sub mark { return make('audit__list', { limit => 1 })->{items}[0]{audit_id} }

# Rows newer than a mark, oldest first, without root's own looking.
sub rows_after {
    my ($mark) = @_;
    my @rows = @{ make('audit__list', { after => $mark, limit => 1000 })->{items} };
    return grep { $_->{operation} ne 'audit__list' || $_->{actor} ne 'unix:0' } @rows;
}

my %outcome = map { $_ => 'denied' } qw(permission_denied member_suspended use_other_door);

# Asks, and tests the code (undef: it goes well) and the one row that it leaves. Returns (result, error).
sub attempt {
    my ($name, $who, $method, $params, $code, %more) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $mark = mark();
    my ($result, $error) = act($who, $method, $params);
    is($error ? $error->{code} : undef, $code, $name) or diag(explain($error ? $error : $result));
    my @rows = rows_after($mark);
    is(scalar @rows, 1, "$name: one row");
    my $row = $rows[0] || {};
    my %known = map { $_ => 1 } keys %{ $row{$method}{schema}{properties} };
    my @names = sort keys %{ $params || {} };
    my %want = (
        operation      => $method,
        tool           => $method,
        outcome        => !defined $code ? 'ok' : $outcome{$code} || 'error',
        error_code     => $code,
        actor          => $who eq 'root' ? 'unix:0' : "unix:$uid{$who}",
        member_id      => $who eq 'root' ? undef : $id{$who},
        role           => $who eq 'root' ? 'Owner' : $roles{$who},
        surface        => 'admin',
        via            => 'direct',
        client         => 'policyctl',
        grant_id       => undef,
        connection     => undef,
        classification => $row{$method}{classification},
        approved       => 'not_needed',
        arg_names      => [grep { $known{$_} } @names],
        arg_count      => scalar @names,
        arg_unknown    => scalar(grep { !$known{$_} } @names),
        audit_id       => $error ? $error->{audit} : $row->{audit_id},
        %more
    );
    my %has = map { $_ => $row->{$_} } keys %want;
    $has{arg_names} = [sort @{ $has{arg_names} || [] }];
    is_deeply(\%has, \%want, "$name: that says what happened");
    like($row->{time}, qr/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/, "$name: and when") if !$row->{time} || $row->{time} !~ /Z$/;
    return ($result, $error);
}

sub has_keys {
    my ($object, $name, @keys) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is_deeply([grep { !exists $object->{$_} } @keys], [], "$name has @keys");
}

# An error without what differs from one call to the next.
sub bytes { my ($error) = @_; return MCP::Json::encode({ map { $_ => $error->{$_} } grep { $_ ne 'audit' } keys %$error }) }

make('members__create', { email => 'owner@example.org', name => 'O', roles => ['Owner'] });
make('roles__create', { name => 'Helper', permissions => [qw(member:read member:write role:read role:write grant:read grant:write)] });
my %given = (
    admin  => ['Admin'],   member => ['Member'],        guest => ['Guest'], auditor => ['Auditor'],
    billing => ['Billing Admin'], helper => ['Helper'], other => ['Member'], lead => ['Helper', 'Member']
);
make('members__create', { email => "$_\@example.org", roles => $given{$_} }) for sort keys %given;
$given{owner} = ['Owner'];
for my $who (@people) {
    $id{$who} = make('members__get', { member => "$who\@example.org" })->{member};
    $roles{$who} = join q(,), @{ $given{$who} };
}

subtest 'whoami' => sub {
    for my $who (@people) {
        my ($me) = attempt("$who asks", $who, 'whoami__get', {});
        is_deeply([@{$me}{qw(member email label surface)}, $me->{roles}], [$id{$who}, "$who\@example.org", "unix:$uid{$who}", 'admin', $given{$who}], "$who is told who that is");
        has_keys($me, 'the answer', qw(permissions scopes policy_revision));
    }
    my ($me) = attempt('root asks', 'root', 'whoami__get', undef);
    is_deeply([$me->{label}, $me->{roles}, exists $me->{member}], ['unix:0', ['Owner'], q()], 'root is unix:0, an Owner, no member');
};

subtest 'built-in roles hold what they are said to' => sub {
    my %has = map { $_->{name} => $_ } @{ make('roles__list', {})->{items} };
    my %all = map { $_->{permission} => 1 } grep { defined $_->{permission} } values %row;
    my %of = map { my $name = $_; $name => { map { $_ => 1 } @{ $has{$name}{permissions} } } } keys %has;
    is_deeply([grep { !$of{Owner}{$_} } sort(keys %all), 'tool:execute'], [], 'an Owner holds every permission');
    is_deeply($of{Admin}, $of{Owner}, 'and so does an Admin');
    is_deeply([map { $of{$_}{'tool:execute'} ? 1 : 0 } qw(Owner Admin Member Guest Auditor), 'Billing Admin'], [1, 1, 1, 0, 0, 0], 'tool:execute is with Owner, Admin and Member');
    is_deeply([sort keys %{ $of{Guest} }], [qw(connector:read grant:read)], 'a Guest reads connectors and grants');
    is_deeply([sort keys %{ $of{'Billing Admin'} }], [qw(member:read usage:read)], 'a Billing Admin reads members and usage');
    is_deeply([grep { !/:read(?:_all)?$/ } keys %{ $of{Auditor} }], [], 'an Auditor reads');
    is_deeply([grep { /:read$/ && !$of{Auditor}{$_} } sort keys %all], [], 'everything');
    is((grep { /:write$|:admin$|_all$/ && $_ ne 'connection:write' } keys %{ $of{Member} }), 0, 'a Member writes nothing but connections');
    for my $name (sort keys %has) {
        has_keys($has{$name}, $name, qw(role name permissions builtin));
        next if !$has{$name}{builtin};
        for my $method (qw(roles__update roles__delete)) {
            attempt("$method of $name", 'root', $method, { role => $name, $method =~ /update/ ? (permissions => []) : () }, 'invalid_request');
        }
    }
};

subtest 'every operation asks its permission, of every role' => sub {
    my %holds = map { my $who = $_; $who => { map { $_ => 1 } @{ (act($who, 'whoami__get'))[0]{permissions} } } } @people;
    for my $method (sort keys %row) {
        my $permission = $row{$method}{permission};
        my $needs_arguments = @{ $row{$method}{schema}{required} || [] };
        for my $who (qw(owner admin member guest auditor billing helper)) {
            my $may = !defined $permission || $holds{$who}{$permission};
            my $code = !$may ? 'permission_denied' : $needs_arguments ? 'invalid_request' : undef;
            # a whole export shows frozen values, which reading a policy alone does not open
            my $arguments = $method eq 'policy__export' ? { sections => ['roles'] } : {};
            my ($result, $error) = attempt("$method by $who", $who, $method, $arguments, $code, $may ? () : (detail => "lacks=$permission"));
            like($error->{message}, qr/\Q$permission\E/, "$method by $who: names what is lacking") if !$may;
        }
    }
};

subtest 'members: shapes and rules' => sub {
    my ($made) = attempt('create', 'admin', 'members__create', { email => 'Ada@Example.org', name => 'Ada', roles => ['Member'] });
    is_deeply([@{$made}{qw(email name state revision)}, $made->{roles}], ['Ada@Example.org', 'Ada', 'active', 1, ['Member']], 'the member as made');
    like($made->{member}, qr/^mem_[0-9a-z]{26}$/, 'with a stable id');
    has_keys($made, 'a member', qw(created_at updated_at));
    my ($plain) = attempt('create with an email alone', 'admin', 'members__create', { email => 'bob@example.org' });
    is_deeply([$plain->{roles}, exists $plain->{name}], [['Member'], q()], 'is a Member');
    attempt('create with a taken email', 'admin', 'members__create', { email => 'ada@example.ORG' }, 'conflict');
    for my $named ($made->{member}, 'Ada@Example.org', 'ada@example.org', 'ADA@EXAMPLE.ORG') {
        is(make('members__get', { member => $named })->{member}, $made->{member}, "found as $named");
    }
    for my $bad ('ada', '@b', 'a@', 'a@b@c', 'a b@c', "a\n\@b", "a\x{e9}\@b.org", 'a,b@c.org', '<a@b>', 'a' x 250 . '@b.org') {
        my $shown = $bad =~ s/[^ -~]/?/gr;
        my (undef, $error) = act('admin', 'members__create', { email => $bad });
        is($error->{code}, 'invalid_request', 'no email: ' . substr $shown, 0, 20);
    }
    attempt('create with a role that is not there', 'admin', 'members__create', { email => 'c@example.org', roles => ['Nobody'] }, 'not_found');
    attempt('create with an argument too many', 'admin', 'members__create', { email => 'c@example.org', password => 'x' }, 'invalid_request');

    my ($changed) = attempt('update', 'admin', 'members__update', { member => 'bob@example.org', name => 'Bob', email => 'bob2@example.org' });
    is_deeply([@{$changed}{qw(member email name revision)}], [$plain->{member}, 'bob2@example.org', 'Bob', 2], 'keeps the id');
    is((act('root', 'members__get', { member => 'bob@example.org' }))[1]{code}, 'not_found', 'the old email is nobody\'s');
    attempt('and free', 'admin', 'members__create', { email => 'bob@example.org' });
    attempt('update to a taken email', 'admin', 'members__update', { member => 'bob2@example.org', email => 'bob@example.org' }, 'conflict');
    my ($same) = attempt('an update of nothing', 'admin', 'members__update', { member => 'ada@example.org' });
    is_deeply({ %$same, revision => 0, updated_at => 0 }, { %$made, revision => 0, updated_at => 0 }, 'changes nothing else');

    for my $case (['suspend', 'suspended'], ['suspend', 'suspended'], ['reinstate', 'active'], ['reinstate', 'active']) {
        my ($moved) = attempt($case->[0], 'admin', "members__$case->[0]", { member => 'ada@example.org' });
        is($moved->{state}, $case->[1], "$case->[0]: $case->[1]");
    }
    is_deeply([sort map { $_->{email} } @{ make('members__list', { query => 'BOB' })->{items} }], ['bob2@example.org', 'bob@example.org'], 'list by a part of email or name');
    is_deeply([map { $_->{email} } @{ make('members__list', { role => 'Auditor' })->{items} }], ['auditor@example.org'], 'by role');
    attempt('what is not there', 'admin', "members__$_", { member => 'nobody@example.org' }, 'not_found') for qw(get update suspend reinstate remove);
};

subtest 'nobody gives what they do not hold' => sub {
    my $lacking = 'audit:read';
    make('roles__create', { name => 'Below', permissions => ['member:read'] });
    make('roles__create', { name => 'Above', permissions => ['member:read', $lacking] });
    make('members__create', { email => 'above@example.org', roles => ['Above'] });
    make('members__create', { email => 'below@example.org', roles => ['Below'] });
    make('members__create', { email => 'boss@example.org', roles => ['Owner'] });
    make('members__suspend', { member => 'above@example.org' });
    my $denied = 'permission_denied';
    my @grant = (client => 'c', resource => 'https://a.example/mcp');
    for my $case (
        ['a member with a role above one\'s own',  'members__create',    { email => 'n1@example.org', roles => ['Above'] },                $denied],
        ['a member with Member, whose permissions the helper lacks', 'members__create', { email => 'n2@example.org' },                      $denied],
        ['one role held, one not',                 'members__create',    { email => 'n3@example.org', roles => ['Below', 'Auditor'] },      $denied],
        ['an Owner',                               'members__create',    { email => 'n4@example.org', roles => ['Owner'] },                $denied],
        ['a member with a role below',             'members__create',    { email => 'n5@example.org', roles => ['Below'] },                undef],
        ['a member with no role',                  'members__create',    { email => 'n6@example.org', roles => [] },                       undef],
        ['a higher role for another',              'members__update',    { member => 'below@example.org', roles => ['Above'] },            $denied],
        ['a higher role for oneself',              'members__update',    { member => 'helper@example.org', roles => ['Helper', 'Admin'] }, $denied],
        ['Owner for oneself',                      'members__update',    { member => 'helper@example.org', roles => ['Owner'] },           $denied],
        ['another email for somebody above',       'members__update',    { member => 'above@example.org', email => 'mine@example.org' },   $denied],
        ['another email for an Admin',             'members__update',    { member => 'admin@example.org', email => 'mine2@example.org' },  $denied],
        ['another email for an Owner',             'members__update',    { member => 'boss@example.org', email => 'mine3@example.org' },   $denied],
        ['another name for an Owner',              'members__update',    { member => 'boss@example.org', name => 'X' },                    $denied],
        ['reinstating somebody above',             'members__reinstate', { member => 'above@example.org' },                                $denied],
        ['suspending an Owner',                    'members__suspend',   { member => 'boss@example.org' },                                 $denied],
        ['removing an Owner',                      'members__remove',    { member => 'boss@example.org' },                                 $denied],
        ['a grant for somebody above',             'grants__create',     { member => 'admin@example.org', @grant },                        $denied],
        ['a grant for an Owner',                   'grants__create',     { member => 'boss@example.org', @grant },                         $denied],
        ['a grant for somebody below',             'grants__create',     { member => 'below@example.org', @grant },                        undef],
        ['a grant for oneself',                    'grants__create',     { member => 'helper@example.org', @grant },                       undef],
        ['a role with what one lacks',             'roles__create',      { name => 'R1', permissions => [$lacking] },                      $denied],
        ['a role with tool:execute',               'roles__create',      { name => 'R1', permissions => ['tool:execute'] },                $denied],
        ['a role with what one holds',             'roles__create',      { name => 'R2', permissions => ['member:read'] },                 undef],
        ['a role with nothing',                    'roles__create',      { name => 'R3', permissions => [] },                              undef],
        ['a permission that is none',              'roles__create',      { name => 'R4', permissions => ['member:juggle'] },               'invalid_request'],
        ['raising a role',                         'roles__update',      { role => 'Below', permissions => ['member:read', $lacking] },    $denied],
        ['raising one\'s own role',                'roles__update',      { role => 'Helper', permissions => ['tool:execute'] },            $denied],
        ['lowering a role',                        'roles__update',      { role => 'R2', permissions => [] },                              undef],
    ) {
        my ($name, $method, $params, $code) = @$case;
        my $revision = make('whoami__get', {})->{policy_revision};
        attempt("helper gives $name", 'helper', $method, $params, $code);
        is(make('whoami__get', {})->{policy_revision}, $revision, "$name: nothing has changed") if defined $code;
    }
    for my $case (
        ['an Admin',                     'members__create',    { email => 'm1@example.org', roles => ['Admin'] },              undef],
        ['an Owner',                     'members__create',    { email => 'm2@example.org', roles => ['Owner'] },              $denied],
        ['Owner to oneself',             'members__update',    { member => 'admin@example.org', roles => ['Owner'] },          $denied],
        ['Owner to another',             'members__update',    { member => 'member@example.org', roles => ['Owner'] },         $denied],
        ['an Owner\'s demotion',         'members__update',    { member => 'boss@example.org', roles => ['Member'] },          $denied],
        ['an Owner\'s suspension',       'members__suspend',   { member => 'boss@example.org' },                               $denied],
        ['an Owner\'s end',              'members__remove',    { member => 'boss@example.org' },                               $denied],
        ['a grant of an Owner',          'grants__create',     { member => 'boss@example.org', @grant },                       $denied],
        ['every permission in a role',   'roles__create',      { name => 'All', permissions => make('roles__get', { role => 'Owner' })->{permissions} }, undef],
    ) {
        my ($name, $method, $params, $code) = @$case;
        attempt("admin: $name", 'admin', $method, $params, $code);
    }
    for my $case (
        ['an Owner',              'members__create',  { email => 'w1@example.org', roles => ['Owner'] }],
        ['an Owner\'s suspension', 'members__suspend', { member => 'w1@example.org' }],
        ['and reinstatement',     'members__reinstate', { member => 'w1@example.org' }],
        ['and end',               'members__remove',  { member => 'w1@example.org' }],
    ) {
        attempt("owner: $case->[0]", 'owner', @{$case}[1, 2]);
    }
    make('members__remove', { member => 'boss@example.org' });
};

subtest 'a role that changes holds for its members at once' => sub {
    attempt('helper reads no trail', 'helper', 'audit__list', {}, 'permission_denied');
    make('roles__update', { role => 'Helper', permissions => [qw(member:read member:write role:read role:write grant:read grant:write audit:read)] });
    attempt('with the permission', 'helper', 'audit__list', { limit => 1 });
    make('roles__update', { role => 'Helper', permissions => [qw(member:read member:write role:read role:write grant:read grant:write)] });
    attempt('and without it', 'helper', 'audit__list', {}, 'permission_denied');
    attempt('a role that members hold', 'root', 'roles__delete', { role => 'Helper' }, 'conflict');
    for my $name ('owner', 'ADMIN', 'billing admin', 'Helper') {
        attempt("a role named $name", 'root', 'roles__create', { name => $name, permissions => [] }, 'conflict');
    }
    for my $name (' a', 'a ', 'a,b', "a\tb", 'rol_x', 'x' x 65, q()) {
        my (undef, $error) = act('root', 'roles__create', { name => $name, permissions => [] });
        is($error->{code}, 'invalid_request', "no name of a role: \"@{[ substr $name, 0, 10 ]}\"");
    }
    my ($gone) = attempt('a role that nobody holds', 'root', 'roles__delete', { role => 'R2' });
    is_deeply($gone->{deleted}, $true, 'is deleted');
    attempt('once', 'root', 'roles__delete', { role => 'R2' }, 'not_found');
};

subtest 'the last Owner stays' => sub {
    for my $case (
        ['suspended', 'members__suspend', {}],
        ['removed',   'members__remove',  {}],
        ['demoted',   'members__update',  { roles => ['Admin'] }]
    ) {
        for my $who ('root', 'owner') {
            my (undef, $error) = attempt("the last Owner is not $case->[0] by $who", $who, $case->[1], { member => 'owner@example.org', %{ $case->[2] } }, 'conflict');
            like($error->{message}, qr/last active Owner/, 'and it says why');
        }
    }
    attempt('changed otherwise', 'owner', 'members__update', { member => 'owner@example.org', name => 'The Owner', roles => ['Owner', 'Auditor'] });
    $roles{owner} = 'Owner,Auditor';
    make('members__create', { email => 'second@example.org', roles => ['Owner'] });
    make('members__suspend', { member => 'second@example.org' });
    attempt('a suspended one does not count', 'root', 'members__suspend', { member => 'owner@example.org' }, 'conflict');
    make('members__reinstate', { member => 'second@example.org' });
    attempt('an active one does', 'root', 'members__update', { member => 'owner@example.org', roles => ['Member'] });
    attempt('who is none any more may nothing', 'owner', 'members__suspend', { member => 'second@example.org' }, 'permission_denied', role => 'Member', detail => 'lacks=member:write');
    make('members__update', { member => 'owner@example.org', roles => ['Owner'] });
    $roles{owner} = 'Owner';
    attempt('of two, one may go', 'owner', 'members__remove', { member => 'second@example.org' });
};

subtest 'grants: shapes, whose they are, and their end' => sub {
    my @where = (resource => 'https://a.example/mcp');
    my (undef, $none) = attempt('no endpoint is known', 'root', 'grants__create', { member => 'member@example.org', client => 'c' }, 'invalid_request');
    like($none->{hint}, qr/endpoint\.resource/, 'and the hint says how to set it');
    make('settings__set', { key => 'endpoint.resource', value => 'https://mcp.example.org/mcp' });
    my ($grant) = attempt('create', 'admin', 'grants__create', { member => 'member@example.org', client => 'laptop', scopes => ['mcp:read', 'mcp:tools'], expires_in => 3600 });
    has_keys($grant, 'a grant', qw(grant token member client scopes resource expires_at state created_by revision));
    is_deeply([@{$grant}{qw(member client resource state created_by)}], [$id{member}, 'laptop', 'https://mcp.example.org/mcp', 'active', $id{admin}], 'as asked, for the endpoint of the setting');
    like($grant->{token}, qr/^mcp_[A-Za-z0-9_-]{43}$/, 'a token of 256 bits');
    my $other = make('grants__create', { member => 'other@example.org', client => 'laptop', @where });
    isnt($other->{token}, $grant->{token}, 'another one each time');
    is_deeply([sort @{ $other->{scopes} }], ['mcp:read', 'mcp:tools'], 'scopes default to reading tools');
    for my $case ([undef, 90 * 86400], [60, 60], ['90m', 5400], ['12h', 43200], ['2d', 172800], ['1w', 604800]) {
        my $made = make('grants__create', { member => 'other@example.org', client => 'x', @where, defined $case->[0] ? (expires_in => $case->[0]) : () });
        my $life = epoch($made->{expires_at}) - epoch($made->{created_at});
        cmp_ok(abs($life - $case->[1]), '<=', 1, 'lives for ' . (defined $case->[0] ? $case->[0] : 'the default'));
    }
    for my $bad (0, -1, '0d', 'soon', '1y', '11000d', 1.5, '1 d', 4_000_000_000) {
        my (undef, $error) = act('admin', 'grants__create', { member => 'other@example.org', client => 'x', @where, expires_in => $bad });
        is($error->{code}, 'invalid_request', "no life: $bad");
    }
    for my $bad ('mcp', 'a.example/mcp', 'ftp://a/', 'https://u@a/', 'https://a/?x', 'https://a/#f', 'https:///x', "https://a/ b") {
        my (undef, $error) = act('admin', 'grants__create', { member => 'other@example.org', client => 'x', resource => $bad });
        is($error->{code}, 'invalid_request', "no endpoint: $bad");
    }
    attempt('a scope that is none', 'admin', 'grants__create', { member => 'other@example.org', client => 'x', scopes => ['mcp:all'] }, 'invalid_request');
    attempt('for nobody', 'admin', 'grants__create', { member => 'nobody@example.org', client => 'x' }, 'not_found');
    make('members__suspend', { member => 'other@example.org' });
    attempt('for a suspended member', 'admin', 'grants__create', { member => 'other@example.org', client => 'x' }, 'conflict');
    make('members__reinstate', { member => 'other@example.org' });

    my ($mine) = attempt('a member lists', 'member', 'grants__list', {});
    is_deeply([map { $_->{grant} } @{ $mine->{items} }], [$grant->{grant}], 'the own ones');
    my (undef, $foreign) = attempt('a member asks for another\'s', 'member', 'grants__get', { grant => $other->{grant} }, 'not_found');
    my (undef, $absent) = attempt('and for one that is not there', 'member', 'grants__get', { grant => 'gra_' . '0' x 26 }, 'not_found');
    is(bytes($foreign), bytes($absent), 'which is told in the same bytes');
    for my $named ('other@example.org', 'nobody@example.org', $id{other}) {
        my ($list) = attempt("a member lists those of $named", 'member', 'grants__list', { member => $named });
        is_deeply($list->{items}, [], "$named: nothing, known or not");
    }
    my ($all) = attempt('an auditor lists', 'auditor', 'grants__list', {});
    cmp_ok(scalar @{ $all->{items} }, '>', 5, 'all of them');
    is((grep { exists $_->{token} || exists $_->{token_key} } @{ $all->{items} }, @{ $mine->{items} }), 0, 'without a token');
    attempt('a member revokes', 'member', 'grants__revoke', { grant => $grant->{grant} }, 'permission_denied', detail => 'lacks=grant:write');
    my ($gone) = attempt('an admin revokes', 'admin', 'grants__revoke', { grant => $grant->{grant} });
    is($gone->{state}, 'revoked', 'it is revoked');
    my ($again) = attempt('once more', 'admin', 'grants__revoke', { grant => $grant->{grant} });
    is($again->{revision}, $gone->{revision}, 'changes nothing');
    is_deeply([map { $_->{grant} } @{ make('grants__list', { state => 'revoked', member => 'member@example.org' })->{items} }], [$grant->{grant}], 'list by state and member');
    attempt('one that is not there', 'admin', 'grants__revoke', { grant => 'gra_' . '0' x 26 }, 'not_found');
};

sub epoch {
    my ($text) = @_;
    my ($y, $m, $d, $hour, $minute, $second) = $text =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)/ or die "no time: $text\n";
    require Time::Local;
    return Time::Local::timegm($second, $minute, $hour, $d, $m - 1, $y);
}

# --- connectors and connections -------------------------------------------------------

sub connector {
    my ($slug, %more) = @_;
    return {
        slug       => $slug,
        label      => "\u$slug",
        base_url   => 'https://{host}/api',
        variables  => { host => { pattern => '[a-z0-9.-]+(:[0-9]+)?', default => 'a.example' } },
        auth       => { type => 'bearer' },
        operations => [
            { id => 'list', method => 'GET', path => '/items', description => 'Lists.', parameters => [] },
            { id => 'drop', method => 'DELETE', path => '/items/{id}', description => 'Drops.',
                parameters => [{ name => 'id', in => 'path', required => $true, schema => { type => 'string' } }] }
        ],
        %more
    };
}

subtest 'connectors: shapes and rules' => sub {
    my ($made) = attempt('create', 'admin', 'connectors__create', connector('shop'));
    is_deeply([@{$made}{qw(slug operations revision)}, $made->{by_class}], ['shop', 2, 1, { read => 1, write => 0, destructive => 1, forbidden => 0 }], 'counts its operations by class');
    like($made->{connector}, qr/^con_/, 'has an id');
    attempt('a taken slug', 'admin', 'connectors__create', connector('shop', label => 'Other'), 'conflict');
    my ($file) = attempt('get by a member', 'member', 'connectors__get', { connector => 'shop' });
    is_deeply([sort map { $_->{id} } @{ $file->{operations} }], [qw(drop list)], 'has the operations');
    is_deeply($file->{auth}, { type => 'bearer' }, 'and the auth');
    my ($list) = attempt('list by a guest', 'guest', 'connectors__list', { query => 'SHO' });
    is_deeply([map { $_->{slug} } @{ $list->{items} }], ['shop'], 'lists it');
    has_keys($list->{items}[0], 'an item', qw(connector slug label base_url auth operations by_class revision));
    for my $case (
        ['a host that anything may be',  variables => { host => {} }],
        ['an auth that is none',         auth => { type => 'magic' }],
        ['a template of its own host',   operations => [{ id => 'x', method => 'GET', path => 'https://b.example/', description => 'x' }]],
        ['an operation twice',           operations => [map { { id => 'x', method => 'GET', path => "/$_", description => 'x' } } 1, 2]],
        ['a base URL without a scheme',  base_url => 'a.example/api', variables => {}],
        ['a base URL with userinfo',     base_url => 'https://u:p@a.example/', variables => {}],
        ['a slug in capitals',           slug => 'Shop2'],
    ) {
        my ($name, %more) = @$case;
        my (undef, $error) = act('admin', 'connectors__create', connector('bad', %more));
        is($error->{code}, 'invalid_request', "$name is refused");
    }
    attempt('create by a member', 'member', 'connectors__create', connector('mine'), 'permission_denied', detail => 'lacks=connector:write');
    # what get answers is what update takes
    my ($again) = attempt('update with what get answers', 'admin', 'connectors__update', { %{ make('connectors__get', { connector => 'shop' }) }, connector => 'shop' });
    is($again->{operations}, 2, 'keeps it');
    attempt('another slug', 'admin', 'connectors__update', { %{ connector('shop2') }, connector => 'shop' }, 'invalid_request');
    make('connectors__create', connector('spare'));
    my ($gone) = attempt('delete', 'admin', 'connectors__delete', { connector => 'spare' });
    is_deeply($gone->{deleted}, $true, 'is gone');
    make('connectors__create', connector('open', auth => { type => 'none' }));
};

subtest 'connections: whose they are' => sub {
    my ($own) = attempt('a member makes one', 'member', 'connections__create', { connector => 'shop', label => 'mine', credential => { token => 'T1' } }, undef, connector => undef);
    is_deeply([@{$own}{qw(label connector_slug owner shared state toolbox_only base)}], ['mine', 'shop', $id{member}, $false, 'ready', $false, 'https://a.example/api'], 'of their own');
    has_keys($own, 'a connection', qw(connection connector variables revision created_at));
    attempt('a shared one', 'member', 'connections__create', { connector => 'shop', label => 'ours', shared => $true }, 'permission_denied', detail => 'lacks=connection:admin');
    attempt('one for another', 'member', 'connections__create', { connector => 'shop', label => 'theirs', owner => 'other@example.org' }, 'permission_denied', detail => 'lacks=connection:admin');
    my (undef, $error) = attempt('one for somebody who is not there', 'member', 'connections__create', { connector => 'shop', label => 'theirs', owner => 'nobody@example.org' }, 'permission_denied', detail => 'lacks=connection:admin');
    attempt('one for oneself by name', 'member', 'connections__create', { connector => 'open', label => 'mine2', owner => 'member@example.org' });
    my ($shared) = attempt('an admin makes a shared one', 'admin', 'connections__create', { connector => 'shop', label => 'ours', shared => $true, credential => { token => 'T2' } });
    is_deeply([$shared->{shared}, exists $shared->{owner}], [$true, q()], 'of nobody in particular');
    my ($theirs) = attempt('and one for another', 'admin', 'connections__create', { connector => 'open', label => 'given', owner => 'other@example.org' });
    is($theirs->{owner}, $id{other}, 'who owns it');
    attempt('shared and owned', 'admin', 'connections__create', { connector => 'open', label => 'both', shared => $true, owner => 'other@example.org' }, 'invalid_request');
    attempt('root owns nothing', 'root', 'connections__create', { connector => 'open', label => 'none' }, 'invalid_request');
    attempt('no such connector', 'admin', 'connections__create', { connector => 'nothing', label => 'x', shared => $true }, 'not_found');
    attempt('without its credential', 'admin', 'connections__create', { connector => 'shop', label => 'bare', shared => $true });
    is(make('connections__get', { connection => 'bare' })->{state}, 'needs_reauth', 'it is made, and needs one');

    my ($list) = attempt('a member lists', 'member', 'connections__list', {});
    is_deeply([sort map { $_->{label} } @{ $list->{items} }], [qw(bare mine mine2 ours)], 'own and shared ones');
    ($list) = attempt('another member lists', 'other', 'connections__list', {});
    is_deeply([sort map { $_->{label} } @{ $list->{items} }], [qw(bare given ours)], 'and sees not the first one\'s');
    ($list) = attempt('an auditor lists', 'auditor', 'connections__list', {});
    is_deeply([sort map { $_->{label} } @{ $list->{items} }], [qw(bare given mine mine2 ours)], 'all of them');
    for my $case (['get', {}], ['update', { label => 'taken' }], ['delete', {}]) {
        my ($verb, $more) = @$case;
        my (undef, $foreign) = attempt("another's: $verb", 'other', "connections__$verb", { connection => $own->{connection}, %$more }, 'not_found');
        my (undef, $absent) = attempt("nobody's: $verb", 'other', "connections__$verb", { connection => 'cxn_' . '0' x 26, %$more }, 'not_found');
        is(bytes($foreign), bytes($absent), "$verb: told in the same bytes");
        attempt("shared: $verb by a member", 'other', "connections__$verb", { connection => 'ours', %$more }, $verb eq 'get' ? undef : 'permission_denied', $verb eq 'get' ? () : (detail => 'lacks=connection:admin'));
    }
    attempt('one\'s own by label', 'member', 'connections__get', { connection => 'mine' });
    attempt('its deletion', 'member', 'connections__delete', { connection => 'mine2' });
    attempt('another\'s by an admin', 'admin', 'connections__delete', { connection => $theirs->{connection} });
    attempt('a connector in use', 'admin', 'connectors__delete', { connector => 'shop' }, 'conflict');
};

subtest 'connections: labels' => sub {
    my $new = sub { my ($label, %more) = @_; return { connector => 'open', label => $label, %more } };
    for my $bad ('A', 'a b', '-a', 'a-', 'a_b', "\x{e4}", 'x' x 33, 'a.b') {
        my (undef, $error) = act('admin', 'connections__create', $new->($bad, shared => $true));
        is($error->{code}, 'invalid_request', 'no label: ' . ($bad =~ s/[^ -~]/?/gr));
    }
    attempt("reserved: $_", 'admin', 'connections__create', $new->($_, shared => $true), 'conflict') for qw(elaichi gateway old-prefix);
    attempt('shared', 'admin', 'connections__create', $new->('legal', shared => $true));
    attempt('shared twice', 'admin', 'connections__create', $new->('legal', shared => $true), 'conflict');
    attempt('a member\'s own like a shared one', 'member', 'connections__create', $new->('legal'), 'conflict');
    attempt('a member\'s own', 'member', 'connections__create', $new->('notes'));
    attempt('twice', 'member', 'connections__create', $new->('notes'), 'conflict');
    attempt('another member\'s own of the same label', 'other', 'connections__create', $new->('notes'));
    attempt('a shared one like a member\'s own', 'admin', 'connections__create', $new->('notes', shared => $true), 'conflict');
    for my $to ('legal', 'elaichi') {
        attempt("renamed to $to", 'member', 'connections__update', { connection => 'notes', label => $to }, 'conflict');
    }
    my ($renamed) = attempt('renamed', 'member', 'connections__update', { connection => 'notes', label => 'notes2' });
    is($renamed->{label}, 'notes2', 'has the new label');
    attempt('a shared one renamed to a member\'s own', 'admin', 'connections__update', { connection => 'legal', label => 'notes2' }, 'conflict');
    attempt('the old label is free again', 'member', 'connections__create', $new->('notes'));
    attempt('to its own label', 'member', 'connections__update', { connection => 'notes', label => 'notes' });
};

subtest 'a credential is for one origin and one scheme' => sub {
    make('connectors__create', connector('vault', base_url => 'https://{host}/{tenant}', variables => { host => { enum => ['a.example', 'b.example'] }, tenant => { pattern => '[a-z]*', default => q() } }));
    make('connections__create', { connector => 'vault', label => 'vault', shared => $true, variables => { host => 'a.example' }, credential => { token => 'T3' } });
    my $state = sub { return make('connections__get', { connection => 'vault' })->{state} };
    my $update = sub { my ($name, $more, $want) = @_; my ($new) = attempt($name, 'admin', 'connections__update', { connection => 'vault', %$more }); return is($new->{state}, $want, "$name: $want") };
    $update->('another label',                     { label => 'vault' },                                        'ready');
    $update->('another path at the same origin',   { variables => { host => 'a.example', tenant => 'x' } },     'ready');
    $update->('another host',                      { variables => { host => 'b.example' } },                    'needs_reauth');
    $update->('back to the first host',            { variables => { host => 'a.example' } },                    'needs_reauth');
    $update->('a credential',                      { credential => { token => 'T4' } },                         'ready');
    $update->('another host with its credential',  { variables => { host => 'b.example' }, credential => { token => 'T5' } }, 'ready');
    attempt('a host that the connector does not know', 'admin', 'connections__update', { connection => 'vault', variables => { host => 'c.example' } }, 'invalid_request');
    attempt('a credential of another form', 'admin', 'connections__update', { connection => 'vault', credential => { username => 'u', password => 'p' } }, 'invalid_request');
    is($state->(), 'ready', 'leave it as it is');

    my $file = make('connectors__get', { connector => 'vault' });
    my $replace = sub {
        my ($name, $more, $want) = @_;
        my ($new) = attempt($name, 'admin', 'connectors__update', { %$file, connector => 'vault', %$more });
        is_deeply($new->{needs_reauth}, $want eq 'ready' ? [] : ['vault'], "$name: says who needs a credential");
        is($state->(), $want, "$name: $want");
    };
    $replace->('the same file',          {},                                        'ready');
    $replace->('another description',    { description => 'New.' },                 'ready');
    $replace->('another path',           { base_url => 'https://{host}/v2/{tenant}' }, 'ready');
    $replace->('another scheme',         { base_url => 'http://{host}/v2/{tenant}' }, 'needs_reauth');
    $update->('a credential again',      { credential => { token => 'T6' } },       'ready');
    $replace->('another auth',           { base_url => 'http://{host}/v2/{tenant}', auth => { type => 'api_key', in => 'header', name => 'X-Key' } }, 'needs_reauth');
    $update->('its credential',          { credential => { value => 'T7' } },       'ready');
    attempt('a base URL that a connection does not fit', 'admin', 'connectors__update', { %$file, connector => 'vault', variables => { host => { enum => ['z.example'] }, tenant => { default => q(), pattern => '[a-z]*' } } }, 'conflict');
    is($state->(), 'ready', 'changes nothing');
};

# --- revisions ---------------------------------------------------------------------------

subtest 'if_revision: only what the caller has seen is changed' => sub {
    make('members__create', { email => 'rev@example.org' });
    make('roles__create', { name => 'Rev', permissions => [] });
    make('connectors__create', connector('rev'));
    make('connections__create', { connector => 'rev', label => 'rev', shared => $true });
    make('settings__set', { key => 'collapse.threshold', value => 31 });
    my $grant = make('grants__create', { member => 'rev@example.org', client => 'rev' })->{grant};
    for my $case (
        ['members__update',     'members__get',     { member => 'rev@example.org' },     { name => 'New' }],
        ['members__suspend',    'members__get',     { member => 'rev@example.org' },     {}],
        ['members__reinstate',  'members__get',     { member => 'rev@example.org' },     {}],
        ['roles__update',       'roles__get',       { role => 'Rev' },                   { description => 'New' }],
        ['grants__revoke',      'grants__get',      { grant => $grant },                 {}],
        ['connectors__update',  'connectors__get',  { connector => 'rev' },              connector('rev', description => 'New')],
        ['connections__update', 'connections__get', { connection => 'rev' },             { toolbox_only => $true }],
        ['settings__set',       'settings__get',    { key => 'collapse.threshold' },     { value => 32 }],
        ['settings__unset',     'settings__get',    { key => 'collapse.threshold' },     {}],
        ['connections__delete', 'connections__get', { connection => 'rev' },             {}],
        ['connectors__delete',  'connectors__get',  { connector => 'rev' },              {}],
        ['roles__delete',       'roles__get',       { role => 'Rev' },                   {}],
        ['members__remove',     'members__get',     { member => 'rev@example.org' },     {}],
    ) {
        my ($method, $get, $named, $change) = @$case;
        my $before = make($get, $named);
        attempt("$method with an older revision", 'root', $method, { %$change, %$named, if_revision => $before->{revision} + 1 }, 'revision_mismatch');
        is_deeply(make($get, $named), $before, "$method: nothing has changed");
        attempt("$method with the revision", 'root', $method, { %$change, %$named, if_revision => $before->{revision} });
    }
    attempt('a setting that was never set', 'root', 'settings__set', { key => 'search.closest', value => 1, if_revision => 1 }, 'revision_mismatch');
    attempt('a revision that is none', 'root', 'members__update', { member => 'owner@example.org', if_revision => 0 }, 'invalid_request');
};

subtest 'settings: shapes, layers and limits' => sub {
    my ($list) = attempt('list', 'auditor', 'settings__list', {});
    for my $item (@{ $list->{items} }) {
        has_keys($item, $item->{key}, qw(key value source default type description may_narrow));
    }
    my %is = map { $_->{key} => $_ } @{ $list->{items} };
    is_deeply([@{ $is{'collapse.threshold'} }{qw(value default source)}], [30, 30, 'default'], 'collapse.threshold is 30');
    is_deeply([@{ $is{'collapse.mode'} }{qw(value source)}], ['auto', 'default'], 'collapse.mode is auto');
    is($is{'collapse.context_tokens'}{value}, 200000, 'collapse.context_tokens is 200,000');
    is($is{'search.closest'}{value}, 0, 'search.closest is 0');
    is($is{'search.unknown_words'}{value}, 'ordinary', 'search.unknown_words is ordinary');
    my $grant = make('grants__create', { member => 'member@example.org', client => 'cli' })->{grant};
    my $get = sub { my (%layer) = @_; my $found = make('settings__get', { key => 'collapse.threshold', %layer }); return "$found->{value} $found->{source}" };
    attempt('set', 'admin', 'settings__set', { key => 'collapse.threshold', value => 10 });
    attempt('set for a client', 'admin', 'settings__set', { key => 'collapse.threshold', value => 11, client => 'cli' });
    attempt('set for a grant', 'admin', 'settings__set', { key => 'collapse.threshold', value => 12, grant => $grant });
    is($get->(), '10 organisation', 'the organisation\'s');
    is($get->(client => 'cli'), '11 client', 'the client\'s goes before it');
    is($get->(client => 'cli', grant => $grant), '12 grant', 'the grant\'s before both');
    is($get->(client => 'another'), '10 organisation', 'another client has none');
    attempt('unset for the grant', 'admin', 'settings__unset', { key => 'collapse.threshold', grant => $grant });
    is($get->(client => 'cli', grant => $grant), '11 client', 'the wider one holds again');
    attempt('unset', 'admin', 'settings__unset', { key => 'collapse.threshold', client => 'cli' });
    attempt('unset all', 'admin', 'settings__unset', { key => 'collapse.threshold' });
    is($get->(client => 'cli'), '30 default', 'and the default in the end');
    for my $case (
        ['collapse.threshold', -1], ['collapse.threshold', 100001], ['collapse.threshold', '10'], ['collapse.threshold', $true],
        ['collapse.mode', 'sometimes'], ['collapse.mode', 1], ['endpoint.resource', 'mcp'], ['endpoint.resource', 'javascript:alert(1)'],
        ['execution.timeout_ms', 99], ['execution.max_bytes', 0], ['search.closest', 4]
    ) {
        my (undef, $error) = act('admin', 'settings__set', { key => $case->[0], value => $case->[1] });
        is($error->{code}, 'invalid_request', "$case->[0] does not take $case->[1]");
    }
    attempt('a setting that is none', 'admin', 'settings__set', { key => 'collapse.colour', value => 1 }, 'not_found');
    attempt('for client and grant', 'admin', 'settings__set', { key => 'collapse.threshold', value => 1, client => 'a', grant => $grant }, 'invalid_request');
    attempt('one that can not be narrowed', 'admin', 'settings__set', { key => 'endpoint.resource', value => 'https://a.example/mcp', client => 'a' }, 'invalid_request');
    attempt('for a grant that is not there', 'admin', 'settings__set', { key => 'collapse.threshold', value => 1, grant => 'gra_' . '0' x 26 }, 'not_found');
};

subtest 'a removed member is a tombstone' => sub {
    my $first = make('members__create', { email => 'gone@example.org', name => 'Gone' })->{member};
    my $grant = make('grants__create', { member => $first, client => 'x' })->{grant};
    my $own = make('connections__create', { connector => 'shop', label => 'gones', owner => $first, credential => { token => 'T8' } })->{connection};
    my ($gone) = attempt('remove', 'admin', 'members__remove', { member => 'gone@example.org' });
    is_deeply([@{$gone}{qw(member state email)}, $gone->{roles}], [$first, 'removed', 'gone@example.org', []], 'keeps id and email, and no role');
    is((act('root', 'members__get', { member => 'gone@example.org' }))[1]{code}, 'not_found', 'its email finds nobody');
    is(make('members__get', { member => $first })->{state}, 'removed', 'its id does');
    is((grep { $_->{member} eq $first } @{ make('members__list', { limit => 1000 })->{items} }), 0, 'it is in no list');
    is((grep { $_->{member} eq $first } @{ make('members__list', { state => 'removed', limit => 1000 })->{items} }), 1, 'but in that of the removed');
    is((act('root', 'connections__get', { connection => $own }))[1]{code}, 'not_found', 'its own connections are gone');
    for my $verb (qw(update suspend reinstate)) {
        attempt("it can not be $verb" . 'd', 'admin', "members__$verb", { member => $first }, 'conflict');
    }
    attempt('nor be given a grant', 'admin', 'grants__create', { member => $first, client => 'x' }, 'conflict');
    my $second = make('members__create', { email => 'gone@example.org' })->{member};
    isnt($second, $first, 'who returns with the email is somebody new');
    is_deeply(make('grants__list', { member => $second })->{items}, [], 'without the grants of before');
    my ($row) = grep { ($_->{detail} || q()) eq "member=$first" } @{ make('audit__list', { operation => 'members__remove' })->{items} };
    is($row->{outcome}, 'ok', 'the removal is on record, by id');

    my $third = make('members__create', { email => 'erase@example.org', name => 'Erase Me', roles => ['Auditor'] })->{member};
    $policyd->configure(actor => [(map { "unix:$uid{$_} $_\@example.org" } @people), 'unix:60300 erase@example.org']);
    $policyd->reload;
    MCP::Admin::as(60300, $gid, sub { MCP::Admin::call($path, 'audit__list', { limit => 1 }) });
    my @rows = @{ make('audit__list', { member => 'erase@example.org' })->{items} };
    is_deeply([map { $_->{member} } @rows], ['erase@example.org'], 'a member\'s rows are found by email');
    my ($erased) = attempt('remove and erase', 'admin', 'members__remove', { member => 'erase@example.org', erase => $true });
    is_deeply([exists $erased->{email}, exists $erased->{name}], [q(), q()], 'email and name are forgotten');
    @rows = @{ make('audit__list', { member => $third })->{items} };
    is(scalar @rows, 1, 'the rows stay, by id');
    unlike(MCP::Json::encode(\@rows), qr/erase\@example|Erase Me/i, 'without email and name');
    is_deeply(make('audit__list', { member => 'erase@example.org' })->{items}, [], 'and are not found by email');
    unlike(MCP::Json::encode(make('members__get', { member => $third })), qr/erase/i, 'nor does the tombstone say');
};

subtest 'audit: filters, pages and single rows' => sub {
    my $list = sub { return @{ make('audit__list', { limit => 1000, @_ })->{items} } };
    my @all = $list->();
    my @columns = qw(time member tool connection outcome error_code upstream_status duration_us arg_names arg_count surface audit_id
        operation classification approved via connector client actor role member_id grant_id connection_id arg_unknown
        request_bytes response_bytes redactions trace_id revision detail);
    has_keys($all[0], 'a row', @columns);
    is((grep { my $row = $_; grep { !exists $row->{$_} } @columns } @all), 0, 'every row has them all');
    is_deeply([map { $_->{audit_id} =~ /-(\d+)$/ } @all], [sort { $b <=> $a } map { $_->{audit_id} =~ /-(\d+)$/ } @all], 'newest first');
    my %seen;
    is((grep { $seen{ $_->{audit_id} }++ } @all), 0, 'none twice');
    for my $case (
        [outcome => 'denied',            sub { $_->{outcome} eq 'denied' }],
        [operation => 'members__create', sub { $_->{operation} eq 'members__create' }],
        [tool => 'roles__create',        sub { $_->{tool} eq 'roles__create' }],
        [error_code => 'conflict',       sub { ($_->{error_code} || q()) eq 'conflict' }],
        [surface => 'admin',             sub { $_->{surface} eq 'admin' }],
        [member => 'helper@example.org', sub { ($_->{member_id} || q()) eq $id{helper} }],
        [member => $id{helper},          sub { ($_->{member_id} || q()) eq $id{helper} }],
    ) {
        my ($key, $value, $is) = @$case;
        my @found = $list->($key => $value);
        cmp_ok(scalar @found, '>', 0, "$key $value finds some");
        is((grep { !$is->() } @found), 0, "$key $value: and only those");
    }
    is_deeply([$list->(surface => 'rest')], [], 'nobody came by REST');
    my @pages;
    my %page = (limit => 7, operation => 'members__get');
    my $whole = scalar(my @of_all = $list->(operation => 'members__get'));
    my $rounds = 0;
    while ($rounds++ < 500) {
        my $answer = make('audit__list', {%page});
        push @pages, @{ $answer->{items} };
        last if !defined $answer->{next_cursor};
        $page{cursor} = $answer->{next_cursor};
    }
    is_deeply([map { $_->{audit_id} } @pages], [map { $_->{audit_id} } @of_all], 'page by page it is the same list') if $whole <= 1000;
    my $row = $of_all[0];
    is_deeply(make('audit__get', { audit => $row->{audit_id} }), $row, 'one row by its id');
    for my $bad ('0-1', '1', 'x-1', "$row->{audit_id}0", '-1', $row->{audit_id} =~ s/-/-0/r) {
        attempt("no row has the id $bad", 'auditor', 'audit__get', { audit => $bad }, 'not_found');
    }
    my $time = $all[10]{time};
    is((grep { $_->{time} lt $time } $list->(since => $time)), 0, 'since a time');
    is((grep { $_->{time} ge $time } $list->(until => $time)), 0, 'until a time');
    is_deeply([$list->(until => '7d')], [], 'a span is before now');
    cmp_ok(scalar($list->(since => '7d')), '>', 500, 'and since then there are many');
    for my $bad ('yesterday', '2026-13-01', '1y', '-5m', '2026-02-30', '2026-01-01T25:00:00Z') {
        is((act('root', 'audit__list', { since => $bad }))[1]{code}, 'invalid_request', "no time: $bad");
    }
    my @later = @{ make('audit__list', { after => $all[5]{audit_id}, limit => 5 })->{items} };
    is_deeply([map { $_->{audit_id} } @later], [reverse map { $_->{audit_id} } @all[0 .. 4]], 'after an id: what came later, oldest first');
};

subtest 'no secret is anywhere but where it belongs' => sub {
    my @secrets = map { "pLaNtEd-$_-7f3a" } qw(one two three four);
    my $made = make('connections__create', { connector => 'shop', label => 'secret', shared => $true, credential => { token => $secrets[0] } });
    make('connections__update', { connection => 'secret', credential => { token => $secrets[1] } });
    act('admin', 'connections__create', { connector => 'shop', label => 'secret2', shared => $true, credential => { wrong => $secrets[2] } });
    act('member', 'connections__update', { connection => 'secret', credential => { token => $secrets[3] } });
    my $grant = make('grants__create', { member => 'member@example.org', client => 'x' });
    push @secrets, $grant->{token};
    unlike(MCP::Json::encode($made), qr/\Q$secrets[0]\E/, 'not in the answer that takes it');
    my @outputs;
    for my $method (sort keys %row) {
        next if $row{$method}{classification} ne 'read';
        for my $params (
            {}, { limit => 1000 }, { connection => 'secret' }, { connector => 'shop' }, { grant => $grant->{grant} },
            { member => 'member@example.org' }, { role => 'Helper' }, { key => 'collapse.mode' }, { limit => 200 }
        ) {
            my ($result) = act('root', $method, $params);
            push @outputs, MCP::Json::encode($result) if $result;
        }
    }
    cmp_ok(scalar @outputs, '>', 20, 'all reading operations were asked');
    my $everything = join "\n", @outputs;
    is_deeply([grep { index($everything, $_) >= 0 } @secrets], [], 'no reading operation shows one');
    is_deeply([$everything =~ /(token_key|"credential":|"sealed")/], [], 'nor anything made of one');
    is($policyd->stop, 0, 'policyd stops');
    my $log = MCP::Root::slurp($policyd->log);
    is_deeply([grep { index($log, $_) >= 0 } @secrets], [], 'none is in the log, at debug');
    for my $file (glob $policyd->dir . '/state/*') {
        my $bytes = MCP::Root::slurp($file);
        is_deeply([grep { index($bytes, $_) >= 0 } @secrets], [], 'none is in ' . ($file =~ s{.*/}{}r));
    }
    $policyd->start;
    is(make('connections__get', { connection => 'secret' })->{state}, 'ready', 'the connection still has its credential after a restart');
};

is($policyd->stop, 0, 'policyd stops');
my @bad = MCP::Log::unexpected([$policyd->log]);
ok(!@bad, 'the log holds nothing unexpected');
diag("  $_") for @bad;

done_testing();
