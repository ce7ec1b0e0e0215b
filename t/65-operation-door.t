# The control plane as MCP tools: who is listed which operation, under which name, and what a call of one answers: a result that is the
# admin socket's, or the one refusal that applies, in the words of the protocol. What is denied changes nothing.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Verdict qw(attempts challenge result verdict);

my $true = MCP::Json::true();
my $stack = MCP::Stack->new(policyd => { reserved_labels => 'gate' });
my $resource = $stack->url;
$stack->reconfigure(server => <<"EOF");
<Location "/gate">
    MCPEndpoint On
    MCPResource $resource
    MCPControlPrefix gate
</Location>
EOF
ok($stack->gateway->graceful, 'a second location has a prefix of its own');

my %role = (owner => 'Owner', admin => 'Admin', member => 'Member', guest => 'Guest', auditor => 'Auditor', billing => 'Billing Admin');
$stack->member("$_\@example.org", $role{$_}) for qw(admin guest billing);
my $rows = $stack->policyd->admin('rpc.describe')->{result};
my %row = map { $_->{name} => $_ } @$rows;
my %held = map { my $role = $_; $role => { map { $_ => 1 } @{ $stack->ctl(qw(roles get), $role)->{permissions} } } } values %role;
my %rung = (read => 1, write => 2, destructive => 3);
my %id = map { $_ => $stack->ctl(qw(members get), "$_\@example.org")->{member} } keys %role;
my $mode = $stack->ctl(qw(settings get collapse.mode))->{value};
my $owner = $stack->client(member => 'owner@example.org');
my $member = $stack->client;

sub who { my ($name, @scopes) = @_; return $stack->client(member => "$name\@example.org", @scopes ? (scopes => [@scopes]) : ()) }
sub at_gate { my ($client) = @_; my $url = $client->url =~ s{/mcp\z}{/gate}r; return MCP::Client->new(url => $url, token => $client->token) }
sub controls { my ($who) = @_; return sort grep { /^elaichi__/ } MCP::Client::names($who->list) }
sub tool { my ($who, $name) = @_; my ($found) = grep { $_->{name} eq $name } @{ result($who->list)->{tools} }; return $found }
sub error_of { my ($answer) = @_; return ((result($answer) || {})->{structuredContent} || {})->{error} || {} }
sub revision { return $stack->policyd->admin('whoami__get')->{result}{policy_revision} }

# What an answer's bytes are without what differs from one call to the next: the audit id, and the name itself.
sub seen {
    my ($answer, $name) = @_;
    my $body = $answer->{body};
    $body =~ s/\Q$name\E/NAME/g;
    $body =~ s/\b\d+-\d+\b/AUDIT/g;
    $body =~ s/"id":\d+/"id":N/;
    my @headers = map { my $header = $_; map { "$header: $_" } @{ $answer->{headers}{$header} } }
        grep { !/^(?:date|content-length)$/ } sort keys %{ $answer->{headers} };
    return join "\n", $answer->{status}, @headers, $body;
}

