# Every operation of the registry through every door: MCP tool, REST, admin socket, policyctl. The same arguments give the
# same result, up to ids, times and revisions, and the same row in the audit trail, which differs in its surface alone; what answers a
# secret points elsewhere over MCP; and who lacks the permission is told so at every door, with one denied row each.
#
# The table gives an example of the arguments of each operation, in an order in which what it needs has been made. An operation without
# an example fails.

use strict;
use warnings;
use Test::More;
use MCP::Admin;
use MCP::Client;
use MCP::Json;
use MCP::Stack;

plan skip_all => 'takes root, to be several members' if $> != 0;

my $gid = (getpwnam 'www-data')[3];
my %uid = (owner => 60301, guest => 60302);
my $true = MCP::Json::true();
my @doors = qw(mcp rest admin policyctl);

# --- the examples ----------------------------------------------------------------------

# The same with operations that nobody should get unseen.
sub wider {
    my ($c, @ids) = @_;
    my %file = connector_file($c);
    my @more = map { { id => $_, method => 'DELETE', path => "/$_", description => 'Takes everything away.' } } @ids;
    return (operations => [ @{ $file{operations} }, @more ]);
}

sub connector_file {
    my ($c) = @_;
    return (
        slug       => $c->{tag},
        label      => "Shop $c->{tag}",
        base_url   => 'https://shop.example.org/api',
        auth       => { type => 'none' },
        operations => [
            { id => 'list', method => 'GET', path => '/items', description => 'Lists the items.', parameters => [] },
            {
                id          => 'add',
                method      => 'POST',
                path        => '/items/{item}',
                description => 'Adds an item.',
                parameters  => [{ name => 'item', in => 'path', required => $true, schema => { type => 'string' } }]
            }
        ]
    );
}

