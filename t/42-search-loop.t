# The loop that a collapsed list asks of a host: list, search, run. Official clients of every revision go round it;
# the upstream's log is the witness. Then what each client is told about the list, and which client gets which.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Node;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(result verdict);

my $yes = MCP::Json::true();
my $stack = MCP::Stack->new(webdav => 0, collapse => 1);
my $upstream = MCP::Upstream->start(root => $stack->root, serve => sub { return MCP::Upstream::json(200, { target => $_[0]{target} }) });
$stack->reconfigure(allow => [ $upstream->origin ]);
$stack->gateway->graceful;
my $member = $stack->client;

sub names { my ($answer) = @_; return [ MCP::Client::names($answer) ] }
sub hidden { my ($answer) = @_; return [ MCP::Client::connected($answer) ] }
sub found { my ($answer) = @_; return result($answer)->{structuredContent} || {} }
sub items { my ($answer) = @_; return [ map { $_->{name} } @{ found($answer)->{items} || [] } ] }
sub search { my ($who, $query, %more) = @_; return $who->call('search_tools', { query => $query, %more }) }
sub set { $stack->ctl(qw(settings set), {@_}); return }
sub unset { $stack->ctl(qw(settings unset), {@_}); return }

my @things = qw(invoice customer refund ticket contract shipment campaign folder calendar employee);
my %method = (list => 'GET', get => 'GET', create => 'POST', delete => 'DELETE');

# So many operations of one application, each with what it needs.
sub application {
    my ($slug, $count, %more) = @_;
    my @operations;
    for my $number (0 .. $count - 1) {
        my $thing = $things[ $number % @things ];
        my $verb = (qw(list get create delete))[ $number / @things ];
        my $needs_id = $verb =~ /get|delete/;
        push @operations,
            {
            id          => "${verb}_$thing",
            method      => $method{$verb},
            path        => $needs_id ? "/$thing/{id}" : "/$thing",
            description => "\u$verb one or more of the $thing records.",
            $needs_id ? (parameters => [ { name => 'id', in => 'path', required => $yes, schema => { type => 'string', minLength => 3 } } ]) : (),
            $verb eq 'create'
            ? (body => { content_type => 'application/json', required => $yes, schema => { type => 'object', properties => { amount => { type => 'integer', minimum => 7 }, kind => { enum => [ 'full', 'part' ] } }, required => [ 'amount', 'kind' ] } })
            : ()
            };
    }
    return { slug => $slug, label => "\u$slug", base_url => $upstream->origin . "/$slug", operations => \@operations, %more };
}

$stack->connector(application('shop', 40));

# --- official clients ---------------------------------------------------------------------

my $missing = MCP::Node::missing();

# The bytes of a whole list, of either era; the id is the same each time.
sub list_bytes {
    my ($revision) = @_;
    return $revision eq '2026-07-28' ? $member->list(id => '"l"')->{body} : $member->legacy('tools/list', {}, version => $revision, id => '"l"')->{body};
}

my @revisions = qw(2025-03-26 2025-06-18 2025-11-25 2026-07-28);