# The highest rung of some scopes; 0: none.
sub highest { my ($highest) = sort { $b <=> $a } 0, map { $rung{ s/^mcp://r } || 0 } @_; return $highest }

# What the registry says that somebody may: undef, or what stands in the way.
sub obstacle {
    my ($row, $held, @scopes) = @_;
    return 'permission tool:execute' if !$held->{'tool:execute'};
    return "permission $row->{permission}" if defined $row->{permission} && !$held->{ $row->{permission} };
    return 'secret' if $row->{secret} eq 'always';
    return "scope mcp:$row->{classification}" if highest(@scopes) < $rung{ $row->{classification} };
    return undef;
}

# Arguments with which something would come of a call.
my %arguments = (
    members__create     => { email => 'through-mcp@example.org' },
    members__remove     => { member => 'auditor@example.org' },
    members__suspend    => { member => 'auditor@example.org' },
    members__update     => { member => 'member@example.org', roles => ['Owner'] },
    roles__create       => { name => 'ThroughMcp', permissions => ['tool:execute'] },
    grants__create      => { member => 'member@example.org', client => 'x' },
    settings__set       => { key => 'collapse.mode', value => 'always' },
    connections__delete => { connection => 'webdav' },
    restrictions__create => { effect => 'block', target => { role => 'Member' }, items => [ { connector => 'webdav' } ] },
    toolboxes__create    => { name => 'through', entries => [], roles => ['Member'] },
    recipes__create      => { name => 'through', title => 'x', text => 'x' },
    policy__apply        => { policy => { version => 1, roles => [] }, prune => $true }
);

sub nothing_has_come_of_it {
    my ($revision) = @_;
    is(revision(), $revision, 'the policy has the revision that it had');
    isnt($stack->policyd->ctl_refusal(qw(members get through-mcp@example.org)), undef, 'nobody was made');
    is($stack->ctl(qw(members get auditor@example.org))->{state}, 'active', 'nobody was removed or suspended');
    is_deeply($stack->ctl(qw(members get member@example.org))->{roles}, ['Member'], 'nobody was raised');
    is_deeply([ grep { $_->{client} eq 'x' } @{ $stack->ctl(qw(grants list --all))->{items} } ], [], 'nobody got a token');
    is($stack->ctl(qw(settings get collapse.mode))->{value}, $mode, 'no setting was set');
    is_deeply($stack->ctl($_, 'list')->{items}, [], "no $_ were made") for qw(restrictions toolboxes recipes);
    like(MCP::Client::text($member->call('webdav__read_file', { path => 'a.txt' })), qr/hello/, 'and the connection still works');
    return;
}

# --- the list -----------------------------------------------------------------------------

subtest 'each built-in role with each set of scopes is listed exactly what the registry says' => sub {
    my %count;
    for my $name (sort keys %role) {
        for my $bits (1 .. 15) {
            my @scopes = map { $MCP::Stack::ALL[$_] } grep { $bits & 1 << $_ } 0 .. 3;
            my @wanted = sort map { "elaichi__$_->{name}" } grep { !defined obstacle($_, $held{ $role{$name} }, @scopes) } @$rows;
            my $who = who($name, @scopes);
            is_deeply([ controls($who) ], \@wanted, "$role{$name}, @scopes");
            my $list = $who->list->{json}{result}{tools};
            is_deeply([ map { $_->{name} } @$list ], [ sort map { $_->{name} } @$list ], "$role{$name}, @scopes: in order, among the others");
            $count{"$name @scopes"} = @wanted;
        }
    }
    my $all = "@MCP::Stack::ALL";
    cmp_ok($count{"owner $all"}, '>=', 40, 'an Owner has forty or more');
    is($count{"owner $all"}, $count{"admin $all"}, 'an Admin has as many');
    cmp_ok($count{"member $all"}, '>=', 10, 'a Member about a dozen');
    cmp_ok($count{"member $all"}, '<=', 24, 'and not many more');
    is($count{"$_ $all"}, 0, "$role{$_}: none") for qw(guest auditor billing);
    is($count{'owner mcp:tools'}, 0, 'mcp:tools opens none');
};

# Places where a schema says what the registry's does not: what is left out there is looser, but never a type or a choice.
sub stricter {
    my ($shown, $kept, $at) = @_;
    $at = q() if !defined $at;
    return "$at: not an object" if ref $shown ne ref $kept;
    return MCP::Json::encode([$shown]) eq MCP::Json::encode([$kept]) ? () : $at if ref $shown ne 'HASH';
    my @bad = map { exists $kept->{$_} ? stricter($shown->{$_}, $kept->{$_}, "$at/$_") : "$at/$_" } sort keys %$shown;
    push @bad, map { "$at: no $_" } grep { !ref $kept->{$_} && exists $kept->{$_} && !exists $shown->{$_} } qw(type);
    push @bad, map { "$at: no $_" } grep { ref $kept->{$_} eq 'ARRAY' && !exists $shown->{$_} } qw(enum);
    return @bad;
}

subtest 'a definition is the registry\'s, and its annotations follow from the class' => sub {
    my %tool = map { $_->{name} => $_ } @{ result($owner->list)->{tools} };
    for my $row (@$rows) {
        my $tool = $tool{"elaichi__$row->{name}"};
        if ($row->{secret} eq 'always') {
            is($tool, undef, "$row->{name}: answers a secret and is not listed");
            next;
        }
        is($tool->{description}, $row->{description}, "$row->{name}: description");
        my $schema = $tool->{inputSchema};
        my %asked = %{ $row->{schema}{properties} };
        delete $asked{credential};
        is_deeply([ sort keys %{ $schema->{properties} } ], [ sort grep { !$asked{$_}{readOnly} } keys %asked ], "$row->{name}: its arguments, without a place for a credential");
        is_deeply([ sort @{ $schema->{required} || [] } ], [ sort grep { $_ ne 'credential' } @{ $row->{schema}{required} || [] } ], "$row->{name}: and those that it requires");
        is_deeply([ stricter($schema, $row->{schema}) ], [], "$row->{name}: nowhere stricter than what is validated, and of the same types");
        my %hints = map { $_ => $tool->{annotations}{$_} ? 1 : 0 } keys %{ $tool->{annotations} };
        my $is_read = $row->{classification} eq 'read' ? 1 : 0;
        is_deeply(
            \%hints,
            {
                readOnlyHint    => $is_read,
                destructiveHint => $row->{classification} eq 'destructive' ? 1 : 0,
                idempotentHint  => $is_read || $row->{rest}{method} =~ /^(?:PUT|DELETE)\z/ ? 1 : 0,
                openWorldHint   => 0
            },
            "$row->{name}: annotations of class $row->{classification}"
        );
    }
    is_deeply([ sort grep { /^elaichi__/ } keys %tool ], [ sort map { "elaichi__$_->{name}" } grep { $_->{secret} ne 'always' } @$rows ], 'and there is no other');
};

# --- names -----------------------------------------------------------------------------------

subtest 'no other spelling of a name is one' => sub {
    my $revision = revision();
    for my $client ($owner, $member) {
        my $unknown = seen($client->call('nobody__has_this', {}), 'nobody__has_this');
        my @names = map { ($_->{name}, "ELAICHI__$_->{name}", "Elaichi__$_->{name}", "gate__$_->{name}", "elaichi_$_->{name}", "elaichi___$_->{name}", "elaichi__$_->{name}_", "elaichi__elaichi__$_->{name}") } @$rows;
        push @names, map { ("elaichi__$_->{resource}", "elaichi__$_->{resource}_$_->{verb}", "elaichi__$_->{verb}__$_->{resource}", "elaichi__\U$_->{name}") } @$rows;
        push @names, qw(elaichi elaichi__ elaichi__nothing__get elaichi__whoami__get__ webdav__whoami__get);
        my %args = map { ($_->{name} => $arguments{ $_->{name} }) } grep { $arguments{ $_->{name} } } @$rows;
        my %answers;
        my @odd;
        my @left = attempts($stack, sub {
            for my $name (@names) {
                my ($op) = $name =~ /([a-z]+__[a-z]+)\z/;
                push @odd, $name if seen($client->call($name, $args{ $op || q() } || {}), $name) ne $unknown;
            }
        });
        is_deeply(\@odd, [], scalar(@names) . ' names answer as one that nobody has');
        is(scalar @left, scalar @names, 'each call left one row');
        my %outcome;
        $outcome{"$_->{outcome} $_->{error_code}"}++ for @left;
        is_deeply(\%outcome, { 'denied unknown_tool' => scalar @names }, 'denied, unknown_tool');
        is_deeply([ grep { defined $_->{connector} || defined $_->{classification} || $row{ $_->{operation} || q() } } @left ], [], 'and none of an operation that there is');
        for my $name ("elaichi__whoami__get ", ' elaichi__whoami__get', "elaichi__whoami__get\n", "elaichi\x{2010}whoami__get") {
            isnt(verdict($client->mcp('tools/call', { name => $name, arguments => {} }, name_header => 'elaichi__whoami__get')), '200/result',
                'nor one that the header gives another way: ' . MCP::Json::encode($name));
            isnt(verdict($client->legacy('tools/call', { name => $name, arguments => {} }, version => '2025-06-18')), '200/result', 'of an older client: ' . MCP::Json::encode($name));
        }
    }
    nothing_has_come_of_it($revision);
};

subtest 'no connection and no toolbox can take an operation\'s name' => sub {
    for my $label (qw(elaichi gate)) {
        is($stack->policyd->ctl_refusal(qw(connections create --connector webdav --shared --label), $label), 'conflict', "a connection: $label is reserved");
        is($stack->policyd->ctl_refusal(qw(toolboxes create), { name => $label, entries => [] }), 'conflict', "a toolbox: $label is reserved");
    }
    # a label like a resource is no operation: its tools are its own
    my $made = $stack->connection('members', $stack->webdav->port);
    like(MCP::Client::text($member->call('members__read_file', { path => 'a.txt' })), qr/hello/, 'a connection labelled "members" is a connection');
    is(verdict($owner->call('members__create', { email => 'through-mcp@example.org' })), '200/-32602', 'and members__create of it is no operation');
    isnt($stack->policyd->ctl_refusal(qw(members get through-mcp@example.org)), undef, 'nobody was made');
    $stack->ctl(qw(connections delete), { connection => $made->{connection} });
};

subtest 'MCPControlPrefix: another prefix at a second location, the same operations, recorded alike' => sub {
    for my $name (qw(owner member auditor)) {
        for my $scopes ([], ['mcp:read']) {
            my $here = who($name, @$scopes);
            my $there = at_gate($here);
            my @names = MCP::Client::names($there->list);
            is_deeply([ sort grep { /^gate__/ } @names ], [ sort map { s/^elaichi__/gate__/r } controls($here) ], "$name @$scopes: the same, under the other prefix");
            is_deeply([ grep { /^elaichi/ } @names ], [], "$name @$scopes: none under the first");
            is_deeply([ grep { !/^gate__/ } @names ], [ MCP::Client::connected($here->list) ], "$name @$scopes: the connected tools are the same");
        }
    }
    my $there = at_gate($owner);
    my ($here_row) = attempts($stack, sub { $owner->call('elaichi__members__get', { member => 'member@example.org' }) });
    my $answer;
    my ($row) = attempts($stack, sub { $answer = $there->call('gate__members__get', { member => 'member@example.org' }) });
    is(result($answer)->{structuredContent}{email}, 'member@example.org', 'called');
    is_deeply([ map { $row->{$_} } qw(operation tool outcome classification) ], [qw(members__get members__get ok read)], 'recorded without a prefix');
    is_deeply([ map { $here_row->{$_} } qw(operation tool outcome classification) ], [ map { $row->{$_} } qw(operation tool outcome classification) ], 'as at the first location');
    my $unknown = seen($there->call('nobody__has_this', {}), 'nobody__has_this');
    for my $name (qw(elaichi__members__get members__get GATE__members__get gate__ gate__nothing__get)) {
        is(seen($there->call($name, { member => 'member@example.org' }), $name), $unknown, "$name is nothing there");
    }
    my $definition = result($there->call('gate__tools__get', { names => [qw(gate__whoami__get elaichi__nothing__get)] }))->{structuredContent};
    is_deeply([ map { $_->{name} } @{ $definition->{items} } ], ['gate__whoami__get'], 'tools get knows it by that name');
    is_deeply($definition->{unknown}, ['elaichi__nothing__get'], 'and what nobody has as unknown');
    is(MCP::Client::code(at_gate($member)->call('gate__members__list', {})), 'permission_denied', 'refusals are the same');
    like($there->discover->{json}{result}{instructions}, qr/gate__/, 'the instructions speak of the prefix');
    unlike($there->discover->{json}{result}{instructions}, qr/elaichi/, 'and of no other');
};

# --- calls -------------------------------------------------------------------------------------

subtest 'what somebody is not listed, a call refuses for the reason that comes first, in the words of the protocol' => sub {
    my $revision = revision();
    for my $name (sort keys %role) {
        for my $scopes ([@MCP::Stack::ALL], ['mcp:read'], ['mcp:tools'], [qw(mcp:write mcp:tools)]) {
            my $who = who($name, @$scopes);
            my @odd;
            my %wanted;
            my @left = attempts($stack, sub {
                for my $row (@$rows) {
                    my $obstacle = obstacle($row, $held{ $role{$name} }, @$scopes);
                    next if !defined $obstacle;
                    my ($kind, $what) = split / /, $obstacle;
                    my $answer = $who->call("elaichi__$row->{name}", $arguments{ $row->{name} } || {});
                    my $error = error_of($answer);
                    my $got =
                          $answer->{status} == 403 ? 'scope ' . ((challenge($answer) || {})->{scope} || ['none'])->[0]
                        : ($error->{code} || q()) eq 'permission_denied' ? "permission $error->{permission}"
                        : ($error->{code} || q()) eq 'use_other_door' ? 'secret'
                        :                                               "$answer->{status} $answer->{body}";
                    push @odd, "$row->{name}: $got, not $obstacle" if $got ne $obstacle;
                    my $text = MCP::Client::text($answer);
                    push @odd, "$row->{name}: in words: $text" if $kind ne 'scope' && $text !~ ($kind eq 'secret' ? qr/policyctl|REST/ : qr/\Q$what\E/);
                    $wanted{ $kind eq 'scope' ? 'insufficient_scope' : $kind eq 'secret' ? 'use_other_door' : 'permission_denied' }++;
                }
            });
            is_deeply(\@odd, [], "$role{$name}, @$scopes: each is refused as it should be");
            my %outcome;
            $outcome{ $_->{error_code} }++ for grep { $_->{outcome} eq 'denied' && $_->{member_id} eq $id{$name} && $row{ $_->{operation} } && $_->{classification} eq $row{ $_->{operation} }{classification} } @left;
            is_deeply(\%outcome, \%wanted, "$role{$name}, @$scopes: one row each, which says so");
        }
    }
    nothing_has_come_of_it($revision);
};

subtest 'a refusal shows nothing of the object: the same bytes whether it is there or not' => sub {
    my $low = who('member', 'mcp:read');
    for my $call ([ members__get => member => 'owner@example.org', 'nobody@example.org' ], [ roles__get => role => 'Owner', 'Nobody' ], [ restrictions__explain => member => 'owner@example.org', 'nobody@example.org' ]) {
        my ($op, $argument, @values) = @$call;
        my @seen = map { seen($low->call("elaichi__$op", { $argument => $_ }), $_) } @values;
        is($seen[0], $seen[1], "$op");
    }
};

subtest 'a secret does not pass through here: use_other_door names the command and the REST path, and nothing changes' => sub {
    my $revision = revision();
    my $grants = @{ $stack->ctl(qw(grants list --all))->{items} };
    my @cases = (
        [ grants__create => $arguments{grants__create} ],
        [ connections__create => { connector => 'webdav', label => 'secret', shared => $true, credential => { token => 's3cret-t0ken' } } ],
        [ connections__update => { connection => 'webdav', credential => { token => 's3cret-t0ken' } } ]
    );
    my %secret = map { $_->{name} => 1 } grep { $_->{secret} ne 'no' } @$rows;
    is_deeply([ sort keys %secret ], [ sort map { $_->[0] } @cases ], 'these take or answer one');
    for my $case (@cases) {
        my ($op, $arguments) = @$case;
        my $answer;
        my @rows = attempts($stack, sub { $answer = $owner->call("elaichi__$op", $arguments) });
        my $error = error_of($answer);
        is($error->{code}, 'use_other_door', "$op: use_other_door");
        my ($resource, $verb) = split /__/, $op;
        (my $path = $row{$op}{rest}{path}) =~ s/\{.*//;
        like($error->{hint}, qr/policyctl $resource $verb/, "$op: the hint names the command");
        like($error->{hint}, qr/$row{$op}{rest}{method} \Q$path\E/, "$op: and the REST path");
        unlike($answer->{body}, qr/s3cret|mcp_[A-Za-z0-9_-]{40}/, "$op: no secret comes back");
        is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ['denied use_other_door'], "$op: one row");
        unlike(MCP::Json::encode(\@rows), qr/s3cret/, "$op: without it");
    }
    is(revision(), $revision, 'nothing has changed');
    is(scalar @{ $stack->ctl(qw(grants list --all))->{items} }, $grants, 'there is no further grant');
    is(verdict($owner->call('elaichi__connections__create', { connector => 'webdav', label => 'plain', shared => $true, variables => { host => '127.0.0.1:1' } })), '200/result', 'without a credential a connection is made');
    my ($made) = grep { $_->{label} eq 'plain' } @{ $stack->ctl(qw(connections list --all))->{items} };
    $stack->ctl(qw(connections delete), { connection => $made->{connection} });
};

subtest 'arguments that break the schema are an in-band invalid_request that says where, and change nothing' => sub {
    my $revision = revision();
    my @cases = (
        [ members__create => {}, qr/email/ ],
        [ members__create => { email => 7 }, qr/email/ ],
        [ members__create => { email => 'through-mcp@example.org', nothing => 1 }, qr/nothing/ ],
        [ members__list   => { limit => 0 }, qr/limit/ ],
        [ members__list   => { limit => 'many' }, qr/limit/ ],
        [ restrictions__create => { effect => 'maybe', target => { role => 'Member' }, items => [] }, qr/effect/ ],
        [ whoami__get          => { a => 1 }, qr/"?a\b/ ],
        [ tools__get           => { names => [] }, qr/names/ ]
    );
    for my $case (@cases) {
        my ($op, $arguments, $says) = @$case;
        my $what = "$op " . MCP::Json::encode($arguments);
        my $answer;
        my @rows = attempts($stack, sub { $answer = $owner->call("elaichi__$op", $arguments) });
        is(verdict($answer), '200/isError', "$what: in-band");
        is(MCP::Client::code($answer), 'invalid_request', "$what: invalid_request");
        like(error_of($answer)->{message}, $says, "$what: says where");
        is_deeply([ map { "$_->{outcome} $_->{error_code}" } @rows ], ['error invalid_request'], "$what: one row");
    }
    for my $arguments ('[]', '"x"', '7') {
        my $body = sprintf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"elaichi__members__list","arguments":%s}}', $arguments;
        my $answer = $owner->post($body, headers => [ 'MCP-Protocol-Version' => '2025-06-18' ]);
        isnt(verdict($answer), '200/result', "arguments $arguments: refused");
        cmp_ok($answer->{status}, '<', 500, "arguments $arguments: as the client's mistake");
    }
    is(MCP::Client::code($owner->call('elaichi__members__get', { member => 'nobody@example.org' })), 'not_found', 'an object that is not there is told in-band too');
    is(MCP::Client::code($owner->call('elaichi__members__create', { email => 'member@example.org' })), 'conflict', 'and one that is there already');
    is(MCP::Client::code($owner->call('elaichi__members__update', { member => 'member@example.org', name => 'x', if_revision => 999999 })), 'revision_mismatch', 'and one that somebody changed');
    is(revision(), $revision, 'nothing has changed');
};

subtest 'a result is the admin socket\'s, as structuredContent and as text' => sub {
    my @calls = (
        [ members__list      => { limit => 3 } ],
        [ members__get       => { member => 'member@example.org' } ],
        [ roles__list        => {} ],
        [ roles__get         => { role => 'Owner' } ],
        [ grants__list       => { member => 'member@example.org' } ],
        [ connectors__list   => {} ],
        [ connectors__get    => { connector => 'webdav' } ],
        [ connections__list  => {} ],
        [ tools__list        => { member => 'member@example.org', limit => 4 } ],
        [ footprint__get     => { member => 'member@example.org' } ],
        [ restrictions__list => {} ],
        [ restrictions__explain => { member => 'member@example.org', tool => 'webdav__read_file' } ],
        [ toolboxes__list => {} ],
        [ recipes__list   => {} ],
        [ settings__list  => {} ],
        [ settings__get   => { key => 'collapse.threshold' } ],
        [ policy__export  => { sections => ['roles'] } ]
    );
    for my $call (@calls) {
        my ($op, $arguments) = @$call;
        my $wanted = $stack->policyd->admin($op, $arguments)->{result};
        ok($wanted, "$op: the admin socket answers");
        my $result = result($owner->call("elaichi__$op", $arguments));
        is_deeply($result->{structuredContent}, $wanted, "$op: structuredContent");
        is(scalar @{ $result->{content} }, 1, "$op: one text");
        is_deeply(MCP::Json::decode($result->{content}[0]{text}), $wanted, "$op: which is the same");
        ok(!$result->{isError}, "$op: and no error");
    }
};

subtest 'clients of older revisions are served alike' => sub {
    my @names = controls($member);
    for my $version (qw(2025-11-25 2025-06-18 2025-03-26)) {
        my $has_structure = $version ne '2025-03-26';
        my $list = result($member->legacy('tools/list', {}, version => $version));
        is_deeply([ sort grep { /^elaichi__/ } map { $_->{name} } @{ $list->{tools} } ], \@names, "$version: the list");
        my $call = sub { my ($who, $op, $arguments) = @_; return $who->legacy('tools/call', { name => "elaichi__$op", arguments => $arguments }, version => $version) };
        my $wanted = $stack->policyd->admin('members__get', { member => 'member@example.org' })->{result};
        my $result = result($call->($owner, 'members__get', { member => 'member@example.org' }));
        is_deeply(MCP::Json::decode($result->{content}[0]{text}), $wanted, "$version: a result as text");
        is_deeply($result->{structuredContent}, $has_structure ? $wanted : undef, "$version: " . ($has_structure ? 'and structured' : 'and only so'));
        ok(!exists $result->{resultType}, "$version: nothing of a later revision");
        my $denied = $call->($member, 'members__list', {});
        is(verdict($denied), '200/isError', "$version: what is denied is in-band");
        like(MCP::Client::text($denied), qr/member:read.*permission_denied/s, "$version: and names the permission");
        is($call->(who('owner', 'mcp:read'), 'members__create', { email => 'through-mcp@example.org' })->{status}, 403, "$version: a scope that is missing is 403");
        is(verdict($call->($owner, 'nothing__get', {})), '200/-32602', "$version: an unknown one is an unknown tool");
        is(verdict($call->($owner, 'grants__create', $arguments{grants__create})), '200/isError', "$version: a secret goes through another door");
        like(MCP::Client::text($call->($owner, 'members__create', {})), qr/email.*invalid_request/s, "$version: invalid_request in words");
    }
};

subtest 'what is allowed is done, once, and recorded' => sub {
    my $answer;
    my @rows = attempts($stack, sub { $answer = $owner->call('elaichi__members__create', { email => 'through-mcp@example.org' }) });
    is(result($answer)->{structuredContent}{email}, 'through-mcp@example.org', 'a member is made');
    is_deeply([ map { "$_->{operation} $_->{outcome} $_->{classification} $_->{member_id}" } @rows ], ["members__create ok write $id{owner}"], 'one row');
    is_deeply($rows[0]{arg_names}, ['email'], 'with the argument\'s name');
    is($stack->ctl(qw(members get through-mcp@example.org))->{state}, 'active', 'who is there');
    my $again = at_gate($owner)->call('gate__members__remove', { member => 'through-mcp@example.org' });
    is(verdict($again), '200/result', 'and removed through the other location');
    is($stack->ctl(qw(members get), $stack->ctl(qw(members list --state removed))->{items}[0]{member})->{state}, 'removed', 'who is gone');
};

$stack->end;
done_testing;
