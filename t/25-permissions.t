# Who may call what: grant, permission, visibility and scope, in this order, each failing closed, each with one row.
# The WebDAV server's access log is the witness that nothing was sent.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Net;
use MCP::Stack;
use MCP::Verdict qw(attempts challenge result verdict);

my $stack = MCP::Stack->new;
my $client = $stack->client;
my %read = (path => 'a.txt');

# Answer, rows and requests of one call.
sub watch {
    my ($who, $tool, $arguments, %how) = @_;
    my @before = $stack->upstream_log;
    my $answer;
    my @rows = attempts($stack, sub { $answer = $who->call($tool, $arguments, %how) });
    my @after = $stack->upstream_log;
    return ($answer, \@rows, [ @after[ @before .. $#after ] ]);
}

# One denied row with this code, and nothing else.
sub denied {
    my ($rows, $code, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is_deeply([ map { "$_->{outcome} $_->{error_code}" } @$rows ], ["denied $code"], "$what: one row, denied, $code");
    return $rows->[0] || {};
}

sub with_token { return MCP::Client->new(url => $stack->url, token => $_[0]) }

subtest 'a DELETE without mcp:destructive is 403, sends nothing and leaves one denied row' => sub {
    for my $scopes ([qw(mcp:tools mcp:write)], [qw(mcp:tools mcp:read)], ['mcp:tools'], [qw(mcp:destructive)], [qw(mcp:read)]) {
        my $low = $stack->client(scopes => $scopes);
        my ($answer, $rows, $sent) = watch($low, 'webdav__delete_file', \%read);
        is($answer->{status}, 403, "@$scopes: 403");
        my $challenge = challenge($answer) || {};
        is_deeply($challenge->{error}, ['insufficient_scope'], "@$scopes: insufficient_scope");
        is_deeply($challenge->{scope}, ['mcp:destructive mcp:tools'], "@$scopes: both scopes in one challenge");
        is_deeply($challenge->{resource_metadata}, [ $stack->gateway->origin . '/.well-known/oauth-protected-resource/mcp' ],
            "@$scopes: the metadata");
        is($answer->{json}{error}, 'insufficient_scope', "@$scopes: the body says the same");
        is($answer->{json}{scope}, 'mcp:destructive mcp:tools', "@$scopes: with the scopes");
        my $row = denied($rows, 'insufficient_scope', "@$scopes");
        is($row->{tool}, 'webdav__delete_file', "@$scopes: the row names the tool");
        is($row->{operation}, 'webdav/delete_file', "@$scopes: and the operation");
        is($row->{connection}, 'webdav', "@$scopes: and the connection");
        is($row->{classification}, 'destructive', "@$scopes: and the class");
        is($row->{member}, 'member@example.org', "@$scopes: and the member");
        is_deeply($row->{arg_names}, ['path'], "@$scopes: and the arguments by name");
        is($row->{audit_id}, $answer->{json}{audit}, "@$scopes: the answer names the row");
        is_deeply($sent, [], "@$scopes: nothing went upstream");
    }
    is($stack->file('a.txt'), "hello\n", 'the file is still there');
    my ($answer, $rows, $sent) = watch($client, 'webdav__delete_file', { path => 'docs-none.txt' });
    is_deeply($sent, ['DELETE /docs-none.txt 404'], 'with the scope it is sent: the witness can see');
};

subtest 'the ladder: each set of scopes against each class' => sub {
    my %rung = ('mcp:read' => 1, 'mcp:write' => 2, 'mcp:destructive' => 3);
    my %class = (
        webdav__read_file   => [ 'mcp:read',        { path => 'a.txt' } ],
        webdav__list_root   => [ 'mcp:read',        {} ],
        webdav__write_file  => [ 'mcp:write',       { path => 'ladder.txt', content => 'x' } ],
        webdav__make_folder => [ 'mcp:write',       { path => 'a.txt/' } ],
        webdav__delete_file => [ 'mcp:destructive', { path => 'ladder.txt' } ],
        webdav__move_file   => [ 'mcp:destructive', { path => 'ladder-none.txt', Destination => 'b.txt', Overwrite => 'F' } ]
    );
    my @scopes = @MCP::Stack::ALL;
    for my $bits (1 .. 15) {
        my @set = map { $scopes[$_] } grep { $bits & 1 << $_ } 0 .. 3;
        my $who = $stack->client(scopes => \@set);
        my ($highest) = sort { $b <=> $a } map { $rung{$_} || 0 } @set;
        my $has_tools = grep { $_ eq 'mcp:tools' } @set;
        my %listed = map { $_ => 1 } MCP::Client::connected($who->list);
        for my $tool (sort keys %class) {
            my ($needed, $arguments) = @{ $class{$tool} };
            my $may = $has_tools && $highest >= $rung{$needed};
            my ($answer, $rows, $sent) = watch($who, $tool, $arguments);
            is($answer->{status}, $may ? 200 : 403, "@set, $tool: " . ($may ? 'may' : 'may not'));
            is(scalar @$sent, $may ? 1 : 0, "@set, $tool: " . ($may ? 'sent' : 'not sent'));
            is(scalar @$rows, 1, "@set, $tool: one row");
            is($listed{$tool} ? 1 : 0, $may ? 1 : 0, "@set, $tool: " . ($may ? 'listed' : 'not listed'));
            is_deeply((challenge($answer) || {})->{scope}, ["$needed mcp:tools"], "@set, $tool: all that it needs") if !$may;
        }
        is(scalar keys %listed, 0, "@set: nothing is listed without mcp:tools") if !$has_tools;
    }
    ok($stack->grant('member@example.org')->{token}, 'and a grant with all of them is made again');
    is($stack->policyd->ctl_refusal(qw(grants create), { member => 'member@example.org', client => 'x', scopes => ['mcp:admin'] }),
        'invalid_request', 'a scope that does not exist is not granted');
};

subtest 'an Auditor lists nothing, and a call names the permission' => sub {
    $stack->member('guest@example.org',   'Guest');
    $stack->member('billing@example.org', 'Billing Admin');
    $stack->ctl(qw(roles create), { name => 'Reader', permissions => [qw(connector:read audit:read)] });
    $stack->member('reader@example.org', 'Reader');
    $stack->member('none@example.org');
    for my $name (qw(auditor guest billing reader none)) {
        my $who = $stack->client(member => "$name\@example.org");
        my $list = $who->list;
        is(verdict($list), '200/result', "$name: tools/list is served");
        is_deeply(result($list)->{tools}, [], "$name: and empty");
        is(verdict($who->discover), '200/result', "$name: so is server/discover");
        for my $tool (qw(webdav__read_file webdav__delete_file webdav__lock_file nobody__nope)) {
            my ($answer, $rows, $sent) = watch($who, $tool, \%read);
            is(verdict($answer), '200/isError', "$name, $tool: an in-band error");
            is(MCP::Client::code($answer), 'permission_denied', "$name, $tool: permission_denied");
            is(result($answer)->{structuredContent}{error}{permission}, 'tool:execute', "$name, $tool: names tool:execute");
            like(MCP::Client::text($answer), qr/tool:execute/, "$name, $tool: in the text too");
            is(result($answer)->{resultType}, 'complete', "$name, $tool: a whole result");
            my $row = denied($rows, 'permission_denied', "$name, $tool");
            is($row->{audit_id}, result($answer)->{structuredContent}{error}{audit}, "$name, $tool: the answer names the row");
            is_deeply($sent, [], "$name, $tool: nothing went upstream");
        }
    }
    my $low = $stack->client(member => 'auditor@example.org', scopes => ['mcp:read']);
    is(MCP::Client::code($low->call('webdav__delete_file', \%read)), 'permission_denied',
        'a permission that is missing is told before a scope that is missing');
    my $legacy = $stack->client(member => 'auditor@example.org')->legacy('tools/call', { name => 'webdav__read_file', arguments => \%read }, version => '2025-03-26');
    is(verdict($legacy), '200/isError', 'a legacy client hears it too');
    like(MCP::Client::text($legacy), qr/tool:execute.*permission_denied/s, 'in words');
};

subtest 'roles add up, and a change holds on the next call' => sub {
    $stack->member('both@example.org', 'Auditor', 'Member');
    my $who = $stack->client(member => 'both@example.org');
    is(verdict($who->call('webdav__read_file', \%read)), '200/result', 'Auditor and Member may');
    $stack->ctl(qw(members update), { member => 'both@example.org', roles => ['Auditor'] });
    is(MCP::Client::code($who->call('webdav__read_file', \%read)), 'permission_denied', 'the Auditor alone may not');
    is_deeply([ MCP::Client::names($who->list) ], [], 'and lists nothing');
    $stack->ctl(qw(roles create), { name => 'Runner', permissions => ['tool:execute'] });
    $stack->ctl(qw(members update), { member => 'both@example.org', roles => ['Runner'] });
    is(verdict($who->call('webdav__read_file', \%read)), '200/result', 'a role of the organisation that holds tool:execute may');
    $stack->ctl(qw(roles update), { role => 'Runner', permissions => ['member:read'] });
    is(MCP::Client::code($who->call('webdav__read_file', \%read)), 'permission_denied', 'until it does not hold it any more');
};

subtest 'a grant that does not hold is 401, with its own row' => sub {
    my %token;
    $stack->member("$_\@example.org", 'Member') for qw(suspended removed);
    my $revoked = $stack->grant('member@example.org');
    $token{'a revoked grant'}     = $revoked->{token};
    $token{'a suspended member'}  = $stack->grant('suspended@example.org')->{token};
    $token{'a removed member'}    = $stack->grant('removed@example.org')->{token};
    $token{'another resource'}    = $stack->ctl(qw(grants create), { member => 'member@example.org', client => 'x', scopes => [@MCP::Stack::ALL], resource => 'https://other.example/mcp' })->{token};
    my $short = $stack->ctl(qw(grants create), { member => 'member@example.org', client => 'x', scopes => [@MCP::Stack::ALL], expires_in => 1 });
    $token{'an expired grant'} = $short->{token};
    for my $what (sort keys %token) {
        next if $what =~ /resource|expired/;
        is(verdict(with_token($token{$what})->call('webdav__read_file', \%read)), '200/result', "$what: served before");
    }
    $stack->ctl(qw(grants revoke), { grant => $revoked->{grant} });
    $stack->ctl(qw(members suspend), { member => 'suspended@example.org' });
    $stack->ctl(qw(members remove), { member => 'removed@example.org' });
    ok(MCP::Net::wait_for(sub { with_token($short->{token})->discover->{status} == 401 }, 10), 'the short grant expires');

    my %code = (
        'a revoked grant'    => 'grant_revoked',
        'an expired grant'   => 'grant_expired',
        'a suspended member' => 'member_suspended',
        'a removed member'   => 'member_suspended',
        'another resource'   => 'invalid_token'
    );
    for my $what (sort keys %token) {
        my $who = with_token($token{$what});
        my ($answer, $rows, $sent) = watch($who, 'webdav__read_file', \%read);
        is($answer->{status}, 401, "$what: 401");
        my $challenge = challenge($answer) || {};
        is_deeply($challenge->{error}, ['invalid_token'], "$what: invalid_token");
        like($challenge->{error_description}[0], qr/\w/, "$what: says why");
        is_deeply($challenge->{resource_metadata}, [ $stack->gateway->origin . '/.well-known/oauth-protected-resource/mcp' ], "$what: the metadata");
        my $row = denied($rows, $code{$what}, $what);
        is($row->{tool}, 'webdav__read_file', "$what: the row names the tool");
        ok($row->{grant_id}, "$what: and the grant");
        is_deeply($sent, [], "$what: nothing went upstream");
        for my $method (qw(tools/list server/discover no/such)) {
            my $other;
            my @none = attempts($stack, sub { $other = $who->mcp($method) });
            is($other->{status}, 401, "$what, $method: 401");
            is_deeply(\@none, [], "$what, $method: no row, since it is no attempt");
        }
        is($who->legacy('tools/call', { name => 'webdav__read_file', arguments => \%read }, version => '2025-06-18')->{status}, 401,
            "$what: a legacy client hears it too");
    }
    for my $unknown ('mcp_' . 'A' x 43, 'x', substr($client->token, 0, -1) . ($client->token =~ /A\z/ ? 'B' : 'A')) {
        my ($answer, $rows, $sent) = watch(with_token($unknown), 'webdav__read_file', \%read);
        is($answer->{status}, 401, 'a token of nobody: 401');
        is_deeply((challenge($answer) || {})->{error}, ['invalid_token'], 'a token of nobody: invalid_token');
        is_deeply($rows, [], 'a token of nobody: no row');
        is_deeply($sent, [], 'a token of nobody: nothing went upstream');
    }
    $stack->ctl(qw(members reinstate), { member => 'suspended@example.org' });
    is(verdict(with_token($token{'a suspended member'})->call('webdav__read_file', \%read)), '200/result', 'a member that is reinstated is served again');
    is(with_token($token{'a revoked grant'})->discover->{status}, 401, 'a grant that was revoked stays so');
};

subtest 'what is withheld answers as what never was; the row says why' => sub {
    $stack->member('other@example.org', 'Member');
    $stack->connection('theirs', $stack->webdav->port, owner => 'other@example.org');
    $stack->connection('boxed',  $stack->webdav->port, toolbox_only => MCP::Json::true());
    my $owner = $stack->client(member => 'owner@example.org');
    my $low = $stack->client(scopes => ['mcp:read']);
    # tool, the row's code
    my @cases = (
        [ 'nobody__read_file',  'unknown_tool' ],
        [ 'webdav__nope',       'unknown_tool' ],
        [ 'theirs__read_file',  'restricted' ],
        [ 'theirs__nope',       'unknown_tool' ],
        [ 'theirs__lock_file',  'restricted' ],
        [ 'boxed__read_file',   'restricted' ],
        [ 'webdav__lock_file',  'forbidden' ]
    );
    for my $who ([ 'a Member', $client ], [ 'the Owner', $owner ], [ 'a Member with one scope', $low ]) {
        my ($whose, $from) = @$who;
        my $never;
        for my $case (@cases) {
            my ($tool, $code) = @$case;
            my ($answer, $rows, $sent) = watch($from, $tool, \%read, id => 1);
            (my $bytes = $answer->{body}) =~ s/\Q$tool\E/NAME/g;
            $never = "$answer->{status} $bytes" if !defined $never;
            is("$answer->{status} $bytes", $never, "$whose, $tool: the same bytes");
            my $row = denied($rows, $code, "$whose, $tool");
            is($row->{tool}, $tool, "$whose, $tool: the row has the name");
            is_deeply($sent, [], "$whose, $tool: nothing went upstream");
            ok(!(grep { $_ eq $tool } MCP::Client::names($from->list)), "$whose, $tool: not listed");
        }
        like($never, qr/^200 .*"code":-32602/, "$whose: which are those of an unknown tool");
    }
    my $theirs = $stack->client(member => 'other@example.org');
    is(verdict($theirs->call('theirs__read_file', \%read)), '200/result', 'whose it is can use it');
    my ($row) = attempts($stack, sub { $theirs->call('theirs__read_file', \%read) });
    is($row->{connection}, 'theirs', 'and the row says which account was reached');
    my ($answer, $rows) = watch($client, 'a' x 200, {});
    is(denied($rows, 'unknown_tool', 'a long name')->{tool} =~ /^#200:[0-9A-Za-z]{16}\z/ ? 1 : 0, 1, 'a name that is none is kept as length and keyed hash');
};

$stack->end;
done_testing;
