# Long lists collapse behind search_tools and execute_tool: when, what stays listed, what is found, and that a call by the other
# spelling is the same call. The upstream's log is the witness.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Later;
use MCP::Net;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts challenge result verdict);

my $yes = MCP::Json::true();
# a quarter of MCPMaxCalls, of the one child or of all, runs on one connection: one
my $children = ($ENV{MCP_TEST_MPM} || 'event') eq 'prefork'
    ? "StartServers 8\nServerLimit 8\nMaxRequestWorkers 8\nMinSpareServers 1\nMaxSpareServers 8\n"
    : "StartServers 1\nServerLimit 1\nThreadsPerChild 16\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 16\n";
my $stack = MCP::Stack->new(webdav => 0, collapse => 1, server => "${children}MCPMaxCalls 4\n");
my %faults = (
    missing => sub { return MCP::Upstream::json(404, { no => 'such' }) },
    broken  => sub { return MCP::Upstream::json(500, { sorry => 1 }) },
    drop    => sub { return undef },
    garbage => sub { return "what do you want?\r\n\r\n" },
    large   => sub { return MCP::Upstream::json(200, { much => 'x' x 5000 }) },
    hang    => sub { my ($peer) = @_; $peer->linger; return undef },
    away    => sub { return MCP::Upstream::answer(302, q(), Location => 'http://192.0.2.1/there') },
    stall   => sub { my ($peer) = @_; $peer->stall; return MCP::Upstream::json(200, {}) }
);
my $upstream = MCP::Upstream->start(
    root  => $stack->root,
    serve => sub {
        my ($request, $peer) = @_;
        my ($fault) = $request->{target} =~ m{^/(?:faults|slow)/(\w+)\z};
        return $faults{$fault}->($peer) if defined $fault && $faults{$fault};
        return MCP::Upstream::json(200, { target => $request->{target} });
    }
);
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

$stack->member($_, 'Auditor') for qw(auditor2@example.org);
$stack->member($_, 'Member')  for qw(other@example.org suspended@example.org removed@example.org);
my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
my $reader = $stack->client(scopes => [qw(mcp:read)]);
my $auditor = $stack->client(member => 'auditor2@example.org');
my $owner = $stack->client(member => 'owner@example.org');
my $other = $stack->client(member => 'other@example.org');

# An application where things go wrong, one at an address that is not allowed, one without its credential.
sub plain { my ($id, $method, %more) = @_; return { id => $id, method => $method, path => "/$id", description => "Does $id.", %more } }
my $text = { type => 'string' };
$stack->connector(
    {
        slug => 'faults', base_url => $upstream->origin . '/faults', max_bytes => 1024, timeout_ms => 300,
        operations => [
            (map { plain(@$_) } [qw(missing GET)], [qw(broken POST)], [qw(drop POST)], [qw(garbage POST)], [qw(large GET)], [qw(hang POST)], [qw(away GET)], [qw(get_admin GET)]),
            plain('never', 'POST', classification => 'forbidden'),
            plain('get_one', 'GET', path => '/{id}', parameters => [ { name => 'id', in => 'path', required => $yes, schema => $text } ]),
            plain('typed', 'POST', body => { content_type => 'application/json', required => $yes, schema => { type => 'object', properties => { count => { type => 'integer', maximum => 9 }, kind => { enum => [qw(a b)] }, more => { type => 'object', properties => { deep => $text }, required => ['deep'] } }, required => ['count'] } })
        ]
    }
);
$stack->ctl(qw(restrictions create), { effect => 'block', target => { role => 'Member' }, items => [ { connector => 'shop', operation => 'delete_folder' }, { connector => 'shop', operation => 'get_calendar' }, { connector => 'faults', operation => 'get_admin' } ] });
my $nobody = MCP::Net::free_port();
$stack->connector({ slug => 'inside', base_url => "http://127.0.0.1:$nobody", operations => [ plain('ask', 'GET') ] });
$stack->connector({ slug => 'vault', base_url => $upstream->origin . '/vault', auth => { type => 'bearer' }, operations => [ plain('open', 'GET') ] });
$stack->connector({ slug => 'slow', base_url => $upstream->origin . '/slow', operations => [ plain('stall', 'POST') ] });
$stack->ctl(qw(connections create), { connector => 'faults', label => 'theirs', owner => 'other@example.org' });
$stack->ctl(qw(connections create), { connector => 'faults', label => "$_-box", shared => $yes, toolbox_only => $yes }) for qw(east west);
my @typed = (connector => 'faults', operation => 'typed');
$stack->ctl(
    qw(toolboxes create),
    {
        name    => 'desk',
        roles   => ['Member'],
        entries => [
            { @typed, connections => [qw(east-box west-box)], name => 'merged' },
            { @typed, connections => ['east-box'], name => 'frozen', frozen => { kind => 'b', '/more/deep' => 'fixed' } },
            { @typed, connections => ['west-box'], name => 'eased', defaults => { count => 3, kind => 'a' } },
            { @typed, connections => ['west-box'], name => 'pinned', always_visible => $yes }
        ]
    }
);
$stack->ctl(qw(toolboxes create), { name => 'shut', roles => ['Auditor'], entries => [ { @typed, connections => ['east-box'], name => 'typed' } ] });

