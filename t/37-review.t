# What a hostile member, a half-trusted administrator and a reader of rules try at the doors: a connector made again, a role taken off
# oneself, toolboxes on what is withheld, exports of what one can't read, labels of others, floods of connections.
use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(result);

my $TRUE = MCP::Json::true();
my $stack = MCP::Stack->new(webdav => 0);
my $upstream = MCP::Upstream->start(
    root  => $stack->root,
    serve => sub { my ($request) = @_; return MCP::Upstream::json(200, { target => $request->{target} }) }
);
$stack->reconfigure(allow => [$upstream->origin]);
$stack->gateway->graceful;

sub op {
    my ($id, $path, @names) = @_;
    my @parameters = map { { name => $_, in => $path =~ /[{]\Q$_\E[}]/ ? 'path' : 'query', required => $TRUE, schema => { type => 'string' } } } @names;
    return { id => $id, method => 'GET', path => $path, description => 'One.', parameters => \@parameters };
}

sub hr {
    return {
        slug       => 'hr',
        base_url   => $upstream->origin . '/hr',
        operations => [op('get_user', '/users/{id}', 'id'), op('find', '/users', 'team')]
    };
}

sub role {
    my ($name, @permissions) = @_;
    return $stack->ctl(qw(roles create), { name => $name, permissions => \@permissions });
}

# A member of a role of the same name with these permissions, and a client of hers.
sub holder {
    my ($name, @permissions) = @_;
    role($name, @permissions, 'tool:execute');
    $stack->member("\L$name\E\@example.org", $name);
    return $stack->client(member => "\L$name\E\@example.org");
}

sub ask { my ($client, $operation, $arguments) = @_; return $client->call("elaichi__$operation", $arguments || {}) }

sub told {
    my ($answer) = @_;
    my $result = result($answer);
    return $result && ref $result->{structuredContent} eq 'HASH' ? $result->{structuredContent} : {};
}

# The code of a refusal inside or beside the result; 'ok'.
sub failure {
    my ($answer) = @_;
    my $result = result($answer) || return $answer->{json}{error}{data} || { code => 'no answer' };
    return $result->{isError} ? told($answer)->{error} || { code => 'error' } : { code => 'ok' };
}
sub code { my ($answer) = @_; return failure($answer)->{code} }
sub text { my ($answer) = @_; return $answer->{body} }

my $member = $stack->client;
$stack->connector(hr());

subtest 'a connector does not come free of rules by being made again' => sub {
    $stack->ctl(qw(restrictions create),
        { effect => 'block', name => 'no-hr', target => { role => 'Member' }, items => [{ connector => 'hr', operation => 'get_user' }] });
    isnt(code($member->call('hr__get_user', { id => '1' })), 'ok', 'it is blocked');
    $stack->ctl(qw(connections delete hr));
    is($stack->policyd->ctl_refusal(qw(connectors delete hr)), 'conflict', 'a connector that a rule names stays');
    my $dry = $stack->policyd->ctl_refusal(qw(policy apply), { policy => { version => 1, connectors => [] }, prune => $TRUE });
    is($dry, 'conflict', 'by a document too, unless the rule goes with it');
    $stack->ctl(qw(connections create), { connector => 'hr', label => 'hr', shared => $TRUE });
    isnt(code($member->call('hr__get_user', { id => '1' })), 'ok', 'and so it is blocked still');
    my $applied = $stack->ctl(qw(policy apply),
        { policy => { version => 1, connectors => [], connections => [], restrictions => [] }, prune => $TRUE });
    is($applied->{deleted}, 3, 'with the rule it goes, in this order');
    my ($row) = grep { $_->{operation} eq 'policy__apply' && $_->{outcome} eq 'ok' } reverse $stack->audit;
    like($row->{detail}, qr/\bdeleted restriction=rst_\w+, deleted connection=cxn_\w+, deleted connector=con_\w+/, 'the record names all three');
    $stack->connector(hr());
};

subtest 'a role that one is restricted by does not come off' => sub {
    my $mw = holder('Mw', qw(member:read member:write));
    role('Mw2', qw(member:read member:write tool:execute));
    $stack->ctl(qw(restrictions create), { effect => 'block', name => 'bound', target => { role => 'Mw' }, items => [{ connector => 'hr' }] });
    is(code(ask($mw, 'members__update', { member => 'mw@example.org', roles => ['Mw2'] })), 'permission_denied', 'not by oneself');
    my $mine = $stack->ctl(qw(members get mw@example.org));
    is_deeply($mine->{roles}, ['Mw'], 'and nothing is changed');
};

