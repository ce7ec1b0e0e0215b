# Who may do what, sentence by sentence, in the order in which it is promised: grant, permission, visibility, scope, arguments and
# URL; then restrictions, from what a rule is to why it decided. Each sentence is one test, shown at the endpoint where it speaks
# of it. The upstream's log is the witness of what was sent.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Httpd;
use MCP::Json;
use MCP::Net;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts challenge result verdict);

my $yes = MCP::Json::true();
my $no = MCP::Json::false();
my $API = '/api/v1';

# Children few and small enough that a handful of connections meets several of them.
my $server = <<"EOF";
<IfModule !mpm_prefork_module>
    StartServers 3
    ServerLimit 3
    ThreadsPerChild 16
    MaxRequestWorkers 48
    MinSpareThreads 1
    MaxSpareThreads 48
</IfModule>
<IfModule mpm_prefork_module>
    StartServers 12
    MinSpareServers 12
    MaxRequestWorkers 64
</IfModule>
MaxKeepAliveRequests 0
MCPPolicyTimeout 1s
LogFormat "%P" pid
<Location "$API">
    MCPApi On
</Location>
EOF

sub serve {
    my ($request) = @_;
    return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" if $request->{method} eq 'HEAD';
    return MCP::Upstream::json(200, { target => $request->{target} });
}

my $stack = MCP::Stack->new(webdav => 0, allow => [], server => $server);
my $upstream = MCP::Upstream->start(root => $stack->root, serve => \&serve);
my $pids = $stack->root->path('pids.log');
$stack->reconfigure(allow => [ $upstream->origin ], server => qq(${server}CustomLog "$pids" pid\n));
$stack->gateway->graceful;
my $metadata = $stack->gateway->origin . '/.well-known/oauth-protected-resource/mcp';

# --- the applications -------------------------------------------------------------------

sub op {
    my ($id, $method, $path, %more) = @_;
    my @names = $path =~ /\{(\w+)\}/g;
    my @parameters = map { { name => $_, in => 'path', required => $yes, schema => { type => 'string' } } } @names;
    push @parameters, @{ delete $more{parameters} || [] };
    return { id => $id, method => $method, path => $path, description => "$id of the people", parameters => \@parameters, %more };
}

sub people {
    my ($slug) = @_;
    return {
        slug       => $slug,
        label      => "People of $slug",
        base_url   => $upstream->origin . "/$slug",
        operations => [
            op('list_users', 'GET', '/users', parameters => [ { name => 'page', in => 'query', schema => { type => 'integer' } } ]),
            op('get_user', 'GET', '/users/{id}', parameters => [ { name => 'page', in => 'query', schema => { type => 'integer' } } ]),
            op('get_admin',   'GET',    '/users/admin'),
            op('has_user',    'HEAD',   '/users/{id}'),
            op('create_user', 'POST',   '/users'),
            op('put_user',    'PUT',    '/users/{id}'),
            op('patch_user',  'PATCH',  '/users/{id}'),
            op('delete_user', 'DELETE', '/users/{id}'),
            op('find_users',  'POST',   '/search', classification => 'read'),
            op('export_all',  'GET',    '/export', classification => 'destructive'),
            op('empty_bin',   'DELETE', '/bin', classification => 'write'),
            op('wipe',        'DELETE', '/everything', classification => 'forbidden'),
            op('move_user', 'MOVE', '/users/{id}', parameters => [ { name => 'Destination', in => 'header', required => $yes, format => 'url', schema => { type => 'string' } } ])
        ]
    };
}

my %class = (
    list_users  => 'read',
    get_user    => 'read',
    get_admin   => 'read',
    has_user    => 'read',
    create_user => 'write',
    put_user    => 'write',
    patch_user  => 'write',
    delete_user => 'destructive',
    find_users  => 'read',
    export_all  => 'destructive',
    empty_bin   => 'write',
    move_user   => 'destructive'
);
my %rung = (read => 1, write => 2, destructive => 3);

my %cxn;
$cxn{$_} = $stack->connector(people($_))->{connection} for qw(crm hr);
$stack->member($_->[0], $_->[1])
    for [ 'second@example.org', 'Member' ], [ 'guest@example.org', 'Guest' ], [ 'admin@example.org', 'Admin' ], [ 'billing@example.org', 'Billing Admin' ];
my $member = $stack->client;
my $second = $stack->client(member => 'second@example.org');
my $owner = $stack->client(member => 'owner@example.org');
my $rows = $stack->policyd->admin('rpc.describe')->{result};
my @permissions = @{ $stack->policyd->admin('whoami__get')->{result}{permissions} };

sub names_of { my ($label, @ids) = @_; return sort map { "${label}__$_" } @ids ? @ids : keys %class }
my @all = sort map { names_of($_) } qw(crm hr);

# --- asking -----------------------------------------------------------------------------

sub rule { my (%rule) = @_; return $stack->ctl(qw(restrictions create), {%rule})->{restriction} }
sub drop { $stack->ctl(qw(restrictions delete), { restriction => $_ }) for @_; return }
sub connected { my ($who) = @_; return [ MCP::Client::connected($who->list) ] }
sub sent { return scalar(my @all = $upstream->requests) }
sub with_token { return MCP::Client->new(url => $stack->url, token => $_[0]) }
sub label { my ($which, $label) = @_; $stack->ctl(qw(connections update), { connection => $cxn{$which}, label => $label }); return }
sub set { my ($key, $value) = @_; $stack->ctl(qw(settings set), { key => $key, value => $value }); return }

# A control-plane operation over MCP: its result.
sub asked {
    my ($who, $op, $arguments) = @_;
    return result($who->call("elaichi__$op", $arguments || {}))->{structuredContent};
}

sub error_of { my ($answer) = @_; return ((result($answer) || {})->{structuredContent} || {})->{error} || {} }

sub rest {
    my ($who, $row) = @_;
    (my $path = $row->{rest}{path}) =~ s/\{\w+\}/x/g;
    my $method = $row->{rest}{method};
    my $has_body = $method !~ /^(?:GET|DELETE)\z/;
    my $answer = $who->request($method, "$API$path", [ Authorization => 'Bearer ' . $who->token, $has_body ? ('Content-Type' => 'application/json') : () ], $has_body ? '{}' : undef);
    $answer->{json} = eval { MCP::Json::decode($answer->{body}) } || {};
    return $answer;
}