# Operation, arguments for a door's own objects ($_[0]: its context, with a tag that no other door has), and what is kept of the
# result for later arguments. A read that sees the objects of all doors comes when each of them has made its own.
my @examples = (
    [whoami__get => sub { {} }],

    [members__create    => sub { { email => "$_[0]{tag}\@example.org", name => 'Somebody', roles => ['Member'] } }, 'member'],
    [members__list      => sub { { query => $_[0]{tag} } }],
    [members__get       => sub { { member => $_[0]{member} } }],
    [members__update    => sub { { member => $_[0]{member}, name => 'Somebody else' } }],
    [members__suspend   => sub { { member => $_[0]{member} } }],
    [members__reinstate => sub { { member => $_[0]{member} } }],

    [roles__create => sub { { name => "Role $_[0]{tag}", permissions => [qw(connector:read tool:execute)] } }, 'role'],
    [roles__list   => sub { { limit => 50 } }],
    [roles__get    => sub { { role => "Role $_[0]{tag}" } }],
    [roles__update => sub { { role => $_[0]{role}, description => 'For tests' } }],

    [grants__create => sub { { member => $_[0]{member}, client => 'doors', scopes => ['mcp:read'], expires_in => 3600 } }, 'grant'],
    [grants__list   => sub { { member => $_[0]{member} } }],
    [grants__get    => sub { { grant => $_[0]{grant} } }],

    [connectors__create => sub { +{ connector_file($_[0]) } }],
    [connectors__list   => sub { { query => $_[0]{tag} } }],
    [connectors__get    => sub { { connector => $_[0]{tag} } }],
    [connectors__update => sub { +{ connector_file($_[0]), connector => $_[0]{tag}, description => 'Sells things' } }],
    [connectors__import => sub { { connectors => [{ connector_file($_[0]), wider($_[0], qw(wipe burn)) }] } }],
    [connectors__review => sub { { connector => $_[0]{tag} } }],
    [connectors__accept => sub { { connector => $_[0]{tag}, operations => ['wipe'] } }],
    [connectors__dismiss => sub { { connector => $_[0]{tag} } }],
    [tools__lint        => sub { { connector => $_[0]{tag} } }],

    [connections__create => sub { { connector => $_[0]{tag}, label => $_[0]{tag}, shared => $true } }, 'connection'],
    [connections__list   => sub { { connector => $_[0]{tag} } }],
    [connections__get    => sub { { connection => $_[0]{tag} } }],
    [connections__update => sub { { connection => $_[0]{connection}, toolbox_only => MCP::Json::false() } }],

    [tools__list     => sub { { account => $_[0]{tag}, limit => 10 } }],
    [tools__search   => sub { { query => "$_[0]{tag} read", limit => 3 } }],
    [tools__get      => sub { { names => ["$_[0]{tag}__list", "$_[0]{tag}__nothing"] } }],
    [footprint__get  => sub { { client => 'doors' } }],

    [
        restrictions__create => sub {
            {
                effect => 'block',
                target => { role => 'Guest' },
                items  => [{ connector => $_[0]{tag}, operation => 'list' }],
                name   => "rule-$_[0]{tag}"
            }
        },
        'restriction'
    ],
    [restrictions__list    => sub { { connector => $_[0]{tag} } }],
    [restrictions__get     => sub { { restriction => $_[0]{restriction} } }],
    [restrictions__update  => sub { { restriction => $_[0]{restriction}, note => 'For tests' } }],
    [restrictions__explain => sub { { member => $_[0]{member}, tool => "$_[0]{tag}__list" } }],

    [
        toolboxes__create => sub {
            {
                name    => "box-$_[0]{tag}",
                roles   => ['Member'],
                entries => [{ connector => $_[0]{tag}, operation => 'list', connections => [$_[0]{tag}], name => 'look' }]
            }
        },
        'toolbox'
    ],
    [toolboxes__list   => sub { { query => $_[0]{tag} } }],
    [toolboxes__get    => sub { { toolbox => $_[0]{toolbox} } }],
    [toolboxes__update => sub { { toolbox => $_[0]{toolbox}, description => 'For tests' } }],

    [
        recipes__create => sub {
            {
                name      => "recipe-$_[0]{tag}",
                title     => 'A letter',
                arguments => [{ name => 'who', required => $true }],
                text      => 'Dear {{who}}',
                roles     => ['Member']
            }
        },
        'recipe'
    ],
    [recipes__list   => sub { { query => $_[0]{tag} } }],
    [recipes__get    => sub { { recipe => "recipe-$_[0]{tag}" } }],
    [recipes__render => sub { { recipe => $_[0]{recipe}, arguments => { who => 'Ada' } } }],
    [recipes__update => sub { { recipe => $_[0]{recipe}, title => 'Another letter' } }],

    [policy__apply  => sub { { policy => { version => 1, roles => [{ name => "Applied $_[0]{tag}", permissions => ['connector:read'] }] } } }],
    [policy__export => sub { { sections => [qw(roles recipes)] } }],

    [settings__set   => sub { { key => 'collapse.threshold', value => 40, client => $_[0]{tag} } }],
    [settings__list  => sub { { limit => 100 } }],
    [settings__get   => sub { { key => 'collapse.threshold', client => $_[0]{tag} } }],
    [settings__unset => sub { { key => 'collapse.threshold', client => $_[0]{tag} } }],

    [audit__list => sub { { operation => 'members__suspend', outcome => 'ok', limit => 2 } }],
    [audit__get  => sub { { audit => $_[0]{first_audit} } }],

    [recipes__delete      => sub { { recipe => $_[0]{recipe} } }],
    [toolboxes__delete    => sub { { toolbox => $_[0]{toolbox} } }],
    [restrictions__delete => sub { { restriction => $_[0]{restriction} } }],
    [connections__delete  => sub { { connection => $_[0]{connection} } }],
    [connectors__delete   => sub { { connector => $_[0]{tag} } }],
    [grants__revoke       => sub { { grant => $_[0]{grant} } }],
    [roles__delete        => sub { { role => $_[0]{role} } }],
    [members__remove      => sub { { member => $_[0]{member} } }],
);