# Clients whose grant or member has come to an end.
sub ended {
    my ($email, %more) = @_;
    my $grant = $stack->ctl(qw(grants create), { member => $email, client => 'x', scopes => [@MCP::Stack::ALL], %more });
    return ($member->with($grant->{token}), $grant->{grant});
}
my ($revoked, $grant) = ended('member@example.org');
$stack->ctl(qw(grants revoke), { grant => $grant });
my ($suspended) = ended('suspended@example.org');
$stack->ctl(qw(members suspend), { member => 'suspended@example.org' });
my ($removed) = ended('removed@example.org');
$stack->ctl(qw(members remove), { member => 'removed@example.org' });
my ($expired) = ended('member@example.org', expires_in => 1);
MCP::Net::wait_for(sub { $expired->call('shop__list_invoice')->{status} == 401 });
my $stranger = $member->with('nobody-has-this-token');

# Row and answer without what is each call's own: ids of rows and of what is made, times, and a number in a name.
sub seen {
    my ($answer, $row) = @_;
    my %row = %{ $row || {} };
    delete @row{qw(via audit_id seq time began duration_us begin_seq trace_id revision request_bytes at chain)};
    delete $row{$_} for grep { /_at$|_us$|^time|^id$/ } keys %row;
    (my $body = $answer->{body}) =~ s/\b\d+-\d+\b/AUDIT/g;
    $body =~ s/\b([a-z]{3})_[0-9a-z]{26}\b/$1_ID/g;
    $body =~ s/The upstream closed the connection without an answer|The connection to the upstream broke/HUNG UP/g;    # as the kernel tells
    $body =~ s/\bmade-\d+\b/made-N/g;
    $body =~ s/\\?"[a-z]+_at\\?":\\?"[^"]*"/TIME/g;
    $body =~ s/\\?"revision\\?":\\?"?\d+\\?"?/REVISION/g;
    my $of_row = MCP::Json::encode({ detail => delete $row{detail}, $body =~ /made-N/ ? (connection_id => delete $row{connection_id}) : () });
    $of_row =~ s/\b([a-z]{3})_[0-9a-z]{26}\b/$1_ID/g;
    return { status => $answer->{status}, body => $body, challenge => challenge($answer), row => \%row, made => $of_row };
}

my $made = 10;