for my $client (
    [ 'SDK v2 at 2026-07-28',             '2026-07-28', qw(--sdk 2 --mode 2026-07-28) ],
    [ 'SDK v2, finding out by itself',    '2026-07-28', qw(--sdk 2 --mode auto) ],
    [ 'SDK v2 in its legacy mode',        '2025-11-25', qw(--sdk 2 --mode legacy) ],
    [ 'SDK v1 at 2025-11-25',             '2025-11-25', qw(--sdk 1) ],
    [ 'SDK v1 of its time at 2025-06-18', '2025-06-18', qw(--sdk 1 --package sdk-2025-06-18) ],
    [ 'SDK v1 of its time at 2025-03-26', '2025-03-26', qw(--sdk 1 --package sdk-2025-03-26) ]
    )
{
    my ($what, $revision, @words) = @$client;
    subtest "$what goes round the loop" => sub {
        plan skip_all => $missing if defined $missing;
        my %before = map { $_ => list_bytes($_) } @revisions;
        my $mark = () = $upstream->requests;
        my ($status, $data, $err) = MCP::Node::script('search-loop.mjs', $stack->url, '--token', $member->token, @words,
            '--query', 'create refund', '--odd', 'create refund invoice ticket contract shipment campaign', '--none', 'salesforce create lead');
        is($status, 0, 'the client is content') or diag $err;
        return if !$data;
        is($data->{protocol}, $revision, "it speaks $revision");
        my @listed = @{ $data->{listed} };
        is_deeply([ grep { !/^elaichi__/ } @listed ], [qw(execute_tool search_tools)], 'it lists the two and the operations alone');
        ok($data->{search}{annotations}{readOnlyHint}, 'the search is marked as reading');
        is($data->{first}{items}[0]{name}, 'shop__create_refund', 'it finds the tool');
        is_deeply($data->{args}, { amount => 7, kind => 'full' }, 'its schema is enough to make arguments');
        my @seen = $upstream->requests;
        @seen = @seen[ $mark .. $#seen ];
        is(scalar @seen, 2, 'the application is asked twice: by execute_tool and by the name');
        is("$_->{method} $_->{target}", 'POST /shop/refund', 'the operation') for @seen;
        is_deeply(MCP::Json::decode($_->{body}), { amount => 7, kind => 'full' }, 'with its arguments') for @seen;
        for my $way (qw(executed direct)) {
            ok(!$data->{$way}{isError}, "$way: no error");
            is_deeply($data->{$way}{structuredContent}, { target => '/shop/refund' }, "$way: what the application answers") if $revision ne '2025-03-26';
        }
        is_deeply($data->{empty}{items}, [], 'a query of too many other words is empty');
        is($data->{empty}{suggest}, 'create campaign', 'and suggests another');
        is($data->{retry}{items}[0]{name}, 'shop__create_campaign', 'which finds');
        is_deeply($data->{none}{items}, [], 'an application that is not connected: empty');
        ok(!exists $data->{none}{suggest}, 'and no suggestion');
        is_deeply([ grep { lc eq 'salesforce' } @{ $data->{none}{unmatched} } ], ['Salesforce'], 'but its name');
        ok($data->{same}, 'it sees the same list afterwards');
        is(list_bytes($_), $before{$_}, "the list of $_ has the same bytes") for @revisions;
    };
}

# --- what a client is told ------------------------------------------------------------------

my $SERVER = 'io.modelcontextprotocol/serverInfo';

sub opened { my ($revision, %client) = @_; return $member->legacy('initialize', { protocolVersion => $revision, capabilities => {}, clientInfo => {%client} }) }

subtest 'the server tells in one sentence how to search, where a revision has a place for it' => sub {
    for my $mode (qw(always never)) {
        set(key => 'collapse.mode', value => $mode);
        my $new = result($member->discover)->{_meta}{$SERVER}{description};
        my $old = result(opened('2025-11-25', name => 'c', version => '1'))->{serverInfo}{description};
        like($new, qr/\A[^.]*search[^.]*product, verb, thing[^.]*\.\z/, "$mode: a sentence");
        is($old, $new, "$mode: the same in both eras");
        is($new =~ /search_tools/ ? 1 : 0, $mode eq 'always' ? 1 : 0, "$mode: search_tools where there is one");
        ok(!exists result(opened($_, name => 'c', version => '1'))->{serverInfo}{description}, "$mode: $_ knows no description") for qw(2025-03-26 2025-06-18);
        ok(!exists result($member->list)->{_meta}{$SERVER}{description}, "$mode: and no other result carries it");
    }
    unset(key => 'collapse.mode');
    my $told = result($member->discover)->{instructions};
    like($told, qr/search_tools/, 'the instructions say how to search');
    like($told, qr/empty result/, 'and what nothing means');
};

# --- which client gets which list -------------------------------------------------------------

sub session { my ($revision, $name) = @_; return MCP::Client::header(opened($revision, name => $name, version => '1'), 'Mcp-Session-Id') }
sub list_in { my ($session) = @_; return hidden($member->legacy('tools/list', {}, session => $session)) }
sub list_as { my ($name) = @_; return hidden($member->list(meta => MCP::Client::meta(more => { 'io.modelcontextprotocol/clientInfo' => { name => $name, version => '1' } }))) }

subtest 'the name of a client chooses its mode: clientInfo of its session, or of the request' => sub {
    my @two = qw(execute_tool search_tools);
    set(key => 'collapse.mode', value => 'never', client => 'narrow-host');
    for my $revision (qw(2025-03-26 2025-06-18 2025-11-25)) {
        my %session = map { $_ => session($revision, $_) } qw(narrow-host other-host);
        for my $turn (1 .. 6) {    # each on a connection of its own: any child
            is(scalar @{ list_in($session{'narrow-host'}) }, 40, "$revision: its own list, listing $turn");
            is_deeply(list_in($session{'other-host'}), \@two, "$revision: another client's list, listing $turn");
        }
        is_deeply(hidden($member->legacy('tools/list', {}, version => $revision)), \@two, "$revision: without a session, the list of a stranger");
    }
    is(scalar @{ list_as('narrow-host') }, 40, '2026-07-28: its own list');
    is_deeply(list_as('other-host'), \@two, '2026-07-28: another client');
    is_deeply(list_as('Narrow-Host'), \@two, '2026-07-28: a name is taken letter by letter');
    is_deeply(hidden($member->list), \@two, '2026-07-28: without a name');
    is_deeply(list_as('x' x 5000), \@two, 'a name of 5,000 bytes');
};

subtest 'a client that says another name gets another list, and nothing else' => sub {
    my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    my $ask = sub {
        my ($who, $name, $tool, $arguments) = @_;
        my $answer = $who->call($tool, $arguments, id => 1, meta => MCP::Client::meta(more => { 'io.modelcontextprotocol/clientInfo' => { name => $name, version => '1' } }));
        (my $body = $answer->{body}) =~ s/\b\d+-\d+\b/AUDIT/g;
        return "$answer->{status} $body";
    };
    for my $case (
        [ 'a hidden tool',           $member, 'shop__list_invoice',   {} ],
        [ 'a missing scope',         $low,    'shop__delete_invoice', { id => 'one' } ],
        [ 'a tool that is not',      $member, 'shop__frobnicate',     {} ],
        [ 'a missing permission',    $member, 'elaichi__members__list', {} ],
        [ 'a search in either list', $member, 'search_tools',         { query => 'create refund' } ]
        )
    {
        my ($what, $who, $tool, $arguments) = @$case;
        is($ask->($who, 'narrow-host', $tool, $arguments), $ask->($who, 'other-host', $tool, $arguments), $what);
    }
    unset(key => 'collapse.mode', client => 'narrow-host');
};

subtest 'the narrower setting wins: of the grant, of the client, of all' => sub {
    my $grant = $stack->ctl('grants', 'list', { member => 'member@example.org' })->{items}[0]{grant};
    my @mine = map { $_->{grant} } @{ $stack->ctl('grants', 'list', { member => 'member@example.org' })->{items} };
    my $is_flat = sub { return scalar(@{ list_as('narrow-host') }) == 40 ? 1 : 0 };
    my @rows = ([qw(- - - 0)], [qw(never - - 1)], [qw(never always - 0)], [qw(always never - 1)], [qw(never always never 1)], [qw(always never always 0)], [qw(always - never 1)], [qw(never - auto 0)], [qw(always auto - 0)], [qw(- never auto 0)]);
    for my $row (@rows) {
        my ($all, $client, $own, $flat) = @$row;
        set(key => 'collapse.mode', value => $all) if $all ne '-';
        set(key => 'collapse.mode', value => $client, client => 'narrow-host') if $client ne '-';
        if ($own ne '-') { set(key => 'collapse.mode', value => $own, grant => $_) for @mine }
        is($is_flat->(), $flat, "all $all, client $client, grant $own: " . ($flat ? 'flat' : 'collapsed'));
        unset(key => 'collapse.mode') if $all ne '-';
        unset(key => 'collapse.mode', client => 'narrow-host') if $client ne '-';
        if ($own ne '-') { unset(key => 'collapse.mode', grant => $_) for @mine }
    }
};

subtest 'budgets of tokens and percent collapse at their borders, for all, a client, a grant' => sub {
    my @mine = map { $_->{grant} } @{ $stack->ctl('grants', 'list', { member => 'member@example.org' })->{items} };
    set(key => 'collapse.threshold', value => 1000);
    my $weight = $stack->ctl(qw(footprint get), { member => 'member@example.org' });
    my $tokens = $weight->{definitions}{flat}{tokens};
    ok($tokens, 'the footprint tells how many') or diag(MCP::Json::encode($weight));
    my @two = qw(execute_tool search_tools);
    for my $where ([ 'all' ], [ 'a client', client => 'narrow-host' ], [ 'a grant', grants => 1 ]) {
        my ($what, %where) = @$where;
        my $each = sub {
            my ($do, @what) = @_;
            if ($where{grants}) { $do->(@what, grant => $_) for @mine }
            else { $do->(@what, %where) }
        };
        $each->(\&set, key => 'collapse.budget_tokens', value => $tokens);
        is(scalar @{ list_as('narrow-host') }, 40, "$what: exactly the budget is flat");
        $each->(\&set, key => 'collapse.budget_tokens', value => $tokens - 1);
        is_deeply(list_as('narrow-host'), \@two, "$what: one token less collapses");
        is(scalar @{ list_as('other-host') }, $what eq 'a client' ? 40 : 2, "$what: and another client?");
        $each->(\&unset, key => 'collapse.budget_tokens');
        $each->(\&set, key => 'collapse.context_tokens', value => $tokens * 10);
        $each->(\&set, key => 'collapse.budget_percent', value => 10);
        is(scalar @{ list_as('narrow-host') }, 40, "$what: a tenth of the context is flat");
        $each->(\&set, key => 'collapse.context_tokens', value => $tokens * 10 - 10);
        is_deeply(list_as('narrow-host'), \@two, "$what: a little less of it collapses");
        $each->(\&unset, key => $_) for qw(collapse.budget_percent collapse.context_tokens);
    }
    unset(key => 'collapse.threshold');
};

subtest 'what is withheld does not count' => sub {
    $stack->connector(application('attic', 40));
    $stack->connector(application('cellar', 10));
    is_deeply(hidden($member->list), [qw(execute_tool search_tools)], 'ninety tools: collapsed');
    my $control = grep { /^elaichi__/ } @{ names($member->list) };
    my $see = 30 - $control;
    my @left = map { { connector => 'shop', operation => $_->{id} } } @{ application('shop', $see)->{operations} };
    my $rule = $stack->ctl(qw(restrictions create), { effect => 'allow', target => { role => 'Member' }, items => \@left });
    is(scalar @{ names($member->list) }, 30, 'all but thirty withheld: flat');
    is(scalar @{ hidden($member->list) }, $see, 'what is allowed is listed');
    $stack->ctl(qw(restrictions delete), { restriction => $rule->{restriction} });
    $stack->ctl(qw(connections delete), { connection => $_ }) for qw(attic cellar);
};

subtest 'pinned tools count' => sub {
    my $control = grep { /^elaichi__/ } @{ names($member->list) };
    set(key => 'collapse.threshold', value => $control + 40);
    is(scalar @{ hidden($member->list) }, 40, 'at the threshold: flat');
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ { connector => 'shop', operation => 'list_ticket', connections => ['shop'], name => 'tickets', always_visible => $yes } ] });
    is_deeply(hidden($member->list), [qw(desk__tickets execute_tool search_tools)], 'a pinned one more: collapsed, and it stays');
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
    unset(key => 'collapse.threshold');
};