# What differs by the way that somebody came, not by the door: the grant, and what the client says of itself.
my %of_the_way = (whoami__get => [qw(grant client expires_at label surface)], footprint__get => ["results"]);

# --- the product -------------------------------------------------------------------------

my $stack = MCP::Stack->new(
    webdav  => 0,
    policyd => {
        admin_group => scalar getgrgid($gid),
        actor       => [map { "unix:$uid{$_} $_\@example.org" } sort keys %uid]
    }
);
my $resource = $stack->url;
$stack->reconfigure(server => <<"EOF");
<Location "/api/v1">
    MCPApi On
    MCPResource $resource
</Location>
EOF
ok($stack->gateway->graceful, 'the gateway opens the REST door');
$stack->member('guest@example.org', 'Guest');
my %client = map { $_ => $stack->client(member => "$_\@example.org") } keys %uid;
my $rows = $stack->policyd->admin('rpc.describe')->{result};
my %row = map { $_->{name} => $_ } @$rows;

# --- the doors: each gives (result, undef) or (undef, error) ---------------------------------

sub through_mcp {
    my ($who, $op, $args) = @_;
    my $answer = $client{$who}->call("elaichi__$op", $args);
    my $result = $answer ? $answer->{json}{result} : undef;
    return (undef, { code => MCP::Client::text($answer) }) if !$result;
    return (undef, $result->{structuredContent}{error}) if $result->{isError};
    return ($result->{structuredContent}, undef);
}

sub escaped {
    my ($text) = @_;
    $text =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ge;
    return $text;
}

# Values of a query string as the route table reads them.
sub query_pairs {
    my ($name, $value) = @_;
    return map { "$name=" . escaped($_) } @$value if ref $value eq 'ARRAY';
    return "$name=" . escaped(ref $value ? MCP::Json::encode($value) : $value);
}

sub through_rest {
    my ($who, $op, $args) = @_;
    my ($method, $path) = @{ $row{$op}{rest} }{qw(method path)};
    my $has_body = $method !~ /^(?:GET|DELETE)\z/;
    my %rest = %$args;
    $path =~ s/\{(\w+)\}/escaped(delete $rest{$1})/ge;
    my @headers = (Authorization => 'Bearer ' . $client{$who}->token);
    my @query = map { query_pairs($_, delete $rest{$_}) } grep { !$has_body || $_ eq 'dry_run' } sort keys %rest;
    push @headers, 'Content-Type' => 'application/json' if $has_body;
    my $answer = $client{$who}->request(
        $method,
        "/api/v1$path" . (@query ? '?' . join '&', @query : q()),
        \@headers, $has_body ? MCP::Json::encode(\%rest) : undef
    );
    my $data = $answer ? eval { MCP::Json::decode($answer->{body}) } : undef;
    return (undef, { code => $answer ? "$answer->{status} $answer->{body}" : 'no answer' }) if !$data;
    return ($data, undef) if $answer->{status} =~ /^2/;
    return (undef, { %$data, http => $answer->{status} });
}

sub through_admin {
    my ($who, $op, $args) = @_;
    return MCP::Admin::as($uid{$who}, $gid, sub { MCP::Admin::call($stack->policyd->socket, $op, $args) });
}

sub through_policyctl {
    my ($who, $op, $args) = @_;
    my ($status, $out, $err) =
        MCP::Admin::as($uid{$who}, $gid, sub { $stack->policyd->run_ctl(split(/__/, $op), $args, '-o', 'json') });
    return (MCP::Json::decode($out), undef) if $status == 0;
    return (undef, { code => $err =~ /^policyctl: (\w+)/ ? $1 : "exit $status: $err", text => $err });
}

my %through = (mcp => \&through_mcp, rest => \&through_rest, admin => \&through_admin, policyctl => \&through_policyctl);
my %surface = (mcp => 'mcp', rest => 'rest', admin => 'admin', policyctl => 'admin');