# Answer, and "outcome code" of each row; sent or not is checked.
sub watched {
    my ($who, $tool, $arguments, $requests, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $mark = sent();
    my $answer;
    my @rows = attempts($stack, sub { $answer = $who->call($tool, $arguments) });
    is(sent(), $mark + $requests, "$what: " . ($requests ? 'sent' : 'nothing is sent'));
    return ($answer, join ', ', map { $_->{outcome} . ($_->{error_code} ? " $_->{error_code}" : q()) } @rows);
}

# A call must look like a name that never existed: same bytes but for the name, one row, nothing sent.
sub is_nothing {
    my ($who, $tool, $code, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $never = 'x' x length $tool;
    my $mark = sent();
    my $withheld;
    my @rows = attempts($stack, sub { $withheld = $who->call($tool, {%arguments}, id => '7') });
    my $unknown = $who->call($never, {%arguments}, id => '7');
    (my $body = $withheld->{body}) =~ s/\Q$tool\E/$never/g;
    is("$withheld->{status} $body", "$unknown->{status} $unknown->{body}", "$what: answers as a name that never existed");
    is(verdict($withheld), '200/-32602', "$what: an unknown tool");
    is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ["denied $code"], "$what: the row says $code");
    is(sent(), $mark, "$what: nothing is sent");
    return;
}

sub works {
    my ($who, $tool, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($answer, $row) = watched($who, $tool, {%arguments}, 1, $what);
    is(verdict($answer), '200/result', "$what: it is called") or diag(MCP::Client::text($answer));
    is($row, 'ok', "$what: one row");
    return;
}

sub lacks_scope {
    my ($who, $tool, $scopes, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($answer, $row) = watched($who, $tool, {%arguments}, 0, $what);
    is($answer->{status}, 403, "$what: 403");
    my $challenge = challenge($answer) || {};
    is_deeply([ $challenge->{error}, $challenge->{scope}, $challenge->{resource_metadata} ], [ ['insufficient_scope'], [$scopes], [$metadata] ],
        "$what: insufficient_scope, and all that it needs");
    is($row, 'denied insufficient_scope', "$what: one row");
    return;
}

sub lacks_permission {
    my ($who, $tool, $permission, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($answer, $row) = watched($who, $tool, {%arguments}, 0, $what);
    is(verdict($answer), '200/isError', "$what: an in-band error");
    is(MCP::Client::code($answer), 'permission_denied', "$what: permission_denied");
    is(error_of($answer)->{permission}, $permission, "$what: which names $permission");
    is($row, 'denied permission_denied', "$what: one row");
    return;
}

# --- who may do what: the order ------------------------------------------------------------

subtest 'a call is checked in this order: grant, permission, visibility, scope, arguments, URL' => sub {
    my @rules = (
        rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_admin' }, { connector => 'crm', operation => 'delete_user' } ]),
        rule(effect => 'block', target => { role => 'Auditor' }, items => [ { connector => 'crm' } ])
    );
    my $gone = $stack->grant('auditor@example.org', 'mcp:read');
    my $revoked = with_token($gone->{token});
    $stack->ctl(qw(grants revoke), { grant => $gone->{grant} });
    my $auditor = $stack->client(member => 'auditor@example.org', scopes => ['mcp:read']);
    my $low = $stack->client(scopes => ['mcp:read']);
    my $tools = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    my %wrong = (page => 'x', other => 1);

    my ($answer, $row) = watched($revoked, 'crm__delete_user', \%wrong, 0, 'all six are wrong');
    is($answer->{status}, 401, 'all six are wrong: the grant decides, 401');
    is($row, 'denied grant_revoked', 'all six are wrong: and is what the row says');
    lacks_permission($auditor, 'crm__delete_user', 'tool:execute', 'the grant is good, five are wrong: the permission decides', %wrong);
    is_nothing($low, 'crm__delete_user', 'restricted', 'the role is good, four are wrong: visibility decides', %wrong);
    lacks_scope($low, 'hr__delete_user', 'mcp:destructive mcp:tools', 'visible, three are wrong: the scope decides', id => 7, other => 1);
    lacks_scope($low, 'crm__get_user', 'mcp:read mcp:tools', 'a tool of lower class: still the scope', id => 'admin', page => 'x');
    ($answer, $row) = watched($tools, 'crm__get_user', { id => 'admin', page => 'x' }, 0, 'the scopes are good, two are wrong');
    is(MCP::Client::code($answer), 'invalid_arguments', 'the scopes are good, two are wrong: the arguments decide');
    is($row, 'error invalid_arguments', 'and are what the row says');
    ($answer, $row) = watched($tools, 'crm__get_user', { id => 'admin', page => 1 }, 0, 'the URL alone is wrong');
    is(MCP::Client::code($answer), 'url_restricted', 'the URL alone is wrong: it decides');
    is($row, 'denied url_restricted', 'and is what the row says');
    works($tools, 'crm__get_user', 'nothing is wrong', id => 'ada', page => 1);

    # an operation of the control plane: the same order as far as it goes
    my $create = 'elaichi__members__create';
    is($revoked->call($create, \%wrong)->{status}, 401, 'control plane: the grant before all');
    lacks_permission($auditor, $create, 'tool:execute', 'control plane: tool:execute next', %wrong);
    lacks_permission($low, $create, 'member:write', 'control plane: the operation\'s own permission before the scope', %wrong);
    lacks_scope($stack->client(member => 'owner@example.org', scopes => ['mcp:read']), $create, 'mcp:write', 'control plane: the scope before the arguments', %wrong);
    is(MCP::Client::code($owner->call($create, \%wrong)), 'invalid_request', 'control plane: the arguments last');
    drop(@rules);
};

subtest 'each check fails closed' => sub {
    my $before = sent();
    $stack->policyd->stop;
    for my $request ([ call => 'crm__list_users', {} ], ['list'], [ call => 'elaichi__whoami__get', {} ]) {
        my ($method, @words) = @$request;
        my $answer = $member->$method(@words);
        is($answer->{status}, 503, "$method @words[0 .. $#words - 1]: 503 where nobody can be asked");
        is(sent(), $before, "$method: nothing is sent");
    }
    $stack->policyd->start;
    ok(MCP::Net::wait_for(sub { $member->list->{status} == 200 }), 'and served again once somebody can');
};

# --- 1. grant -----------------------------------------------------------------------------

# Kept connections to several children, each with a client of this token; how many children they reach.
sub many_children {
    my ($origin, $token, $log) = @_;
    my @clients;
    my %pid;
    MCP::Net::wait_for(
        sub {
            my $client = MCP::Client->new(url => "$origin/mcp", token => $token, keep => 1);
            my $status = $client->call('hr__list_users', {})->{status};
            push @clients, $client if $status == 200;
            %pid = map { $_ => 1 } split /\n/, MCP::Root::slurp($log) || q();
            return keys %pid >= 2 && @clients >= 6; # which child takes a connection is the kernel's choice
        }
    );
    return ([@clients], scalar keys %pid);
}

subtest 'every call reads the grant and its member anew: revocation, expiry, suspension and removal hold on the very next call, in many children and on many nodes' => sub {
    my $node_pids = $stack->root->path('node-pids.log');
    (my $text = $stack->gateway_conf) =~ s/\Q$pids\E/$node_pids/;
    my $node = MCP::Httpd->new(root => $stack->root, name => 'node', conf => $text)->start;
    $stack->watch($node->log);
    my %take = (
        'a revoked grant'    => [ 'grant_revoked',    sub { $stack->ctl(qw(grants revoke), { grant => $_[0]{grant} }) } ],
        'a suspended member' => [ 'member_suspended', sub { $stack->ctl(qw(members suspend), { member => $_[0]{member} }) } ],
        'a removed member'   => [ 'member_suspended', sub { $stack->ctl(qw(members remove), { member => $_[0]{member} }) } ],
        'an expired grant'   => [ 'grant_expired',    sub { my ($grant) = @_; MCP::Net::wait_for(sub { with_token($grant->{token})->discover->{status} == 401 }, 20) } ]
    );
    my $n = 0;
    for my $what (sort keys %take) {
        my ($code, $take) = @{ $take{$what} };
        my $email = sprintf 'taken%d@example.org', ++$n;
        $stack->member($email, 'Member');
        my $grant = $stack->ctl(qw(grants create),
            { member => $email, client => 'test', scopes => [@MCP::Stack::ALL], $what =~ /expired/ ? (expires_in => 4) : () });
        MCP::Root::write_file($_, q()) for $pids, $node_pids;
        my ($here, $children) = many_children($stack->gateway->origin, $grant->{token}, $pids);
        my ($there, $others) = many_children($node->origin, $grant->{token}, $node_pids);
        cmp_ok($children, '>=', 2, "$what: served before by several children");
        cmp_ok($others, '>=', 2, "$what: and by several of another node");
        $take->({ %$grant, member => $email });
        my $mark = sent();
        my %status;
        my @rows = attempts($stack, sub { $status{ $_->call('hr__list_users', {})->{status} }++ for @$here, @$there });
        is_deeply(\%status, { 401 => @$here + @$there }, "$what: the next call is 401 on each of their connections");
        is(sent(), $mark, "$what: nothing is sent");
        is_deeply([ grep { $_ ne "denied $code" } map { "$_->{outcome} $_->{error_code}" } @rows ], [], "$what: each row says $code");
        is(scalar @rows, @$here + @$there, "$what: one for each");
        is($here->[0]->list->{status}, 401, "$what: so is a list");
        is(rest($here->[0], { rest => { method => 'GET', path => '/whoami' } })->{status}, 401, "$what: and the REST API");
    }
    $node->stop;
};

subtest 'a grant that does not hold is answered 401 with a challenge that names the metadata' => sub {
    my $grant = $stack->grant('member@example.org');
    $stack->ctl(qw(grants revoke), { grant => $grant->{grant} });
    for my $token ($grant->{token}, 'mcp_' . 'A' x 43) {
        my $answer = with_token($token)->call('crm__list_users', {});
        is($answer->{status}, 401, 'refused');
        my $challenge = challenge($answer) || {};
        is($challenge->{scheme}, 'Bearer', 'Bearer');
        is_deeply([ $challenge->{error}, $challenge->{resource_metadata} ], [ ['invalid_token'], [$metadata] ], 'invalid_token, and where the metadata is');
    }
    my $found = MCP::Json::decode($member->request('GET', '/.well-known/oauth-protected-resource/mcp', [])->{body});
    is($found->{resource}, $stack->url, 'which is there, and speaks of this endpoint');
};

# --- 2. permission --------------------------------------------------------------------------

subtest 'tool:execute comes ahead of every scope: without it the list is empty, and a call is an in-band error that names it' => sub {
    for my $scopes ([@MCP::Stack::ALL], ['mcp:read'], ['mcp:tools']) {
        my $who = $stack->client(member => 'auditor@example.org', scopes => $scopes);
        my $list = $who->list;
        is(verdict($list), '200/result', "@$scopes: tools/list is served");
        is_deeply(result($list)->{tools}, [], "@$scopes: and empty");
        lacks_permission($who, $_, 'tool:execute', "@$scopes, $_", id => '1')
            for qw(crm__get_user crm__delete_user crm__wipe nobody__nothing elaichi__whoami__get elaichi__members__remove elaichi__nothing__get);
    }
};

subtest 'of the built-in roles Owner, Admin and Member hold it; Guest, Auditor and Billing Admin do not' => sub {
    my %holds = (owner => 1, admin => 1, member => 1, guest => 0, auditor => 0, billing => 0);
    my %role = (owner => 'Owner', admin => 'Admin', member => 'Member', guest => 'Guest', auditor => 'Auditor', billing => 'Billing Admin');
    for my $name (sort keys %holds) {
        my $who = $stack->client(member => "$name\@example.org");
        is(MCP::Client::code($who->call('crm__list_users', {})), $holds{$name} ? undef : 'permission_denied', "$role{$name}: " . ($holds{$name} ? 'may' : 'may not'));
        is(scalar @{ connected($who) }, $holds{$name} ? scalar @all : 0, "$role{$name}: the list says the same");
        my $has = grep { $_ eq 'tool:execute' } @{ $stack->ctl(qw(roles get), $role{$name})->{permissions} };
        is($has, $holds{$name}, "$role{$name}: so does the role");
    }
};

subtest 'custom roles are sets of permissions' => sub {
    $stack->ctl(qw(roles create), { name => 'Runner', permissions => ['tool:execute'] });
    $stack->ctl(qw(roles create), { name => 'Reader', permissions => ['member:read'] });
    $stack->member('custom@example.org', 'Runner');
    my $who = $stack->client(member => 'custom@example.org');
    works($who, 'crm__list_users', 'the one that it holds');
    lacks_permission($who, 'elaichi__members__list', 'member:read', 'one that it does not');
    $stack->ctl(qw(members update), { member => 'custom@example.org', roles => [qw(Runner Reader)] });
    is(verdict($who->call('elaichi__members__list', {})), '200/result', 'two roles add up');
    $stack->ctl(qw(members update), { member => 'custom@example.org', roles => ['Reader'] });
    lacks_permission($who, 'elaichi__members__list', 'tool:execute', 'the other one alone');
};

subtest 'each operation of the control plane names its own permission' => sub {
    $stack->ctl(qw(roles create), { name => 'Lacking', permissions => \@permissions });
    $stack->member('lacking@example.org', 'Lacking');
    my $who = $stack->client(member => 'lacking@example.org');
    my %by;
    push @{ $by{ $_->{permission} } }, $_ for grep { defined $_->{permission} } @$rows;
    cmp_ok(scalar keys %by, '>', 20, 'there are more than twenty');
    for my $permission (sort keys %by) {
        my @others = grep { $_ ne $permission } @permissions;
        $stack->ctl(qw(roles update), { role => 'Lacking', permissions => \@others });
        my %listed = map { $_ => 1 } MCP::Client::names($who->list);
        for my $row (@{ $by{$permission} }) {
            my $name = "elaichi__$row->{name}";
            my $answer = $who->call($name, {});
            is(MCP::Client::code($answer), 'permission_denied', "$row->{name} without $permission: denied over MCP, in-band");
            is(error_of($answer)->{permission}, $permission, "$row->{name}: which names it");
            $answer = rest($who, $row);
            is("$answer->{status} $answer->{json}{code} $answer->{json}{permission}", "403 permission_denied $permission", "$row->{name}: over REST 403, which names it");
            ok(!$listed{$name}, "$row->{name}: and is not listed");
        }
        next if $permission eq 'tool:execute';
        $stack->ctl(qw(roles update), { role => 'Lacking', permissions => [ $permission, 'tool:execute' ] });
        for my $row (@{ $by{$permission} }) {
            my $answer = $who->call("elaichi__$row->{name}", {});
            isnt(error_of($answer)->{permission}, $permission, "$row->{name} with $permission: goes on");
            isnt(rest($who, $row)->{json}{permission}, $permission, "$row->{name}: over REST too");
        }
    }
    $stack->ctl(qw(members remove), { member => 'lacking@example.org' });
};

# --- 3. visibility ----------------------------------------------------------------------------

subtest 'what a member can not have answers a call exactly as a name that never existed, and the row says why' => sub {
    $stack->ctl(qw(connections create), { connector => 'crm', label => 'theirs', owner => 'second@example.org' });
    $stack->ctl(qw(connections create), { connector => 'crm', label => 'boxed', shared => $yes, toolbox_only => $yes });
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => [], members => ['second@example.org'], entries => [ { connector => 'crm', operation => 'list_users', connections => ['boxed'] } ] });
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr', operation => 'put_user' } ]);
    my @cases = (
        [ 'crm__nothing',       'unknown_tool', 'a name that never existed' ],
        [ 'theirs__list_users', 'restricted',   'somebody else\'s connection' ],
        [ 'boxed__list_users',  'restricted',   'a connection that serves toolboxes only' ],
        [ 'desk__list_users',   'restricted',   'a toolbox of others' ],
        [ 'crm__wipe',          'forbidden',    'a forbidden operation' ],
        [ 'hr__put_user',       'restricted',   'a restriction' ]
    );
    my %listed = map { $_ => 1 } @{ connected($member) };
    for my $case (@cases) {
        my ($tool, $code, $what) = @$case;
        is_nothing($member, $tool, $code, $what, id => '1');
        ok(!$listed{$tool}, "$what: and is not listed");
        is_deeply(asked($member, 'tools__get', { names => [$tool] }), { items => [], unknown => [$tool] }, "$what: nor defined");
        is_deeply(asked($member, 'tools__list', { query => $tool })->{items}, [], "$what: nor found");
    }
    works($second, $_, "whose it is: $_") for qw(theirs__list_users desk__list_users);
    drop($rule);
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
};

subtest 'forbidden is reachable under no scope and no role' => sub {
    $stack->ctl(qw(roles create), { name => 'Everything', permissions => \@permissions });
    $stack->member('everything@example.org', 'Everything', 'Admin', 'Member');
    my $entry = { connector => 'crm', operation => 'wipe', connections => ['crm'] };
    is($stack->policyd->ctl_refusal(qw(toolboxes create), { name => 'wiper', roles => ['Member'], entries => [$entry] }), 'invalid_request', 'no toolbox takes it');
    $stack->ctl(qw(toolboxes create), { name => 'wiper', roles => [ 'Member', 'Owner', 'Everything' ], entries => [ { %$entry, operation => 'has_user', name => 'wipe' } ] });
    my $raised = people('crm');
    $_->{classification} = 'forbidden' for grep { $_->{id} eq 'has_user' } @{ $raised->{operations} };
    $stack->ctl(qw(connectors update), { %$raised, auth => { type => 'none' }, connector => 'crm' });
    my @rules = map { rule(effect => 'allow', target => { role => $_ }, items => [ { connector => 'crm' }, { connector => 'crm', operation => 'wipe' } ]) } qw(Owner Member Everything);
    for my $email (qw(owner@example.org member@example.org everything@example.org)) {
        for my $scopes ([@MCP::Stack::ALL], [qw(mcp:destructive mcp:tools)], ['mcp:read']) {
            my $who = $stack->client(member => $email, scopes => $scopes);
            is_nothing($who, 'crm__wipe', 'forbidden', "$email, @$scopes");
            is_nothing($who, 'crm__has_user', 'forbidden', "$email, @$scopes, one that became so", id => '1');
            is_nothing($who, 'wiper__wipe', 'forbidden', "$email, @$scopes, through a toolbox that had it before", id => '1');
            ok(!grep({ /(?:wipe|crm__has_user)\z/ } @{ connected($who) }), "$email, @$scopes: not listed");
        }
    }
    drop(@rules);
    $stack->ctl(qw(toolboxes delete), { toolbox => 'wiper' });
    $stack->ctl(qw(connectors update), { %{ people('crm') }, auth => { type => 'none' }, connector => 'crm' });
};

# --- 4. scope ------------------------------------------------------------------------------------

subtest 'the ladder: a rung includes those below it' => sub {
    for my $scope (qw(read write destructive)) {
        my $who = $stack->client(scopes => [ "mcp:$scope", 'mcp:tools' ]);
        my @may = grep { $rung{ $class{$_} } <= $rung{$scope} } sort keys %class;
        is_deeply(connected($who), [ sort map { names_of($_, @may) } qw(crm hr) ], "mcp:$scope: lists its rung and those below");
        works($who, 'crm__get_user', "mcp:$scope: calls a read", id => '1');
        my %above = (create_user => 'mcp:write mcp:tools', delete_user => 'mcp:destructive mcp:tools');
        for my $id (sort keys %above) {
            next if $rung{ $class{$id} } <= $rung{$scope} && (works($who, "crm__$id", "mcp:$scope: calls $id", id_for($id)), 1);
            lacks_scope($who, "crm__$id", $above{$id}, "mcp:$scope: not $id", id_for($id));
        }
    }
};

sub id_for { my ($id) = @_; return $id =~ /_user\z/ && $id ne 'create_user' ? (id => '1') : () }

subtest 'mcp:tools is needed for every connected tool and for none of the control plane, and replaces no rung' => sub {
    for my $scope (qw(mcp:read mcp:write mcp:destructive)) {
        my $who = $stack->client(scopes => [$scope]);
        is_deeply(connected($who), [], "$scope alone: no connected tool is listed");
        lacks_scope($who, 'crm__list_users', 'mcp:read mcp:tools', "$scope alone: nor called");
        is(verdict($who->call('elaichi__whoami__get', {})), '200/result', "$scope alone: the control plane is");
        ok(scalar(grep { $_ eq 'elaichi__whoami__get' } MCP::Client::names($who->list)), "$scope alone: and listed");
    }
    my $tools = $stack->client(scopes => ['mcp:tools']);
    is_deeply([ MCP::Client::names($tools->list) ], [], 'mcp:tools alone: nothing is listed');
    lacks_scope($tools, 'crm__list_users', 'mcp:read mcp:tools', 'mcp:tools alone: it is no rung, not even the lowest');
    lacks_scope($tools, 'elaichi__whoami__get', 'mcp:read', 'mcp:tools alone: nor for the control plane');
};

subtest 'a connected tool whose method is DELETE needs mcp:tools and mcp:destructive' => sub {
    for my $scopes ([qw(mcp:tools mcp:write)], ['mcp:destructive']) {
        lacks_scope($stack->client(scopes => $scopes), 'crm__delete_user', 'mcp:destructive mcp:tools', "@$scopes", id => '1');
    }
    works($stack->client(scopes => [qw(mcp:destructive mcp:tools)]), 'crm__delete_user', 'with both', id => '1');
};

subtest 'what is missing is a 403 that names all scopes needed, to clients of any age' => sub {
    my $who = $stack->client(scopes => ['mcp:read']);
    my $answer = $who->call('crm__delete_user', { id => '1' });
    is("$answer->{json}{error} $answer->{json}{scope}", 'insufficient_scope mcp:destructive mcp:tools', 'the body says what the challenge says');
    for my $version (qw(2025-03-26 2025-11-25)) {
        my $old = $who->legacy('tools/call', { name => 'crm__delete_user', arguments => { id => '1' } }, version => $version);
        is($old->{status}, 403, "$version: 403");
        is_deeply((challenge($old) || {})->{scope}, ['mcp:destructive mcp:tools'], "$version: the same challenge");
    }
    my ($delete) = grep { $_->{name} eq 'connections__delete' } @$rows;
    my $rest = rest($who, $delete);
    is("$rest->{status} $rest->{json}{code}", '403 insufficient_scope', 'over REST too');
    is_deeply((challenge($rest) || {})->{scope}, ['mcp:destructive'], 'with the scope of the class');
};

subtest 'only a visible tool answers 403' => sub {
    my $low = $stack->client(scopes => ['mcp:read']);
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' } ]);
    lacks_scope($low, 'crm__delete_user', 'mcp:destructive mcp:tools', 'visible', id => '1');
    is_nothing($low, 'hr__delete_user', 'restricted', 'restricted', id => '1');
    is_nothing($low, 'theirs__delete_user', 'restricted', 'somebody else\'s', id => '1');
    is_nothing($low, 'crm__wipe', 'forbidden', 'forbidden');
    is_nothing($low, 'crm__nothing', 'unknown_tool', 'unknown');
    drop($rule);
};

subtest 'classification: GET and HEAD read, POST, PUT and PATCH write, DELETE destroys; the catalog raises or lowers it for each operation' => sub {
    my %tool = map { $_->{name} => $_ } @{ result($member->list)->{tools} };
    for my $id (sort keys %class) {
        my $hints = $tool{"crm__$id"}{annotations};
        is($hints->{readOnlyHint} ? 1 : 0, $class{$id} eq 'read' ? 1 : 0, "$id: readOnlyHint says whether it is $class{$id}");
        is($hints->{destructiveHint} ? 1 : 0, $class{$id} eq 'destructive' ? 1 : 0, "$id: destructiveHint too");
        my %arguments = (id_for($id), $id eq 'move_user' ? (Destination => 'users/2') : ());
        my @rows = attempts($stack, sub { $member->call("crm__$id", \%arguments) });
        is_deeply([ map { "$_->{outcome} $_->{classification}" } @rows ], ["ok $class{$id}"], "$id: the row says $class{$id}");
        my @below = grep { $rung{$_} < $rung{ $class{$id} } } qw(read write destructive);
        lacks_scope($stack->client(scopes => [ "mcp:$below[-1]", 'mcp:tools' ]), "crm__$id", "mcp:$class{$id} mcp:tools", "$id: the rung below is not enough", %arguments) if @below;
    }
};

# --- not advertised, not searched, not counted --------------------------------------------------------

sub shown_to {
    my ($who) = @_;
    my $weight = asked($who, 'footprint__get');
    return {
        list      => connected($who),
        found     => [ map { $_->{name} } @{ asked($who, 'tools__list')->{items} } ],
        connected => $weight->{connected}{tools},
        all       => $weight->{tools},
        listed    => scalar(my @names = MCP::Client::names($who->list))
    };
}

subtest 'what a token can not call is not advertised, not searched and not counted' => sub {
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' } ]);
    for my $scopes ([qw(mcp:read mcp:tools)], [qw(mcp:write mcp:tools)], [@MCP::Stack::ALL], ['mcp:read']) {
        my $who = $stack->client(scopes => $scopes);
        my ($highest) = sort { $b <=> $a } map { $rung{ s/^mcp://r } || 0 } @$scopes;
        my $has_tools = grep { $_ eq 'mcp:tools' } @$scopes;
        my @may = $has_tools ? names_of('crm', grep { $rung{ $class{$_} } <= $highest } keys %class) : ();
        my $shown = shown_to($who);
        is_deeply($shown->{list}, \@may, "@$scopes: not in tools/list");
        is_deeply($shown->{found}, \@may, "@$scopes: not in what is searched");
        is($shown->{connected}, scalar @may, "@$scopes: not counted");
        is($shown->{all}, $shown->{listed}, "@$scopes: and the sum is what is listed");
    }
    my ($crm) = @{ asked($member, 'connectors__list')->{items} };
    is($crm->{operations}, scalar keys %class, 'the catalog\'s count is without the forbidden');
    is_deeply($crm->{by_class}, { read => 5, write => 4, destructive => 3, forbidden => 0 }, 'by class too');
    is_deeply([ map { $_->{slug} } @{ asked($member, 'connectors__list')->{items} } ], ['crm'], 'and the withheld connector is not counted');
    drop($rule);
};

subtest 'advertise.step_up lists tools that only lack a scope; off by default; a call answers 403 all the same' => sub {
    my $low = $stack->client(scopes => ['mcp:read']);
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' } ]);
    is($stack->ctl(qw(settings get advertise.step_up))->{value}, $no, 'off by default');
    is_deeply(connected($low), [], 'off: nothing connected');
    set('advertise.step_up', $yes);
    is_deeply(connected($low), [ names_of('crm') ], 'on: what only lacks a scope is listed, what is withheld is not');
    my $shown = shown_to($low);
    is_deeply($shown->{found}, [ names_of('crm') ], 'on: found');
    is($shown->{connected}, scalar keys %class, 'on: and counted');
    is($shown->{all}, $shown->{listed}, 'on: in the sum too');
    ok(scalar(grep { $_ eq 'elaichi__connections__delete' } MCP::Client::names($low->list)), 'on: operations of the control plane too');
    ok(!scalar(grep { $_ eq 'elaichi__members__list' } MCP::Client::names($low->list)), 'on: but none that lacks a permission');
    lacks_scope($low, 'crm__delete_user', 'mcp:destructive mcp:tools', 'on: called', id => '1');
    is_nothing($low, 'hr__delete_user', 'restricted', 'on: what is withheld', id => '1');
    is_deeply(connected($stack->client(member => 'auditor@example.org')), [], 'on: who lacks tool:execute still sees nothing');
    $stack->ctl(qw(settings unset advertise.step_up));
    is_deeply(connected($low), [], 'off again');
    drop($rule);
};

subtest 'filtering comes before ranking: what is withheld takes no place among the results' => sub {
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ map { { connector => 'crm', operation => $_ } } qw(create_user delete_user get_user has_user) ]);
    my $found = asked($member, 'tools__list', { query => '_user', account => 'crm', limit => 2 });
    is_deeply([ map { $_->{name} } @{ $found->{items} } ], [qw(crm__find_users crm__list_users)], 'a page is full of what can be had');
    my @rest;
    my $page = $found;
    while ($page->{next_cursor} && @rest < 20) {
        $page = asked($member, 'tools__list', { query => '_user', account => 'crm', limit => 2, cursor => $page->{next_cursor} });
        push @rest, map { $_->{name} } @{ $page->{items} };
    }
    is_deeply(\@rest, [ map { "crm__$_" } qw(move_user patch_user put_user) ], 'and the pages after it');
    is(asked($member, 'tools__list', { query => 'get_user', account => 'crm', limit => 1 })->{next_cursor}, undef, 'no page is promised for what is withheld');
    drop($rule);
};

# --- restrictions ------------------------------------------------------------------------------------------

sub refused { my ($rule) = @_; return $stack->policyd->ctl_refusal(qw(restrictions create), $rule) }

subtest 'a restriction is an effect, a target and items: allow or block, one role or one user, whole connectors or single operations' => sub {
    my @good = (
        { effect => 'allow', target => { role => 'Guest' }, items => [ { connector => 'crm' } ] },
        { effect => 'block', target => { role => 'Guest' }, items => [ { connector => 'crm', operation => 'get_user' }, { connector => 'hr' } ] },
        { effect => 'block', target => { member => 'second@example.org' }, items => [] }
    );
    for my $rule (@good) {
        my $made = $stack->ctl(qw(restrictions create), $rule);
        is($made->{effect}, $rule->{effect}, MCP::Json::encode($rule) . ': taken');
        drop($made->{restriction});
    }
    my %whole = %{ $good[0] };
    my @bad = (
        [ { %whole, effect => 'deny' }, 'another effect' ],
        [ { %whole, target => { role => 'Guest', member => 'second@example.org' } }, 'two targets' ],
        [ { %whole, target => { connector => 'crm' } }, 'another target' ],
        [ { %whole, target => { role => [ 'Guest', 'Member' ] } }, 'two roles' ],
        [ { %whole, target => { toolbox => 'x' } }, 'a toolbox as target' ],
        [ { %whole, items => [ { method => 'GET' } ] }, 'another item' ],
        [ { %whole, items => [ { connector => 'crm', path => '/users' } ] }, 'an item by path' ],
        [ { %whole, items => [ { connector => 'crm', classification => 'write' } ] }, 'an item by class' ]
    );
    like(refused($_->[0]) || 'taken', qr/^(?:invalid_request|not_found)\z/, "$_->[1]: refused") for @bad;
    is_deeply($stack->ctl(qw(restrictions list))->{items}, [], 'and nothing is left of them');
};

subtest 'no rule at all means that everything is allowed' => sub {
    is_deeply(connected($member), \@all, 'all is listed');
    works($member, 'crm__get_user', 'and called', id => '1');
};

subtest 'there is no organisation-wide rule' => sub {
    for my $target ({}, { role => '*' }, { role => 'all' }, { organisation => $yes }, { member => '*' }) {
        like(refused({ effect => 'block', target => $target, items => [ { connector => 'crm' } ] }) || 'taken', qr/^(?:invalid_request|not_found)\z/,
            MCP::Json::encode($target) . ': refused');
    }
    like(refused({ effect => 'block', items => [ { connector => 'crm' } ] }) || 'taken', qr/^invalid_request\z|^exit 2/, 'no target: refused');
    is_deeply(connected($member), \@all, 'and nothing has changed');
};

subtest 'a member with any user rule is governed by user rules alone: they replace the roles\' rules, and are not laid over them' => sub {
    my @role = (
        rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm' } ]),
        rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'hr', operation => 'list_users' } ])
    );
    is_deeply(connected($member), ['hr__list_users'], 'the roles\' rules hold');
    my $own = rule(effect => 'block', target => { member => 'member@example.org' }, items => []);
    is_deeply(connected($member), \@all, 'any rule, even one that says nothing, replaces them all');
    works($member, 'crm__get_user', 'what the role blocks', id => '1');
    my $more = rule(effect => 'block', target => { member => 'member@example.org' }, items => [ { connector => 'hr', operation => 'list_users' } ]);
    is_deeply(connected($member), [ grep { $_ ne 'hr__list_users' } @all ], 'his own rules add up among themselves');
    is_nothing($member, 'hr__list_users', 'restricted', 'what the role allows');
    is_deeply(connected($second), ['hr__list_users'], 'for others the roles\' still hold');
    drop($own, $more);
    is_deeply(connected($member), ['hr__list_users'], 'without rules of his own they hold again');
    drop(@role);
};

