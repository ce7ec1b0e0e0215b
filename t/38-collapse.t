# Long lists collapse behind search_tools and execute_tool: when, what stays listed, what is found, and that a call by the other
# spelling is the same call. The upstream's log is the witness.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts challenge result verdict);

my $yes = MCP::Json::true();
my $stack = MCP::Stack->new(webdav => 0, collapse => 1);
my $upstream = MCP::Upstream->start(root => $stack->root, serve => sub { return MCP::Upstream::json(200, { target => $_[0]{target} }) });
$stack->reconfigure(allow => [ $upstream->origin ]);
$stack->gateway->graceful;
my $member = $stack->client;

sub names { my ($who, @how) = @_; return [ MCP::Client::names($who->list(@how)) ] }
sub hidden { my ($who) = @_; return [ MCP::Client::connected($who->list) ] }
sub found { my ($answer) = @_; return result($answer)->{structuredContent} || {} }
sub items { return [ map { $_->{name} } @{ found($_[0])->{items} || [] } ] }
sub search { my ($who, $query, %more) = @_; return $who->call('search_tools', { query => $query, %more }) }
sub sent { return scalar(my @all = $upstream->requests) }

my @things = qw(invoice customer refund ticket contract shipment campaign folder calendar employee);

# So many operations in one connector, with words of a real one.
sub store {
    my ($slug, $count, %more) = @_;
    my @operations;
    for my $number (0 .. $count - 1) {
        my $thing = $things[ $number % @things ];
        my $verb = (qw(list get create delete))[ $number / @things ];
        my $method = { list => 'GET', get => 'GET', create => 'POST', delete => 'DELETE' }->{$verb};
        push @operations,
            {
            id          => "${verb}_$thing",
            method      => $method,
            path        => $verb eq 'list' || $verb eq 'create' ? "/$thing" : "/$thing/{id}",
            description => "\u$verb the $thing of the shop.",
            $verb =~ /get|delete/ ? (parameters => [ { name => 'id', in => 'path', required => $yes, schema => { type => 'string' } } ]) : ()
            };
    }
    return { slug => $slug, label => "\u$slug", base_url => $upstream->origin . "/$slug", operations => \@operations, %more };
}

my $control = @{ names($member) };
my $flat = 30 - $control;
$stack->connector(store('shop', $flat));

subtest 'thirty are listed one by one, thirty-one collapse' => sub {
    is(scalar @{ names($member) }, 30, 'thirty are listed');
    ok(!grep({ /^(?:search|execute)_tool/ } @{ names($member) }), 'without the meta-tools');
    $stack->ctl(qw(connectors update), { connector => 'shop', auth => { type => 'none' }, %{ store('shop', $flat + 1) } });
    my $names = names($member);
    is_deeply([ grep { !/^elaichi__/ } @$names ], [qw(execute_tool search_tools)], 'one more, and only the meta-tools are');
    is(scalar @$names, $control + 2, 'beside the operations');
    is_deeply($names, [ sort @$names ], 'in order');
    my @modern = names($member, version => '2026-07-28');
    my $legacy = [ map { $_->{name} } @{ $member->legacy('tools/list', {}, version => '2025-06-18')->{json}{result}{tools} } ];
    is_deeply($legacy, $names, 'for a legacy client too');
};

$stack->ctl(qw(connectors update), { connector => 'shop', auth => { type => 'none' }, %{ store('shop', 40) } });

subtest 'what is hidden stays callable by its name, and what was not asked for changes nothing' => sub {
    my $before = $member->list(id => '1')->{body};
    is(verdict($member->call('shop__list_invoice', {})), '200/result', 'called by name');
    is(verdict(search($member, 'list invoices')), '200/result', 'searched');
    is($member->list(id => '1')->{body}, $before, 'the list has the same bytes');
};

subtest 'modes: for all, for a client, for a grant' => sub {
    my $set = sub { $stack->ctl(qw(settings set), { key => 'collapse.mode', value => @_ }); return };
    my $meta = { name => 'narrow-host', version => '1' };
    my $narrow = sub { return [ map { $_->{name} } @{ result($member->list(meta => { clientInfo => $meta }))->{tools} } ] };
    $set->('never');
    is(scalar @{ hidden($member) }, 40, 'never: all are listed');
    $set->('always');
    is_deeply(hidden($member), [qw(execute_tool search_tools)], 'always: none');
    $set->('auto');
    $stack->ctl(qw(settings set), { key => 'collapse.mode', value => 'never', client => 'narrow-host' });
    is_deeply(hidden($member), [qw(execute_tool search_tools)], 'another client collapses');
    my $grant = $stack->ctl('grants', 'list', { member => 'member@example.org' })->{items}[-1]{grant};
    $stack->ctl(qw(settings set), { key => 'collapse.threshold', value => 1000, grant => $grant });
    is(scalar @{ hidden($member) }, 40, 'a threshold of the grant\'s own');
    $stack->ctl(qw(settings unset), { key => 'collapse.threshold', grant => $grant });
    $stack->ctl(qw(settings unset), { key => 'collapse.mode', client => 'narrow-host' });
    $stack->ctl(qw(settings set), { key => 'collapse.threshold', value => 1000 });
    is(scalar @{ hidden($member) }, 40, 'a high threshold');
    $stack->ctl(qw(settings set), { key => 'collapse.budget_tokens', value => 100 });
    is_deeply(hidden($member), [qw(execute_tool search_tools)], 'a budget of tokens');
    $stack->ctl(qw(settings unset), { key => $_ }) for qw(collapse.budget_tokens collapse.threshold collapse.mode);
};