# --- what is compared ------------------------------------------------------------------------

my @letters = qw(a b c d);
my %context = map { $doors[$_] => { tag => "door$letters[$_]" } } 0 .. $#doors;

sub plain {
    my ($value, $key) = @_;
    return { map { $_ => plain($value->{$_}, $_) } keys %$value } if ref $value eq 'HASH';
    return [map { plain($_, $key) } @$value] if ref $value eq 'ARRAY';
    return $value if !defined $value || ref $value;
    return 'REVISION' if defined $key && $key =~ /(?:^|_)revision\z/;
    $value =~ s/\b([a-z]{3})_[0-9a-z]{26}\b/$1_ID/g;
    $value =~ s/\bmcp_[A-Za-z0-9_-]{40,}/TOKEN/g;
    $value =~ s/\b\d{4}-\d\d-\d\dT[\d:.]+Z/TIME/g;
    $value =~ s/\b[0-9a-f]{64}\b/DIGEST/g;
    $value =~ s/door[a-d](?![a-z])/TAG/g;
    return $value;
}

sub compared {
    my ($op, $result) = @_;
    my %rest = %$result;
    delete @rest{ @{ $of_the_way{$op} || [] } };
    return plain(\%rest);
}

sub as_root { return MCP::Admin::call($stack->policyd->socket, @_) }

sub mark { return (as_root('audit__list', { limit => 1 }))[0]{items}[0]{audit_id} }

# Rows newer than a mark, oldest first, without root's own looking.
sub rows_after {
    my ($mark) = @_;
    my ($list) = as_root('audit__list', { after => $mark, limit => 1000 });
    return grep { ($_->{actor} || q()) ne 'unix:0' } @{ $list->{items} };
}

my @same = qw(operation tool outcome error_code arg_names arg_count arg_unknown classification via member_id member role connection upstream_status);

# Runs one call; what it gave, and its row as far as rows must not differ.
sub run {
    my ($door, $who, $op, $args) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $mark = mark();
    my ($result, $error) = $through{$door}->($who, $op, $args);
    my @rows = rows_after($mark);
    is(scalar @rows, 1, "$op, $door: one row") or diag(explain(\@rows, $error));
    my $row = $rows[0] || {};
    is($row->{surface}, $surface{$door}, "$op, $door: of its surface");
    $context{$_}{first_audit} ||= $row->{audit_id} for @doors;
    my %kept = map { $_ => $row->{$_} } @same;
    $kept{arg_names} = [sort @{ $kept{arg_names} || [] }];
    return ($result, $error, \%kept);
}

# --- every row through every door --------------------------------------------------------------

my %seen;
$seen{ $_->[0] }++ for @examples;
is_deeply([grep { !$seen{$_} } sort keys %row], [], 'every operation has an example');
is_deeply([grep { !$row{$_} } sort keys %seen], [], 'and every example is of an operation');
cmp_ok(scalar keys %row, '>=', 40, 'there are forty operations or more');

my %sample;    # operation -> arguments, for those who may not

# One call at all doors; the results by door.
sub compare {
    my ($op, $make, %how) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my (%result, %left);
    for my $door (@doors) {
        my $args = { %{ $make->($context{$door}) }, %{ $how{more} || {} } };
        my ($result, $error, $left) = run($door, 'owner', $op, $args);
        $sample{$op} = $args if !$how{more};
        $left{$door} = $left;
        if ($door eq 'mcp' && $row{$op}{secret} eq 'always') {
            is($error ? $error->{code} : undef, 'use_other_door', "$op, $door: points to another door");
            like($error->{hint} || q(), qr/policyctl|REST/, "$op, $door: by name");
            is("$left->{outcome} $left->{error_code}", 'denied use_other_door', "$op, $door: and the row says so");
            ($result) = through_admin('owner', $op, $args);    # what later examples need
            delete $left{$door};
        } else {
            ok(!defined $error, "$op, $door: it goes well") or diag(explain($error, $args));
        }
        $result{$door} = $result || {};
        ok(scalar @{ $result->{items} }, "$op, $door: and there is something to compare") if $result && $result->{items};
    }
    for my $door (@doors) {
        is_deeply(compared($op, $result{$door}), compared($op, $result{admin}), "$op, $door: the same result");
        is_deeply(plain($left{$door}), plain($left{admin}), "$op, $door: the same row") if $left{$door};
    }
    is($left{admin}{operation}, $op, "$op: by its name without a prefix");
    is($left{admin}{classification}, $row{$op}{classification}, "$op: with its class");
    return \%result;
}