subtest 'otherwise the rules of his role hold, of all his roles if there are several' => sub {
    $stack->ctl(qw(roles create), { name => 'Desk', permissions => ['tool:execute'] });
    $stack->member('both@example.org', 'Member', 'Desk');
    my $both = $stack->client(member => 'both@example.org');
    my @rules = (
        rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm' } ]),
        rule(effect => 'block', target => { role => 'Desk' }, items => [ { connector => 'hr' } ])
    );
    is_deeply(connected($both), [], 'both');
    is_deeply(connected($member), [ names_of('hr') ], 'the one');
    $stack->ctl(qw(members update), { member => 'both@example.org', roles => ['Desk'] });
    is_deeply(connected($both), [ names_of('crm') ], 'the other, from the next call on');
    drop(@rules);
    $stack->ctl(qw(members update), { member => 'both@example.org', roles => [qw(Member Desk)] });
};

subtest 'within the layer that wins allows unite, blocks unite, and blocks beat allows' => sub {
    my $both = $stack->client(member => 'both@example.org');
    my @rules = (
        rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_user' }, { connector => 'crm', operation => 'list_users' } ]),
        rule(effect => 'allow', target => { role => 'Desk' }, items => [ { connector => 'hr' } ])
    );
    is_deeply(connected($both), [ sort qw(crm__get_user crm__list_users), names_of('hr') ], 'allows unite');
    push @rules,
        rule(effect => 'block', target => { role => 'Desk' }, items => [ { connector => 'crm', operation => 'get_user' } ]),
        rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr', operation => 'get_user' } ]);
    is_deeply(connected($both), [ sort 'crm__list_users', grep { $_ ne 'hr__get_user' } names_of('hr') ], 'blocks unite and beat allows, of whichever role');
    is_nothing($both, $_, 'restricted', $_, id => '1') for qw(crm__get_user hr__get_user);
    drop(@rules);
};