# --- finding --------------------------------------------------------------------------------

subtest 'with two accounts of one application the one that is named comes first' => sub {
    my $notion = {
        slug => 'notion', label => 'Notion', base_url => $upstream->origin . '/notion',
        operations => [
            map { { id => $_->[0], method => $_->[1], path => "/$_->[0]", description => $_->[2] } }
                [ 'search_pages', 'GET', 'Search pages and databases of the workspace.' ],
            [ 'create_page',     'POST', 'Create a page below a parent page.' ],
            [ 'update_page',     'POST', 'Change the properties of a page.' ],
            [ 'query_database',  'POST', 'Query the rows of a database.' ],
            [ 'add_comment',     'POST', 'Add a comment to a page.' ]
        ]
    };
    $stack->ctl(qw(connectors create), { auth => { type => 'none' }, %$notion });
    for my $order ([qw(legal marketing)], [qw(marketing legal)]) {
        $stack->ctl(qw(connections create), { connector => 'notion', label => "notion-$_", shared => $yes }) for @$order;
        for my $account (@$order) {
            my $other = $account eq 'legal' ? 'marketing' : 'legal';
            for my $phrase ('notion-%s create page', 'create page notion-%s', '%s create page', 'create page in %s notion', 'create %s page', 'notion %s page create', 'the %s team: create a page') {
                my $query = sprintf $phrase, $account;
                my @items = @{ items(search($member, $query, limit => 20)) };
                is($items[0], "notion-${account}__create_page", "@$order: $query");
            }
            my @narrowed = @{ items(search($member, 'create page', account => "notion-$account", limit => 20)) };
            is_deeply([ grep { !/^notion-$account\__/ } @narrowed ], [], "account $account alone");
            is($narrowed[0], "notion-${account}__create_page", "and the right one first");
        }
        $stack->ctl(qw(connections delete), { connection => "notion-$_" }) for @$order;
    }
    $stack->ctl(qw(connections create), { connector => 'notion', label => "notion-$_", shared => $yes }) for qw(legal marketing);
};