for my $example (@examples) {
    my ($op, $make, $keep) = @$example;
    next if !$row{$op};
    subtest $op => sub {
        if ($row{$op}{schema}{properties}{dry_run}) {
            my ($before) = as_root('whoami__get');
            my $results = compare($op, $make, more => { dry_run => $true });
            my ($after) = as_root('whoami__get');
            is($after->{policy_revision}, $before->{policy_revision}, "$op: a dry run changes nothing");
            ok($results->{$_}{impact}, "$op, $_: and tells whom it would touch") for @doors;
        }
        my $results = compare($op, $make);
        if ($keep) {
            $context{$_}{$keep} = $results->{$_}{$keep} for @doors;
            ok(defined $context{$_}{$keep}, "$op, $_: answers the id") for @doors;
        }
    };
}

# --- secrets -------------------------------------------------------------------------------------

subtest 'a credential does not pass a model' => sub {
    for my $op (grep { $row{$_}{secret} eq 'with_credential' } sort keys %row) {
        my %args = (%{ $sample{$op} }, credential => { token => 's3cret-t0ken' });
        my (undef, $error, $left) = run('mcp', 'owner', $op, \%args);
        is($error ? $error->{code} : undef, 'use_other_door', "$op: points to another door");
        is("$left->{outcome} $left->{error_code}", 'denied use_other_door', "$op: and the row says so");
    }
    my %listed = map { $_->{name} => $_ } @{ $client{owner}->list->{json}{result}{tools} || [] };
    for my $op (sort keys %row) {
        my $tool = $listed{"elaichi__$op"};
        my $is_shown = $row{$op}{secret} eq 'always' ? 0 : 1;
        is($tool ? 1 : 0, $is_shown, "$op: " . ($is_shown ? 'listed' : 'not listed'));
        ok(!$tool || !$tool->{inputSchema}{properties}{credential}, "$op: without a place for a credential");
    }
};

# --- who may not ------------------------------------------------------------------------------------

my %held = map { $_ => 1 } @{ (as_root('roles__get', { role => 'Guest' }))[0]{permissions} };

for my $op (map { $_->[0] } @examples) {
    next if !$row{$op};
    my $permission = $row{$op}{permission};
    subtest "$op, asked by a Guest" => sub {
        for my $door (@doors) {
            my $lacks = $door eq 'mcp' ? 'tool:execute' : defined $permission && !$held{$permission} ? $permission : undef;
            next if !defined $lacks;
            my ($result, $error, $left) = run($door, 'guest', $op, $sample{$op});
            is($error ? $error->{code} : undef, 'permission_denied', "$door: refused");
            is($error->{permission}, $lacks, "$door: which names $lacks") if $door eq 'mcp' || $door eq 'rest';
            like(join(q( ), grep { defined } @{ $error || {} }{qw(message detail text)}), qr/\Q$lacks\E/, "$door: in words too");
            is($error->{http}, 403, "$door: 403") if $door eq 'rest';
            is("$left->{outcome} $left->{error_code}", 'denied permission_denied', "$door: the row is a denial");
            is($left->{operation}, $op, "$door: of this operation");
            is($left->{classification}, $row{$op}{classification}, "$door: with its class");
        }
        pass('and that is all');
    };
}

$stack->end;
done_testing;