subtest 'the presence of an allow rule engages the allowlist, not its contents: one with no items denies everything' => sub {
    my $rule = rule(effect => 'allow', target => { role => 'Member' }, items => []);
    is_deeply(connected($member), [], 'nothing is listed');
    is_deeply(asked($member, 'tools__list')->{items}, [], 'nothing is found');
    is_deeply(asked($member, 'connectors__list')->{items}, [], 'nothing is to browse');
    is_nothing($member, 'crm__get_user', 'restricted', 'a call', id => '1');
    is(MCP::Client::code($member->call('elaichi__connections__create', { connector => 'crm', label => 'mine' })), 'not_found', 'nothing is to connect');
    $stack->ctl(qw(restrictions update), { restriction => $rule, items => [ { connector => 'crm' } ] });
    is_deeply(connected($member), [ names_of('crm') ], 'an item opens what it names');
    drop($rule);
    is_deeply(connected($member), \@all, 'without the rule all is open');
};

subtest 'a block item matches the advertised name, or the operation that it was pinned to when it was written' => sub {
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { tool => 'crm__get_user' } ]);
    is_nothing($member, 'crm__get_user', 'restricted', 'the name', id => '1');
    label(crm => 'sales');
    is_nothing($member, 'sales__get_user', 'restricted', 'the operation, under another name', id => '1');
    label(hr => 'crm');
    is_nothing($member, 'crm__get_user', 'restricted', 'the name, of another operation', id => '1');
    is_deeply(connected($member), [ sort grep { !/__get_user\z/ } map { names_of($_) } qw(crm sales) ], 'neither is listed');
    label(hr => 'hr');
    label(crm => 'crm');
    works($member, 'hr__get_user', 'the other operation under its own name', id => '1');
    drop($rule);
    $rule = $stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { tool => 'later__get_user' } ] });
    is_deeply(connected($member), \@all, 'a name that nobody has blocks nothing');
    label(hr => 'later');
    is_nothing($member, 'later__get_user', 'restricted', 'and whatever gets it later', id => '1');
    label(hr => 'hr');
    works($member, 'hr__get_user', 'and only under it', id => '1');
    drop($rule->{restriction});
};