subtest 'the word connection favours no merged tool' => sub {
    $stack->ctl(qw(toolboxes create), { name => 'wiki', roles => ['Member'], entries => [ { connector => 'notion', operation => 'search_pages', connections => [qw(notion-legal notion-marketing)], name => 'find' }, { connector => 'notion', operation => 'add_comment', connections => ['notion-legal'], name => 'remark', frozen => { } } ] });
    my $merged = result($member->call('elaichi__tools__get', { names => ['wiki__find'] }))->{structuredContent};
    ok(scalar(MCP::Json::encode($merged) =~ /"connection"/), 'the merged tool has an argument of this name');
    for my $word (qw(connection connections set frozen more)) {
        is_deeply(items(search($member, $word, limit => 20)), [], "$word alone finds nothing");
        for my $query ('create refund', 'create page', 'add comment') {
            is_deeply(items(search($member, "$word $query", limit => 20)), items(search($member, $query, limit => 20)), "$word $query: the same as without");
        }
    }
    is((items(search($member, 'wiki find'))->[0]), 'wiki__find', 'it is found by its own words');
    $stack->ctl(qw(toolboxes delete), { toolbox => 'wiki' });
};

subtest 'an application that is not connected is no neighbour' => sub {
    for my $query ('salesforce create refund', 'github create page', 'jira list ticket', 'list calendar google calendar cal.com', 'stripe create refund') {
        my $answer = search($member, $query);
        is_deeply(items($answer), [], $query);
        ok(!defined found($answer)->{suggest}, "$query: no suggestion");
    }
};