subtest 'a pinned entry stays listed' => sub {
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ { connector => 'shop', operation => 'list_ticket', connections => ['shop'], name => 'tickets', always_visible => $yes }, { connector => 'shop', operation => 'get_ticket', connections => ['shop'], name => 'ticket' } ] });
    is_deeply(hidden($member), [qw(desk__tickets execute_tool search_tools)], 'the pinned one alone');
    ok(grep({ $_ eq 'desk__tickets' } @{ items(search($member, 'tickets', limit => 20)) }), 'and it is found too');
    $stack->ctl(qw(toolboxes delete), { toolbox => 'desk' });
};

subtest 'a search finds by product, verb and thing, with all that a call needs' => sub {
    my $answer = search($member, 'create refund');
    my ($first) = @{ found($answer)->{items} };
    is($first->{name}, 'shop__create_refund', 'the right one first');
    is($first->{account}, 'shop', 'its account');
    is($first->{connector}, 'shop', 'its connector');
    is($first->{classification}, 'write', 'its classification');
    is(ref $first->{inputSchema}, 'HASH', 'its schema');
    is(ref $first->{annotations}, 'HASH', 'our annotations');
    ok(@{ items($answer) } <= 5, 'five at most');
    is(scalar @{ items(search($member, 'list', limit => 20)) }, 10, 'as many as asked for');
    my ($brief) = @{ found(search($member, 'create refund', detail => 'summary'))->{items} };
    ok(!exists $brief->{inputSchema}, 'a summary has no schema');
    is_deeply(items(search($member, 'create refund', account => 'nowhere')), [], 'narrowed to another account: nothing');
    is(items(search($member, 'create refund', account => 'shop'))->[0], 'shop__create_refund', 'to this one: the same');
    is(items(search($member, $_))->[0], 'shop__delete_contract', "whole name: $_") for 'delete_contract', 'shop__delete_contract', 'delete contract', 'shop delete contract';
    is_deeply([ grep { /^elaichi__/ } map { @{ items(search($member, $_, limit => 20)) } } 'members list', 'whoami', 'list connections' ], [], 'no operation of the control plane');
};

subtest 'nothing found is an honest answer' => sub {
    my $answer = search($member, 'zzqx frobnicate');
    is_deeply(items($answer), [], 'no items');
    is_deeply(found($answer)->{unmatched}, [qw(zzqx frobnicate)], 'the words that no tool has');
    ok(!defined found($answer)->{suggest}, 'nothing is suggested');
    $answer = search($member, 'salesforce invoice');
    is_deeply(items($answer), [], 'an application that is not connected: nothing, and no neighbour');
    is_deeply(items(search($member, q())), [], 'an empty query');
    is(verdict(search($member, 'x' x 60_000)), '200/result', 'a long one');
};

subtest 'bad arguments of a search are told in-band, on record' => sub {
    for my $bad ({}, { query => 1 }, { query => 'x', limit => 0 }, { query => 'x', limit => 21 }, { query => 'x', detail => 'all' }, { query => 'x', other => 1 }) {
        my $answer;
        my @rows = attempts($stack, sub { $answer = $member->call('search_tools', $bad) });
        is(MCP::Client::code($answer), 'invalid_arguments', MCP::Json::encode($bad));
        is_deeply([ map { "$_->{tool} $_->{outcome} $_->{error_code}" } @rows ], ['search_tools error invalid_arguments'], 'one row');
    }
    my @rows = attempts($stack, sub { search($member, 'secretword', limit => 3) });
    is_deeply([ map { "$_->{tool} $_->{outcome} $_->{via}" } @rows ], ['search_tools ok direct'], 'a search has one row');
    is_deeply([ sort @{ $rows[0]{arg_names} } ], [qw(limit query)], 'with the names of its arguments');
    unlike(MCP::Json::encode(\@rows), qr/secretword/, 'and never its words');
};

# --- the other spelling -----------------------------------------------------------------

$stack->member('auditor2@example.org', 'Auditor');
my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
my $auditor = $stack->client(member => 'auditor2@example.org');
$stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { connector => 'shop', operation => 'delete_folder' }, { connector => 'shop', operation => 'get_calendar' } ] });