subtest 'an allow item matches the pinned operation or connector only, not the displayed name' => sub {
    my $rule = rule(effect => 'allow', target => { role => 'Member' }, items => [ { tool => 'hr__get_user' } ]);
    is_deeply(connected($member), ['hr__get_user'], 'an allow by name is one of the operation that has it now');
    label(hr => 'staff');
    label(crm => 'hr');
    is_deeply(connected($member), ['staff__get_user'], 'it follows the operation');
    is_nothing($member, 'hr__get_user', 'restricted', 'the name alone', id => '1');
    works($member, 'staff__get_user', 'the operation', id => '1');
    my ($item) = @{ $stack->ctl(qw(restrictions get), $rule)->{items} };
    is_deeply([ map { "$_->{slug}/$_->{operation}" } @{ $item->{pins} } ], ['hr/get_user'], 'what it is pinned to is the operation');
    drop($rule);
    $rule = rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'crm' } ]);
    is_deeply(connected($member), [ names_of('hr') ], 'a connector, whatever its account is called');
    drop($rule);
    label(crm => 'crm');
    label(hr => 'hr');
};

subtest 'renaming an account neither escapes a block nor gains an allow' => sub {
    my $own = $stack->ctl(qw(connections create), { connector => 'crm', label => 'mine', owner => 'member@example.org' })->{connection};
    my $rename = sub { my ($label) = @_; return $member->call('elaichi__connections__update', { connection => $own, label => $label }) };
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { tool => 'mine__delete_user' } ]);
    is_nothing($member, 'mine__delete_user', 'restricted', 'blocked', id => '1');
    is(verdict($rename->('other')), '200/result', 'the governed member renames his account himself');
    is_nothing($member, 'other__delete_user', 'restricted', 'still blocked', id => '1');
    works($member, 'other__get_user', 'nothing else is', id => '1');
    drop($rule);
    is(MCP::Client::code($rename->('hr')), 'conflict', 'a shared account\'s name is not to be had');
    $rule = rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'hr', operation => 'get_user' }, { connector => 'crm', operation => 'list_users' } ]);
    label(hr => 'staff');
    is(verdict($rename->('hr')), '200/result', 'once it is free it is');
    is_nothing($member, 'hr__get_user', 'restricted', 'and opens nothing', id => '1');
    is_deeply(connected($member), [qw(crm__list_users hr__list_users staff__get_user)], 'what was allowed stays so, by operation');
    drop($rule);
    $stack->ctl(qw(connections delete), { connection => $own });
    label(hr => 'hr');
};