subtest 'tools get: one to five complete definitions' => sub {
    my @all = qw(shop__list_invoice shop__create_refund shop__get_ticket notion-legal__create_page elaichi__whoami__get);
    my $ask = sub { return $member->call('elaichi__tools__get', { names => [@_] }) };
    set(key => 'collapse.mode', value => 'never');
    my %flat = map { $_->{name} => $_ } @{ result($member->list)->{tools} };
    unset(key => 'collapse.mode');
    for my $count (1 .. 5) {
        my $answer = $ask->(@all[ 0 .. $count - 1 ]);
        my $found = found($answer)->{items} || found($answer)->{tools} || [];
        is_deeply([ map { $_->{name} } @$found ], [ @all[ 0 .. $count - 1 ] ], "$count: those asked for, in order");
        for my $tool (@$found) {
            my %same = map { $_ => $tool->{$_} } grep { exists $flat{ $tool->{name} }{$_} } keys %$tool;
            is_deeply(\%same, $flat{ $tool->{name} }, "$tool->{name}: as it would be listed");
        }
    }
    is(verdict($ask->(@all, 'shop__get_invoice')), '200/isError', 'six are too many');
    is(verdict($ask->()), '200/isError', 'none are too few');
};

subtest 'a whole name in any form comes first' => sub {
    for my $name ('shop__delete_contract', 'delete_contract', 'delete-contract', 'delete contract', 'DELETE CONTRACT', 'deleteContract', 'shop delete contract', 'Shop: delete_contract') {
        is(items(search($member, $name))->[0], 'shop__delete_contract', $name);
    }
};

