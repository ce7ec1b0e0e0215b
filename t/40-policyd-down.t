# policyd is away, frozen, or gone while an upstream answers: nothing runs unrecorded, and all comes back by itself.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Client;
use MCP::Later;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;

use constant {
    POLICY_S => 1,      # MCPPolicyTimeout
    CALL_S   => 4,      # MCPCallTimeout, and how long an outcome is offered
    SLACK_S  => 1.5     # for a busy machine
};

my @mpms = $ENV{MCP_TEST_MPM} ? ($ENV{MCP_TEST_MPM}) : qw(event worker prefork);

my $operation = sub {
    my ($id, $method) = @_;
    return { id => $id, method => $method, path => "/$id", description => $id };
};

# Every one of the calls under way is refused as it should be.
sub are_refused {
    my ($name, @calls) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @bad;
    for my $answer (map { $_->get } @calls) {
        my $after = MCP::Client::header($answer, 'Retry-After');
        my $code = $answer->{json}{error}{data}{code};
        push @bad, "$answer->{status} $answer->{body}"
            if $answer->{status} != 503 || !defined $code || $code ne 'policy_unavailable';
        push @bad, 'no Retry-After' if !defined $after || $after !~ /^[1-9]\d?$/;
        push @bad, "took $answer->{took} s" if $answer->{took} > POLICY_S + SLACK_S;
    }
    is_deeply \@bad, [], "$name: 503 with Retry-After, in time";
    return;
}

for my $mpm (@mpms) {
    my $stack = MCP::Stack->new(
        mpm      => $mpm,
        webdav   => 0,
        server   => "MCPPolicyTimeout @{[POLICY_S]}s\n",
        location => "MCPCallTimeout @{[CALL_S]}s\n"
    );
    my $policyd = $stack->policyd;
    my $hold = $stack->root->path('hold');
    my $upstream = MCP::Upstream->start(
        root  => $stack->root,
        serve => sub {
            my ($request) = @_;
            MCP::Net::wait_for(sub { !-e $hold }) if $request->{target} eq '/slow';
            return MCP::Upstream::json(200, { did => $request->{target} });
        }
    );
    $stack->reconfigure(allow => [$upstream->origin]);
    $stack->gateway->graceful;
    $stack->connector(
        {
            slug       => 'app',
            base_url   => $upstream->origin,
            operations => [$operation->('quick', 'POST'), $operation->('slow', 'POST')]
        }
    );
    my $client = $stack->client;
    my $call = sub { return $client->call("app__$_[0]") };
    my $count = sub { return scalar(my @all = $upstream->requests) };
    my $quick = sub {
        my ($name) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        my $answer = $call->('quick');
        is $answer->{status}, 200, $name or diag MCP::Client::text($answer);
        return;
    };

    $quick->("$mpm: before, a call works");

    # stopped
    $policyd->stop;
    my $before = $count->();
    my @calls = map { MCP::Later->start(sub { $call->('quick') }) } 1 .. 6;
    are_refused("$mpm, stopped, several calls at once", @calls);
    are_refused("$mpm, stopped, tools/list", MCP::Later->start(sub { $client->list }));
    is $count->(), $before, "$mpm, stopped: nothing is sent upstream";
    $policyd->start;
    $quick->("$mpm: started again, the next call works");

    # frozen
    $policyd->process->signal('STOP');
    $before = $count->();
    @calls = map { MCP::Later->start(sub { $call->('quick') }) } 1 .. 3;
    are_refused("$mpm, frozen, several calls at once", @calls);
    are_refused("$mpm, frozen, one more", MCP::Later->start(sub { $call->('quick') }));
    is $count->(), $before, "$mpm, frozen: nothing is sent upstream";
    $policyd->process->signal('CONT');
    $quick->("$mpm: thawed, the next call works");
    is $count->(), $before + 1, "$mpm, thawed: what was refused is not sent later";

    # killed while the upstream answers, and away
    my $slow = sub {
        my ($during) = @_;
        MCP::Root::write_file($hold, q());
        my $had = $count->();
        my $later = MCP::Later->start(sub { $call->('slow') });
        $upstream->wait_for_requests($had + 1);
        $during->();
        unlink $hold;
        my $answer = $later->get;
        is $count->(), $had + 1, "$mpm: the upstream was asked once";
        return $answer;
    };
    my $answer = $slow->(sub { $policyd->kill9 });
    is $answer->{status}, 200, "$mpm, killed meanwhile: an in-band answer";
    is MCP::Client::code($answer), 'outcome_unrecorded', "$mpm, killed meanwhile: outcome_unrecorded";
    my $id = $answer->{json}{result}{structuredContent}{error}{audit};
    like $id, qr/^\d+-\d+$/, "$mpm, killed meanwhile: with the audit id";
    cmp_ok $answer->{took}, '<', 2 * CALL_S + SLACK_S, "$mpm, killed meanwhile: in time";
    $policyd->start;
    my ($row) = grep { $_->{audit_id} eq $id } $stack->calls;
    like $row->{outcome}, qr/^(?:running|interrupted)$/, "$mpm, killed meanwhile: its row stays without an outcome";
    $quick->("$mpm: and the next call works");

    # killed while the upstream answers, and back within the time
    $answer = $slow->(sub { $policyd->kill9; $policyd->start });
    is $answer->{status}, 200, "$mpm, restarted meanwhile: answered";
    is MCP::Client::code($answer), undef, "$mpm, restarted meanwhile: with the normal result";
    is_deeply $answer->{json}{result}{structuredContent}, { did => '/slow' }, "$mpm, restarted meanwhile: whole";
    my ($newest) = sort { $b->{seq} <=> $a->{seq} } $stack->calls;
    is "$newest->{operation} $newest->{outcome}", 'app/slow ok', "$mpm, restarted meanwhile: recorded as ok";
    is scalar(grep { $_->{operation} eq 'app/slow' } $stack->calls), 2, "$mpm: one row for each of the two calls";

    my $socket = $policyd->endpoint =~ s{^ipc://}{}r;

    # frozen when it is given the outcome, and replaced: what it had in hand is offered again
  SKIP: {
        skip 'there is no ss (Debian package iproute2)', 3 if !defined MCP::Net::has_unread($socket);
        MCP::Root::write_file($hold, q());
        my $had = $count->();
        my $later = MCP::Later->start(sub { $call->('slow') });
        $upstream->wait_for_requests($had + 1);
        $policyd->process->signal('STOP');
        unlink $hold;
        ok MCP::Net::wait_for(sub { MCP::Net::has_unread($socket) }, 5), "$mpm, frozen meanwhile: the outcome is in its hands";
        $policyd->kill9;
        $policyd->start;
        $answer = $later->get;
        is MCP::Client::code($answer), undef, "$mpm, frozen and replaced meanwhile: the normal result"
            or diag MCP::Client::text($answer);
        ($newest) = sort { $b->{seq} <=> $a->{seq} } $stack->calls;
        is "$newest->{operation} $newest->{outcome}", 'app/slow ok', "$mpm, frozen and replaced meanwhile: recorded";
    }

    $upstream->stop;
    $stack->end(expected => [qw(MCP0301 PD0121)]);
}

done_testing;