subtest 'an allow that names what the catalog lacks is refused when it is written' => sub {
    for my $item ({ connector => 'nix' }, { connector => 'crm', operation => 'nix' }, { tool => 'crm__nix' }, { tool => 'nix__get_user' }) {
        like(refused({ effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'hr' }, $item ] }) || 'taken', qr/^(?:invalid_request|not_found)\z/,
            MCP::Json::encode($item) . ': refused');
    }
    is_deeply($stack->ctl(qw(restrictions list))->{items}, [], 'as a whole');
    is_deeply(connected($member), \@all, 'nothing has changed');
};

subtest 'browse: the catalog shows no withheld connector or operation' => sub {
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' }, { connector => 'crm', operation => 'get_admin' } ]);
    is_deeply([ map { $_->{slug} } @{ asked($member, 'connectors__list')->{items} } ], ['crm'], 'connectors list');
    my $gone = $member->call('elaichi__connectors__get', { connector => 'hr' }, id => '7');
    my $never = $member->call('elaichi__connectors__get', { connector => 'nx' }, id => '7');
    is(without_audit($gone->{body}), without_audit($never->{body}), 'connectors get of the withheld one: as one that never existed');
    my $crm = asked($member, 'connectors__get', { connector => 'crm' });
    is_deeply([ sort map { $_->{id} } @{ $crm->{operations} } ], [ sort grep { $_ ne 'get_admin' } keys %class ], 'connectors get: neither the withheld nor the forbidden operation');
    unlike(MCP::Json::encode($crm), qr/get_admin|wipe/, 'not anywhere');
    is(asked($owner, 'connectors__get', { connector => 'hr' })->{slug}, 'hr', 'who is not governed by it sees it');
    drop($rule);
};