subtest 'in every mode there is a way out' => sub {
    my @recovery = map { "elaichi__$_" } qw(connections__create connections__list tools__get whoami__get);
    for my $mode (qw(auto always never)) {
        set(key => 'collapse.mode', value => $mode);
        my %listed = map { $_ => 1 } @{ names($member->list) };
        is_deeply([ grep { !$listed{$_} } @recovery ], [], "$mode: who I am, what is connected, how to connect, what a tool takes");
        is($listed{search_tools} ? 1 : 0, $mode eq 'never' ? 0 : 1, "$mode: the meta-tools where they are needed");
    }
    unset(key => 'collapse.mode');
};

subtest 'every advertised tool and every full result has the four annotations of its class' => sub {
    my %wanted = (
        read        => { readOnlyHint => 1, destructiveHint => 0, idempotentHint => 1 },
        write       => { readOnlyHint => 0, destructiveHint => 0 },
        destructive => { readOnlyHint => 0, destructiveHint => 1 }
    );
    my $judge = sub {
        my ($what, $tool, $class) = @_;
        my $has = $tool->{annotations} || {};
        my @bad = grep { !defined $has->{$_} || !JSON::PP::is_bool($has->{$_}) } qw(readOnlyHint destructiveHint idempotentHint openWorldHint);
        push @bad, grep { ($has->{$_} ? 1 : 0) != $wanted{$class}{$_} } keys %{ $wanted{$class} || {} } if defined $class;
        return map { "$what $tool->{name} $_" } @bad;
    };
    my @bad;
    for my $mode (qw(never always)) {
        set(key => 'collapse.mode', value => $mode);
        for my $who ($member, $stack->client(member => 'owner@example.org')) {
            push @bad, map { $judge->($mode, $_) } @{ result($who->list)->{tools} };
        }
    }
    unset(key => 'collapse.mode');
    my %class = (list => 'read', get => 'read', create => 'write', delete => 'destructive');
    for my $verb (sort keys %class) {
        my @items = @{ found(search($member, "shop $verb", limit => 20))->{items} };
        ok(scalar @items, "$verb finds");
        for my $tool (@items) {
            my ($is) = $tool->{name} =~ /^shop__([a-z]+)_/;
            push @bad, $judge->('search', $tool, $class{ $is || q() });
            push @bad, "class of $tool->{name}" if defined $is && $tool->{classification} ne $class{$is};
        }
    }
    my %meta = map { $_->{name} => $_->{annotations} } @{ result($member->list)->{tools} };
    push @bad, 'search_tools' if !$meta{search_tools}{readOnlyHint} || $meta{search_tools}{destructiveHint};
    push @bad, 'execute_tool' if $meta{execute_tool}{readOnlyHint} || !$meta{execute_tool}{destructiveHint};
    is_deeply(\@bad, [], 'none is without');
};

subtest 'instructions stay short with five hundred applications' => sub {
    for my $number (1 .. 500) {
        my $slug = sprintf 'application-with-a-long-name-%03d', $number;
        $stack->connector({ slug => $slug, label => "Application with a rather long name, number $number", base_url => $upstream->origin, operations => [ { id => 'list_things', method => 'GET', path => '/things', description => 'List things.' } ] });
    }
    for my $told (result($member->discover)->{instructions}, result(opened('2025-11-25', name => 'c', version => '1'))->{instructions}) {
        cmp_ok(length $told, '<=', 2000, '2,000 characters at most');
        like($told, qr/and \d+ more/, 'what finds no room is counted');
        like($told, qr/search_tools/, 'it says how to search');
        like($told, qr/[Ee]mpty result means/, 'and what empty means');
        like($told, qr/Every call is recorded\.\z/, 'and ends in a whole sentence');
    }
};

$upstream->stop;
$stack->end;
done_testing;