subtest 'toolboxes on what is withheld' => sub {
    $stack->ctl(qw(toolboxes create),
        {
            name    => 'desk',
            roles   => ['Member'],
            entries => [{ connector => 'hr', operation => 'find', connections => ['hr'], name => 'find', frozen => { team => 's3cret' } }]
        });
    my $tw = holder('Tw', qw(toolbox:read toolbox:write));
    like(text(ask($tw, 'toolboxes__get', { toolbox => 'desk' })), qr/s3cret/, 'a writer sees frozen values');
    $stack->ctl(qw(restrictions create), { effect => 'block', name => 'tw', target => { role => 'Tw' }, items => [{ connector => 'hr' }] });
    my $seen = ask($tw, 'toolboxes__get', { toolbox => 'desk' });
    unlike(text($seen), qr/s3cret/, 'not of what is withheld from him');
    my $entries = told($seen)->{entries};
    my $mine = { name => 'mine', entries => [{ connector => 'hr', operation => 'find', connections => ['hr'], frozen => { zzz => 1 } }] };
    my $there = ask($tw, 'toolboxes__create', $mine);
    is(code($there), 'not_found', 'nor makes he an entry on it');
    unlike(text($there), qr/\bteam\b/, 'or is told its arguments');
    is(code(ask($tw, 'toolboxes__update', { toolbox => 'desk', entries => $entries })), 'ok', 'as it is shown it may stay');
    is(code(ask($tw, 'toolboxes__update', { toolbox => 'desk', entries => [{ %{ $entries->[0] }, frozen => {} }] })), 'conflict', 'but not change');
    is($stack->ctl(qw(toolboxes get desk))->{entries}[0]{frozen}{team}, 's3cret', 'and it has not');
};

subtest 'readers of rules and policies read no more than that' => sub {
    my $rr = holder('Rr', qw(restriction:read policy:read));
    is(code(ask($member, 'connections__create', { connector => 'hr', label => 'hers-alone' })), 'ok', 'a member has a connection of her own');
    my %of = (member => 'member@example.org', connector => 'hr', operation => 'find');
    is(code(ask($rr, 'restrictions__explain', \%of)), 'permission_denied', 'explain tells nothing about another');
    is(code(ask($rr, 'restrictions__explain', { %of, member => 'rr@example.org' })), 'ok', 'but about oneself');
    $stack->ctl(qw(restrictions create), { effect => 'block', name => 'for-her', target => { member => 'member@example.org' }, items => [] });
    unlike(text(ask($rr, 'restrictions__list')), qr/member\@example/, 'a list has no emails');
    for my $section (qw(roles connectors connections settings recipes toolboxes restrictions)) {
        is(code(ask($rr, 'policy__export', { sections => [$section] })), 'permission_denied', "$section is no part of reading a policy");
    }
    my $rm = holder('Rm', qw(restriction:read member:read policy:read));
    my $explained = text(ask($rm, 'restrictions__explain', \%of));
    unlike($explained, qr/hers-alone/, 'labels of others are shown to nobody who could not list them');
    like($explained, qr/\Q(private)\E/, 'but that there is a path');
    is(code(ask($rm, 'policy__export', { sections => ['restrictions'] })), 'ok', 'with both permissions restrictions are exported');
};

subtest 'connections' => sub {
    $stack->connector({ %{ hr() }, slug => 'crm' }, toolbox_only => $TRUE);
    unlike(text(ask($member, 'connections__list')), qr/"crm"/, 'what serves toolboxes alone is not shown to whom it does not serve');
    my %told = map { $_ => failure(ask($member, 'connections__create', { connector => 'hr', label => $_ }))->{message} } qw(crm hers-alone desk elaichi);
    is(scalar(keys %{ { reverse %told } }), 1, 'a taken label does not say by what') or diag(explain(\%told));
    $stack->ctl(qw(settings set --key connections.max_own --value 2));
    is(code(ask($member, 'connections__create', { connector => 'hr', label => 'second' })), 'ok', 'as many as the setting says');
    is(code(ask($member, 'connections__create', { connector => 'hr', label => 'third' })), 'conflict', 'and not one more');
    my $dry = ask($member, 'connections__update', { connection => 'second', label => 'zweite', dry_run => $TRUE });
    my $impact = told($dry)->{impact};
    ok($impact->{only_you}, 'a dry run of a member is about herself');
    is($impact->{members}, 1, 'and nobody else');
};

$upstream->stop;
$stack->end;
done_testing;