sub without_audit { my ($text) = @_; $text =~ s/\b\d+-\d+\b/AUDIT/g; return $text }

subtest 'connect: no connection to a withheld connector' => sub {
    my $make = sub { my ($who, $connector, %more) = @_; return $who->call('elaichi__connections__create', { connector => $connector, label => 'new', %more }) };
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' }, { connector => 'crm', operation => 'get_admin' } ]);
    is(without_audit($make->($member, 'hr')->{body} =~ s/"id":\d+//r), without_audit($make->($member, 'nx')->{body} =~ s/"id":\d+//r), 'as one that never existed');
    is(MCP::Client::code($make->($member, 'hr')), 'not_found', 'not found');
    isnt(verdict($make->($owner, 'hr', owner => 'second@example.org')), '200/result', 'nor can somebody else make it for him');
    is($stack->policyd->ctl_refusal(qw(connections create), { connector => 'hr', label => 'new', owner => 'second@example.org' }), 'conflict', 'by whatever door');
    is_deeply([ grep { $_->{label} eq 'new' } @{ $stack->ctl(qw(connections list --all))->{items} } ], [], 'and there is none');
    my $answer = $make->($member, 'crm');
    is(verdict($answer), '200/result', 'one of which something is left can be connected to');
    $stack->ctl(qw(connections delete), { connection => result($answer)->{structuredContent}{connection} });
    drop($rule);
};

subtest 'advertise: what is withheld is in no list, no search and no count' => sub {
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ map { { connector => 'crm', operation => $_, connections => ['crm'] } } qw(get_admin list_users) ] });
    my $before = shown_to($member);
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' }, { connector => 'crm', operation => 'get_admin' } ]);
    my $shown = shown_to($member);
    my @left = sort 'desk__list_users', grep { $_ ne 'crm__get_admin' } names_of('crm');
    is_deeply($shown->{list}, \@left, 'tools/list');
    is_deeply($shown->{found}, \@left, 'tools list');
    is_deeply(asked($member, 'tools__list', { query => 'admin' })->{items}, [], 'tools list with a query');
    is_deeply(asked($member, 'tools__list', { account => 'hr' })->{items}, [], 'tools list of an account');
    is_deeply(asked($member, 'tools__get', { names => ['crm__get_admin'] })->{items}, [], 'tools get');
    is($shown->{connected}, scalar @left, 'footprint');
    is($before->{connected} - $shown->{connected}, 2 + keys %class, 'which had them before');
    my $weight = asked($member, 'footprint__get');
    is_deeply([ map { $_->{connector} } @{ $weight->{connectors} } ], ['crm'], 'footprint by connector');
    unlike(MCP::Json::encode($weight), qr/get_admin|hr__/, 'footprint names none of it');
    is(asked($member, 'connectors__list')->{items}[0]{operations}, keys(%class) - 1, 'connectors list counts none of it');
    unlike(MCP::Json::encode(asked($member, $_, { $_ =~ /get/ ? (toolbox => 'desk') : () })), qr/get_admin/, "$_ shows none of it") for qw(toolboxes__list toolboxes__get);
    is($stack->ctl(qw(footprint get --member member@example.org))->{connected}{tools}, scalar @left, 'whoever asks about him gets the same number');
    is_deeply([ map { $_->{name} } @{ $stack->ctl(qw(tools list --member member@example.org))->{items} } ], \@left, 'and the same list');
    drop($rule);
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
};

subtest 'execute: what is withheld is not run, by no name and over no account' => sub {
    my $own = $stack->ctl(qw(connections create), { connector => 'crm', label => 'mine', owner => 'member@example.org' })->{connection};
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ { connector => 'crm', operation => 'get_user', connections => ['crm'], name => 'look' } ] });
    works($member, $_, "$_ before", id => '1') for qw(crm__get_user mine__get_user desk__look);
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_user' } ]);
    is_nothing($member, $_, 'restricted', $_, id => '1') for qw(crm__get_user mine__get_user desk__look);
    works($member, 'hr__get_user', 'the same of another connector', id => '1');
    drop($rule);
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
    $stack->ctl(qw(connections delete), { connection => $own });
};

subtest 'it is one resolver: what explain says of the four points is what happens at each' => sub {
    my @policies = (
        ['no rule'],
        [ 'a block of an operation', rule_of('block', { connector => 'crm', operation => 'get_user' }) ],
        [ 'a block of a connector', rule_of('block', { connector => 'crm' }) ],
        [ 'an allow of an operation', rule_of('allow', { connector => 'crm', operation => 'get_user' }) ],
        [ 'an allow of a connector and a block in it', rule_of('allow', { connector => 'crm' }), rule_of('block', { connector => 'crm', operation => 'list_users' }) ],
        [ 'an allow of nothing', rule_of('allow') ],
        [ 'an allow of what is forbidden', rule_of('allow', { connector => 'crm', operation => 'wipe' }) ]
    );
    for my $policy (@policies) {
        my ($what, @rules) = @$policy;
        my @made = map { rule(%$_) } @rules;
        my %listed = map { $_ => 1 } @{ connected($member) };
        my $crm = $member->call('elaichi__connectors__get', { connector => 'crm' });
        my %seen = map { $_->{id} => 1 } @{ (result($crm)->{structuredContent} || {})->{operations} || [] };
        my $connect = $member->call('elaichi__connections__create', { connector => 'crm', label => 'probe', dry_run => $yes });
        for my $id (qw(get_user list_users wipe)) {
            my $points = $stack->ctl(qw(restrictions explain), { member => 'member@example.org', tool => "crm__$id" })->{points};
            my %said = map { $_ => $points->{$_}{answer} eq 'ok' ? 1 : 0 } keys %$points;
            my %is = (
                browse    => $seen{$id} ? 1 : 0,
                connect   => verdict($connect) eq '200/result' ? 1 : 0,
                advertise => $listed{"crm__$id"} ? 1 : 0,
                execute   => verdict($member->call("crm__$id", { id_for($id) })) eq '200/result' ? 1 : 0
            );
            is_deeply(\%is, \%said, "$what, $id: the four points");
        }
        drop(@made);
    }
};

sub rule_of { my ($effect, @items) = @_; return { effect => $effect, target => { role => 'Member' }, items => \@items } }