# What is asked, by whom, the tool, its arguments (a sub: new ones each time), and the word that the direct call must be answered with.
my @cases = (
    [ 'a read',                            $member,    'shop__list_invoice',     {},                          'result' ],
    [ 'a write',                           $member,    'shop__create_refund',    {},                          'result' ],
    [ 'a DELETE',                          $member,    'shop__delete_invoice',   { id => '1' },               'result' ],
    [ 'a revoked grant',                   $revoked,   'shop__list_invoice',     {},                          401 ],
    [ 'an expired grant',                  $expired,   'shop__list_invoice',     {},                          401 ],
    [ 'a suspended member',                $suspended, 'shop__list_invoice',     {},                          401 ],
    [ 'a removed member',                  $removed,   'shop__list_invoice',     {},                          401 ],
    [ 'a revoked grant, an operation',     $revoked,   'elaichi__whoami__get',   {},                          401 ],
    [ 'a revoked grant, a name that is not', $revoked, 'shop__frobnicate',       {},                          401 ],
    [ 'no grant has this token',           $stranger,  'shop__list_invoice',     {},                          401 ],
    [ 'a missing permission',              $auditor,   'shop__list_invoice',     {},                          'permission_denied' ],
    [ 'a missing permission, a name that is not', $auditor, 'shop__frobnicate',  {},                          'permission_denied' ],
    [ 'an unknown tool',                   $member,    'shop__frobnicate',       {},                          -32602 ],
    [ 'a name that is none',               $member,    'no such name',           {},                          -32602 ],
    [ "another's connection",              $member,    'theirs__broken',         {},                          -32602 ],
    [ 'the same, by its owner',            $other,     'theirs__broken',         {},                          'upstream_status' ],
    [ 'a toolbox of others',               $member,    'shut__typed',            { count => 1 },              -32602 ],
    [ 'a connection for toolboxes alone',  $member,    'east-box__typed',        { count => 1 },              -32602 ],
    [ 'forbidden',                         $member,    'faults__never',          {},                          -32602 ],
    [ 'a restricted tool',                 $member,    'shop__delete_folder',    { id => '1' },               -32602 ],
    [ 'a missing scope, DELETE',           $low,       'shop__delete_invoice',   { id => '1' },               403 ],
    [ 'a missing scope, POST',             $low,       'shop__create_refund',    {},                          403 ],
    [ 'a rung that is there',              $low,       'shop__list_invoice',     {},                          'result' ],
    [ 'without mcp:tools',                 $reader,    'shop__list_invoice',     {},                          403 ],
    [ 'without mcp:tools and the rung',    $reader,    'shop__delete_invoice',   { id => '1' },               403 ],
    [ 'an invisible tool without scopes',  $reader,    'shop__delete_folder',    { id => '1' },               -32602 ],
    [ 'missing arguments',                 $member,    'shop__get_invoice',      {},                          'invalid_arguments' ],
    [ 'unknown arguments',                 $member,    'shop__get_invoice',      { id => '1', more => 2 },    'invalid_arguments' ],
    [ 'arguments of another type',         $member,    'faults__typed',          { count => 'x' },            'invalid_arguments' ],
    [ 'arguments out of range',            $member,    'faults__typed',          { count => 10 },             'invalid_arguments' ],
    [ 'a deep argument missing',           $member,    'faults__typed',          { count => 1, more => {} },  'invalid_arguments' ],
    [ 'a URL that leaves its template',    $member,    'shop__get_invoice',      { id => '../refund' },       undef ],
    [ 'a URL that is of a withheld operation', $member, 'faults__get_one',       { id => 'get_admin' },       'url_restricted' ],
    [ '404 upstream',                      $member,    'faults__missing',        {},                          'upstream_status' ],
    [ '500 upstream',                      $member,    'faults__broken',         {},                          'upstream_status' ],
    [ 'the application hangs up',          $member,    'faults__drop',           {},                          'upstream_unreachable' ],
    [ 'the application answers no HTTP',   $member,    'faults__garbage',        {},                          'upstream_invalid' ],
    [ 'the application is too slow',       $member,    'faults__hang',           {},                          'upstream_timeout' ],
    [ 'the application sends elsewhere',   $member,    'faults__away',           {},                          undef ],
    [ 'a result that is too large',        $member,    'faults__large',          {},                          'result_too_large' ],
    [ 'an address that is not allowed',    $member,    'inside__ask',            {},                          'egress_denied' ],
    [ 'no credential',                     $member,    'vault__open',            {},                          'needs_reauth' ],
    [ 'merged',                            $member,    'desk__merged',           { count => 1, connection => 'west-box' }, 'result' ],
    [ 'merged, which one?',                $member,    'desk__merged',           { count => 1 },              'invalid_arguments' ],
    [ 'merged, none of these',             $member,    'desk__merged',           { count => 1, connection => 'shop' }, 'invalid_arguments' ],
    [ 'frozen',                            $member,    'desk__frozen',           { count => 1 },              'result' ],
    [ 'frozen, and given',                 $member,    'desk__frozen',           { count => 1, kind => 'a' }, undef ],
    [ 'frozen below, and given',           $member,    'desk__frozen',           { count => 1, more => { deep => 'mine' } }, undef ],
    [ 'defaults',                          $member,    'desk__eased',            {},                          'result' ],
    [ 'defaults, overruled',               $member,    'desk__eased',            { count => 4 },              'result' ],
    [ 'pinned',                            $member,    'desk__pinned',           { count => 5, kind => 'b' }, 'result' ],
    [ 'an operation',                      $member,    'elaichi__whoami__get',   {},                          'result' ],
    [ 'an operation that is not had',      $member,    'elaichi__members__list', {},                          'permission_denied' ],
    [ 'an operation that is not',          $member,    'elaichi__whoami__sing',  {},                          -32602 ],
    [ 'an operation with bad arguments',   $member,    'elaichi__connectors__get', {},                        undef ],
    [ 'an operation on what is not there', $member,    'elaichi__connectors__get', { connector => 'none' },   'not_found' ],
    [ 'a secret operation',                $member,    'elaichi__grants__create', { member => 'member@example.org', client => 'x' }, undef ],
    [ 'a secret operation of an Owner',    $owner,     'elaichi__grants__create', { member => 'member@example.org', client => 'x', scopes => ['mcp:read'] }, 'use_other_door' ],
    [ 'a writing operation',               $owner,     'elaichi__settings__set', { key => 'search.closest', value => 1 }, 'result' ],
    [ 'a writing operation with a bad value', $owner,  'elaichi__settings__set', { key => 'search.closest', value => 9 }, undef ],
    [ 'a making operation',                $owner,     'elaichi__roles__create', sub { return { name => 'made-' . ++$made, permissions => ['audit:read'] } }, 'result' ],
    [ 'a making operation, taken',         $owner,     'elaichi__roles__create', { name => 'made-11', permissions => ['audit:read'] }, 'conflict' ],
    [ 'a making operation, tried',         $owner,     'elaichi__restrictions__create', { effect => 'block', target => { role => 'Guest' }, items => [ { connector => 'shop' } ], dry_run => $yes }, 'result' ],
    [ 'a connection of his own',           $member,    'elaichi__connections__create', sub { return { connector => 'inside', label => 'made-' . ++$made } }, 'result' ],
    [ 'an operation without its scope',    $low,       'elaichi__connections__create', { connector => 'shop', label => 'made-x' }, 403 ],
    [ 'a search',                          $member,    'search_tools',           { query => 'create refund' }, 'result' ],
    [ 'a search with bad arguments',       $member,    'search_tools',           { query => 7 },              'invalid_arguments' ],
    [ 'a search without permission',       $auditor,   'search_tools',           { query => 'create refund' }, 'permission_denied' ],
);

