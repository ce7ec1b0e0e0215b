# The door to the operations that is not open yet: over MCP a caller has connected tools and nothing else. Every
# operation's name, with and without the prefix, answers as a name that never existed, and does nothing.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Stack;

my $stack = MCP::Stack->new;
my $rows = $stack->policyd->admin('rpc.describe')->{result};
my %client = map { $_ => $stack->client(member => "$_\@example.org") } qw(owner member);
my %id = map { $_ => $stack->ctl(qw(members get), "$_\@example.org")->{member} } qw(owner member auditor);

# What a caller can see of an answer, without what differs from one call to the next: ids, and the name itself.
sub seen {
    my ($answer, $name) = @_;
    return 'no answer' if !defined $answer;
    my $body = $answer->{body};
    $body =~ s/\Q$name\E/NAME/g;
    $body =~ s/\b\d+-\d+\b/AUDIT/g;
    $body =~ s/"id":\d+/"id":N/;
    my @headers = map { my $name = $_; map { "$name: $_" } @{ $answer->{headers}{$name} } }
        grep { !/^(?:date|content-length)$/ } sort keys %{ $answer->{headers} };
    return join "\n", $answer->{status}, @headers, $body;
}

subtest 'tools/list shows connected tools alone' => sub {
    for my $who (sort keys %client) {
        my @names = MCP::Client::connected($client{$who}->list);
        cmp_ok(scalar @names, '>', 5, "$who has tools");
        is_deeply([grep { !/^webdav__/ } @names], [], "$who: all of them of the connection");
    }
};

my %arguments = (
    members__create => { email => 'through-mcp@example.org' },
    members__remove => { member => 'auditor@example.org' },
    members__update => { member => 'member@example.org', roles => ['Owner'] },
    roles__create   => { name => 'ThroughMcp', permissions => ['tool:execute'] },
    grants__create  => { member => 'member@example.org', client => 'x' },
    settings__set   => { key => 'collapse.mode', value => 'never' },
    connections__delete => { connection => 'webdav' }
);

sub revision { return $stack->policyd->admin('whoami__get')->{result}{policy_revision} }

my $revision = revision();
for my $who (sort keys %client) {
    subtest "$who calls operations by name" => sub {
        my $unknown = seen($client{$who}->call('nobody__has_this', {}), 'nobody__has_this');
        my $mark = ($stack->audit)[-1]{audit_id};
        my @called;
        for my $row (@$rows) {
            for my $name ("elaichi__$row->{name}", $row->{name}) {
                my $answer = $client{$who}->call($name, $arguments{ $row->{name} } || {});
                is(seen($answer, $name), $unknown, "$name answers as a name that nobody has");
                push @called, $name;
            }
        }
        for my $name (qw(elaichi__ elaichi elaichi__nothing__get ELAICHI__whoami__get elaichi__whoami), 'elaichi__whoami__get ') {
            my $answer = $client{$who}->call($name, {}, $name =~ / / ? (name_header => '=?base64?ZWxhaWNoaV9fd2hvYW1pX19nZXQg?=') : ());
            next if $name =~ / /;
            is(seen($answer, $name), $unknown, "$name too");
            push @called, $name;
        }
        my @left = grep { ($_->{surface} || q()) eq 'mcp' } $stack->audit(after => $mark);
        my %count;
        $count{ $_->{tool} }++ for @left;
        is_deeply([grep { ($count{$_} || 0) != 1 } @called], [], 'each call left one row');
        my %other;
        $other{"$_->{outcome} $_->{error_code} $_->{member_id}"}++ for grep { $count{ $_->{tool} } } @left;
        my @odd = grep { !/^denied unknown_tool \Q$id{$who}\E$/ } keys %other;
        is_deeply(\@odd, [], 'denied, unknown_tool, and whose call it was');
        is((grep { defined $_->{operation} || defined $_->{connector} } @left), 0, 'and none names an operation or a connector');
    };
}

subtest 'nothing has come of it' => sub {
    is(revision(), $revision, 'the policy has the revision that it had');
    isnt($stack->policyd->ctl_refusal(qw(members get through-mcp@example.org)), undef, 'nobody was made');
    is($stack->ctl(qw(members get auditor@example.org))->{state}, 'active', 'nobody was removed');
    is_deeply($stack->ctl(qw(members get member@example.org))->{roles}, ['Member'], 'nobody was raised');
    is(MCP::Client::text($client{member}->call('webdav__read_file', { path => 'a.txt' })) =~ /hello/ ? 1 : 0, 1, 'and the connection still works');
};

subtest 'no connection can take an operation\'s name' => sub {
    for my $label (qw(elaichi)) {
        is($stack->policyd->ctl_refusal(qw(connections create --connector webdav --shared --label), $label), 'conflict', "$label is reserved");
    }
    # a label like a resource is no operation: its tools are its own
    $stack->connection('members', $stack->webdav->port);
    is(MCP::Client::text($client{member}->call('members__read_file', { path => 'a.txt' })) =~ /hello/ ? 1 : 0, 1, 'a connection labelled "members" is a connection');
    my $answer = $client{owner}->call('members__create', { email => 'through-mcp@example.org' });
    isnt(MCP::Client::text($answer), undef, 'and members__create of it is no operation');
    isnt($stack->policyd->ctl_refusal(qw(members get through-mcp@example.org)), undef, 'nobody was made');
};

subtest 'REST is no door yet either' => sub {
    for my $token ($client{owner}->token, 'mcp_wrong') {
        for my $path ('/api/v1/whoami', '/mcp/api/v1/whoami', '/mcp/whoami', '/api/v1/members', map { "/api/v1$_->{rest}{path}" } @$rows[0 .. 4]) {
            my $answer = $client{owner}->request('GET', $path, [Authorization => "Bearer $token"]);
            ok(defined $answer && $answer->{status} =~ /^(?:401|404|405)$/, "GET $path") or diag($answer->{status});
            unlike($answer->{body}, qr/owner\@example|"permissions"/, "GET $path: says nothing");
        }
    }
};

$stack->end;

done_testing();