# --- the URL --------------------------------------------------------------------------------------------------

sub url_refused {
    my ($tool, $what, %arguments) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($answer, $row) = watched($member, $tool, {%arguments}, 0, $what);
    is(MCP::Client::code($answer), 'url_restricted', "$what: url_restricted");
    is($row, 'denied url_restricted', "$what: one row");
    unlike($answer->{body}, qr/get_admin/, "$what: nothing withheld is named");
    return;
}

subtest 'the substituted URL has the origin of the connection\'s base' => sub {
    my ($port) = $upstream->origin =~ /:(\d+)\z/;
    my $origin = $upstream->origin;
    for my $value ('http://evil.example/crm/users/2', '//evil.example/crm/users/2', "$origin.evil.example/crm/users/2", "http://user\@127.0.0.1:$port/crm/users/2",
        'http://127.0.0.1:1/crm/users/2', "https://127.0.0.1:$port/crm/users/2", "http://127.0.0.2:$port/crm/users/2", 'http:\\\\evil.example\\x') {
        url_refused('crm__move_user', $value, id => '1', Destination => $value);
    }
    works($member, 'crm__move_user', 'one below the base', id => '1', Destination => 'users/2');
    works($member, 'crm__move_user', 'its absolute form', id => '1', Destination => "$origin/crm/users/2");
    my ($sent) = map { $_->[1] } grep { $_->[0] eq 'Destination' } @{ ($upstream->requests)[-1]{headers} };
    is($sent, "$origin/crm/users/2", 'as it was judged');
};

subtest 'after normalisation it still matches the template that it came from' => sub {
    for my $id ('../admin', '..', '.', '%2e%2e', '%2e%2e/%2e%2e/hr/users', '../../hr/users', '%252e%252e', 'x/../../export', 'x/../../../hr/users', '') {
        my ($answer) = watched($member, 'crm__get_user', { id => $id }, 0, "id '$id'");
        like(MCP::Client::code($answer) || 'none', qr/^(?:url_restricted|invalid_arguments)\z/, "id '$id': refused");
    }
    for my $id (qw(1 ada a.b a-b ada@example.org), 'a b', "\x{e9}", '...', 'a/b', 'a%2fb', 'a\\b', '//x') {
        my ($answer) = watched($member, 'crm__get_user', { id => $id }, 1, "id '" . ($id =~ /[^ -~]/ ? 'e acute' : $id) . q('));
        is(MCP::Client::code($answer), undef, 'one that is a single segment, encoded, is sent');
        like(($upstream->requests)[-1]{target}, qr{^/crm/users/[^/\\]+\z}, 'as one');
    }
};

subtest 'no more specific operation that is withheld from the caller claims it' => sub {
    works($member, 'crm__get_user', 'admin, where nothing is withheld', id => 'admin');
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_admin' } ]);
    url_refused('crm__get_user', "id '$_'", id => $_) for 'admin', '../users/admin', '%61dmin', 'ADMIN', 'admin/', 'admin;x=1', './admin', '%2561dmin';
    works($member, 'crm__get_user', 'another id', id => 'administrator');
    works($member, 'crm__put_user', 'another method', id => 'admin');
    works($member, 'hr__get_user', 'another connector', id => 'admin');
    works($owner, 'crm__get_user', 'another caller, from whom it is not withheld', id => 'admin');
    drop($rule);
    $rule = rule(effect => 'allow', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_user' } ]);
    url_refused('crm__get_user', 'not on the allowlist is withheld too', id => 'admin');
    works($member, 'crm__get_user', 'what is allowed, with an ordinary value', id => '1');
    drop($rule);
};

# --- in time -----------------------------------------------------------------------------------------------------

subtest 'a change of rules, roles, toolboxes and catalog made through this policyd applies at once' => sub {
    my @clients = map { $stack->client(keep => 1) } 1 .. 4;
    my $all_see = sub {
        my ($wanted, $what) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        is_deeply([ grep { MCP::Json::encode(connected($_)) ne MCP::Json::encode($wanted) } @clients ], [], "$what: on every connection");
    };
    $all_see->(\@all, 'before');
    my $rule = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'hr' } ]);
    $all_see->([ names_of('crm') ], 'a rule');
    drop($rule);
    $all_see->(\@all, 'its end');
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ { connector => 'crm', operation => 'list_users', connections => ['crm'] } ] });
    $all_see->([ sort @all, 'desk__list_users' ], 'a toolbox');
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
    $all_see->(\@all, 'its end');
    $stack->ctl(qw(connectors update), { %{ people('hr') }, auth => { type => 'none' }, connector => 'hr', operations => [ op('list_users', 'GET', '/users') ] });
    $all_see->([ sort { $a cmp $b } names_of('crm'), 'hr__list_users' ], 'the catalog');
    $stack->ctl(qw(connectors update), { %{ people('hr') }, auth => { type => 'none' }, connector => 'hr' });
    $all_see->(\@all, 'the catalog as before');
    $stack->ctl(qw(members update), { member => 'member@example.org', roles => ['Guest'] });
    $all_see->([], 'a member\'s roles');
    $stack->ctl(qw(members update), { member => 'member@example.org', roles => ['Member'] });
    $all_see->(\@all, 'the roles as before');
};

subtest 'never later than two minutes on any surface: a client may keep a list for 30 seconds, and only for itself' => sub {
    my $list = result($member->list);
    is($list->{ttlMs}, 30000, '30 seconds, beside the minute that policyd has for a change made elsewhere');
    is($list->{cacheScope}, 'private', 'and for nobody else');
};

# --- why -----------------------------------------------------------------------------------------------------------

subtest 'explain answers which layer won, which rule decided, and what each of the four points says' => sub {
    my $explain = sub { my ($tool, $who) = @_; return asked($owner, 'restrictions__explain', { member => $who || 'member@example.org', tool => $tool }) };
    my $points = sub { my ($why) = @_; return join ' ', map { "$_=$why->{points}{$_}{answer}" } qw(browse connect advertise execute) };
    my $why = $explain->('crm__get_user');
    is($why->{governed}, 'none', 'no rule: no layer');
    is($points->($why), 'browse=ok connect=ok advertise=ok execute=ok', 'no rule: four times ok');
    my $block = rule(effect => 'block', target => { role => 'Member' }, items => [ { connector => 'crm', operation => 'get_user' } ]);
    $why = $explain->('crm__get_user');
    is("$why->{governed} $why->{decided_by}{restriction} $why->{decided_by}{effect}", "roles $block block", 'a block: the roles\' layer, this rule');
    is($points->($why), 'browse=blocked connect=ok advertise=blocked execute=blocked', 'a block: the points');
    my $own = rule(effect => 'allow', target => { member => 'member@example.org' }, items => [ { connector => 'crm', operation => 'get_user' } ]);
    $why = $explain->('crm__get_user');
    is("$why->{governed} $why->{decided_by}{restriction} $why->{decided_by}{effect}", "user $own allow", 'an allow of his own: the user\'s layer, that rule');
    is($points->($why), 'browse=ok connect=ok advertise=ok execute=ok', 'an allow: the points');
    $why = $explain->('hr__get_user');
    is($why->{governed}, 'user', 'beside it: the user\'s layer');
    is($points->($why), join(' ', map { "$_=not on the allowlist" } qw(browse connect advertise execute)), 'beside it: the points');
    is($explain->('crm__get_user', 'second@example.org')->{governed}, 'roles', 'another member: the roles\' layer');
    is(MCP::Client::code($member->call('elaichi__restrictions__explain', { member => 'member@example.org', tool => 'crm__get_user' })), 'permission_denied', 'it takes a permission');
    drop($own, $block);
};

$upstream->stop;
$stack->end(expected => [qw(MCP0301 PD0121)]);
done_testing;