# The one word of an answer: the code of an error in-band, -32602, the status of a refusal by HTTP, or "result".
sub word {
    my ($answer) = @_;
    return $answer->{status} if $answer->{status} != 200 && $answer->{status} != 400;
    my $rpc = MCP::Verdict::rpc_code($answer);
    return $rpc if defined $rpc;
    my $result = result($answer);
    return 'result' if !$result->{isError};
    return MCP::Client::code($answer) if $result->{structuredContent};
    return $result->{content}[-1]{text} =~ /\((\w+)(?:, audit [^)]*)?\)\z/ ? $1 : 'upstream_status';    # 2025-03-26 has text alone
}

sub asked_by {
    my ($revision, $who, $tool, $arguments) = @_;
    return $who->call($tool, $arguments, id => 1) if $revision eq '2026-07-28';
    return $who->legacy('tools/call', { name => $tool, arguments => $arguments }, version => $revision, id => 1);
}

sub same_call {
    my ($revision, $what, $who, $tool, $arguments, $word) = @_;
    my $make = ref $arguments eq 'CODE' ? $arguments : sub { return $arguments };
    my ($direct, $wrapped);
    my $mark = sent();
    my ($row) = attempts($stack, sub { $direct = asked_by($revision, $who, $tool, $make->()) });
    my $middle = sent();
    my $inner = $make->();
    my ($other) = attempts($stack, sub { $wrapped = asked_by($revision, $who, 'execute_tool', { name => $tool, %$inner ? (arguments => $inner) : () }) });
    my @asked = map { "$_->{method} $_->{target} " . join('|', sort map { join ':', @$_ } grep { $_->[0] !~ /^traceparent$/i } @{ $_->{headers} }) . " $_->{body}" } $upstream->requests;
    is_deeply([ @asked[ $middle .. $#asked ] ], [ @asked[ $mark .. $middle - 1 ] ], "$what: the same requests upstream");
    my ($first, $second) = (seen($direct, $row), seen($wrapped, $other));
    is_deeply($second, $first, "$what: the same answer and row");
    is(word($direct), $word, "$what: $word") if defined $word;
    return is_deeply([ $row, $other ], [ undef, undef ], "$what: nobody to record") if $who->token eq 'nobody-has-this-token';
    is($row->{via}, 'direct', "$what: direct");
    is($other->{via}, 'execute_tool', "$what: and by execute_tool");
    return;
}

for my $revision (qw(2026-07-28 2025-06-18 2025-03-26)) {
    subtest "$revision: execute_tool is the same call: requests, results, denials and rows but for via" => sub {
        same_call($revision, @$_) for @cases;
    };
}

subtest 'who is refused what he can cure is told the operation that helps, by the name it has here' => sub {
    for my $case (
        [ 'shop__get_invoice',             {},                               'invalid_arguments', qr/elaichi__tools__get/ ],
        [ 'desk__merged',                  { count => 1 },                   'invalid_arguments', qr/east-box, west-box.*elaichi__tools__get/ ],
        [ 'elaichi__connectors__get',      {},                               'invalid_request',   qr/elaichi__tools__get/ ],
        [ 'elaichi__connectors__get',      { connector => 'none' },          'not_found',         qr/connectors list/ ],
        [ 'elaichi__connections__get',     { connection => 'none' },         'not_found',         qr/connections list/ ],
        [ 'elaichi__connections__create',  { connector => 'none', label => 'a' }, 'not_found',    qr/connectors list/ ],
        [ 'elaichi__toolboxes__get',       { toolbox => 'none' },            'not_found',         qr/toolboxes list/ ],
        [ 'vault__open',                   {},                               'needs_reauth',      qr/policyctl connections update.*elaichi__connections__list/ ],
        [ 'elaichi__members__list',        {},                               'permission_denied', qr/elaichi__whoami__get/ ]
        )
    {
        my ($tool, $arguments, $code, $hint) = @$case;
        my $answer = $member->call($tool, $arguments);
        is(MCP::Client::code($answer), $code, "$tool: $code");
        like(result($answer)->{structuredContent}{error}{hint} || q(), $hint, "$tool: the hint names it");
        like(MCP::Client::text($answer), $hint, "$tool: and so does the text");
        my %listed = map { $_ => 1 } @{ names($member) };
        is_deeply([ grep { !$listed{$_} } MCP::Client::text($answer) =~ /\b(elaichi__\w+)/g ], [], "$tool: the operation is listed");
    }
    my $text = MCP::Client::text($auditor->call('shop__list_invoice', {}));
    unlike($text, qr/elaichi__/, 'who may call no operation is sent to none');
};

subtest 'what is frozen is sent as it is frozen, by either spelling' => sub {
    for my $how ('desk__frozen', 'execute_tool') {
        my $mark = sent();
        $member->call($how, $how eq 'desk__frozen' ? { count => 2 } : { name => 'desk__frozen', arguments => { count => 2 } });
        my @asked = $upstream->requests;
        is_deeply([ map { MCP::Json::decode($_->{body}) } @asked[ $mark .. $#asked ] ], [ { count => 2, kind => 'b', more => { deep => 'fixed' } } ], $how);
    }
};

subtest 'more calls on a connection than may be at once' => sub {
    my $mark = sent();
    my $busy = MCP::Later->start(sub { $upstream->release; return $stack->client->call('slow__stall', {}) });
    $upstream->wait_for_requests($mark + 1);
    for my $revision (qw(2026-07-28 2025-06-18)) {
        same_call($revision, 'another call', $member, 'slow__stall', {}, 429);
    }
    $upstream->release;
    is(word($busy->get), 'result', 'the first is served');
};

subtest 'without policyd nothing runs, whatever the spelling' => sub {
    my $mark = sent();
    $stack->policyd->stop;
    for my $revision (qw(2026-07-28 2025-06-18)) {
        my @answers = map { asked_by($revision, $member, @$_) } [ 'shop__create_refund', {} ], [ 'execute_tool', { name => 'shop__create_refund' } ];
        is($_->{status}, 503, "$revision: 503") for @answers;
        is($answers[1]{body}, $answers[0]{body}, "$revision: the same words");
        is(MCP::Client::header($answers[1], 'Retry-After'), MCP::Client::header($answers[0], 'Retry-After'), "$revision: the same Retry-After");
    }
    is(sent(), $mark, 'nothing is sent');
    $stack->policyd->start;
    ok(MCP::Net::wait_for(sub { $member->call('shop__list_invoice')->{status} == 200 }), 'and then again');
};

$stack->ctl(qw(toolboxes delete), { toolbox => $_ }) for qw(desk shut);
$stack->ctl(qw(connections delete), { connection => $_ }) for qw(faults inside vault slow east-box west-box);

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
$stack->end(expected => [qw(MCP0301)]);
done_testing;