# Row and answer without what is each call's own.
sub seen {
    my ($answer, $row) = @_;
    my %row = %{ $row || {} };
    delete @row{qw(via audit_id seq time began duration_us begin_seq trace_id revision request_bytes at chain)};
    delete $row{$_} for grep { /_at$|_us$|^time|^id$/ } keys %row;
    (my $body = $answer->{body}) =~ s/\b\d+-\d+\b/AUDIT/g;
    return { status => $answer->{status}, body => $body, challenge => challenge($answer), row => \%row };
}

subtest 'execute_tool is the same call: requests, results, denials and rows but for via' => sub {
    my @cases = (
        [ 'a read',                        $member,  'shop__list_invoice',    {} ],
        [ 'a write',                       $member,  'shop__create_refund',   {} ],
        [ 'a DELETE',                      $member,  'shop__delete_invoice',  { id => '1' } ],
        [ 'missing arguments',             $member,  'shop__get_invoice',     {} ],
        [ 'unknown arguments',             $member,  'shop__get_invoice',     { id => '1', more => 2 } ],
        [ 'a URL that leaves its template', $member,  'shop__get_invoice',     { id => '../refund' } ],
        [ 'an unknown tool',               $member,  'shop__frobnicate',      {} ],
        [ 'a restricted tool',             $member,  'shop__delete_folder',   { id => '1' } ],
        [ 'a missing scope',               $low,     'shop__delete_invoice',  { id => '1' } ],
        [ 'a missing permission',          $auditor, 'shop__list_invoice',    {} ],
        [ 'an operation',                  $member,  'elaichi__whoami__get',  {} ],
        [ 'an operation that is not had',  $member,  'elaichi__members__list', {} ],
        [ 'an operation with bad arguments', $member, 'elaichi__connectors__get', {} ],
        [ 'a secret operation',            $member,  'elaichi__grants__create', { member => 'member@example.org', client => 'x' } ],
        [ 'a search',                      $member,  'search_tools',          { query => 'create refund' } ],
        [ 'a name that is none',           $member,  'no such name',          {} ]
    );
    for my $case (@cases) {
        my ($what, $who, $tool, $arguments) = @$case;
        my ($direct, $wrapped, @upstream);
        my $mark = sent();
        my ($row) = attempts($stack, sub { $direct = $who->call($tool, $arguments, id => 1) });
        my $middle = sent();
        my ($other) = attempts($stack, sub { $wrapped = $who->call('execute_tool', { name => $tool, %$arguments ? (arguments => $arguments) : () }, id => 1) });
        my @asked = map { "$_->{method} $_->{target} $_->{body}" } $upstream->requests;
        is_deeply([ @asked[ $middle .. $#asked ] ], [ @asked[ $mark .. $middle - 1 ] ], "$what: the same requests upstream");
        is_deeply(seen($wrapped, $other), seen($direct, $row), "$what: the same answer and row");
        is($row->{via}, 'direct', "$what: direct");
        is($other->{via}, 'execute_tool', "$what: and by execute_tool");
    }
};

subtest 'execute_tool does not run itself, and says what it takes' => sub {
    for my $bad ({ name => 'execute_tool', arguments => { name => 'shop__list_invoice' } }, {}, { name => 7 }, { name => 'shop__list_invoice', arguments => [] }, { name => 'shop__get_invoice', id => '1' }) {
        my $mark = sent();
        my $answer;
        my @rows = attempts($stack, sub { $answer = $member->call('execute_tool', $bad) });
        is(MCP::Client::code($answer), 'invalid_arguments', MCP::Json::encode($bad));
        is(scalar @rows, 1, 'one row');
        is(sent(), $mark, 'nothing is sent');
    }
};

subtest 'what is withheld is found by no search and counted nowhere' => sub {
    for my $query ('delete folder', 'shop__delete_folder', 'get calendar', 'calendar', 'folder') {
        my $names = items(search($member, $query, limit => 20));
        is_deeply([ grep { /delete_folder|get_calendar/ } @$names ], [], $query);
    }
    my $empty = $stack->ctl(qw(restrictions create), { effect => 'allow', target => { role => 'Member' }, items => [] });
    is_deeply(hidden($member), [], 'nothing allowed: no meta-tools either');
    is_deeply(items(search($member, 'list invoice')), [], 'search finds none');
    $stack->ctl(qw(restrictions delete), { restriction => $empty->{restriction} });
    is(items(search($member, 'list invoice'))->[0], 'shop__list_invoice', 'without the rule it does again');
};

subtest 'two accounts of one application: the one named comes first' => sub {
    $stack->ctl(qw(connections create), { connector => 'shop', label => "shop-$_", shared => $yes }) for qw(legal marketing);
    is(items(search($member, 'shop legal list invoice'))->[0], 'shop-legal__list_invoice', 'legal');
    is(items(search($member, 'marketing list invoice'))->[0], 'shop-marketing__list_invoice', 'marketing');
};

$upstream->stop;
$stack->end;
done_testing;
