# Upstreams that drop, hang, refuse, break off or stall; clients that leave. What was executed is never sent again,
# everything has one row, and nobody else waits.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Later;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;

use constant SLACK_S => 2;

my @mpms = $ENV{MCP_TEST_MPM} ? ($ENV{MCP_TEST_MPM}) : qw(event worker prefork);

sub operation {
    my ($id, $method) = @_;
    return { id => $id, method => $method, path => "/$id", description => $id };
}

# One upstream for all stories: the target says what happens. Files below the root tell the stories apart from
# outside: `hold` (go on when it is gone), `hung-up` (the gateway has closed the connection).
sub upstream {
    my ($root) = @_;
    my ($hold, $hung_up) = map { $root->path($_) } qw(hold hung-up);
    return MCP::Upstream->start(
        root  => $root,
        serve => sub {
            my ($request, $peer) = @_;
            my ($what) = $request->{target} =~ m{^/([a-z]+)};
            my $ok = MCP::Upstream::json(200, { n => $request->{n}, did => $what });
            if ($what eq 'drop') {
                return $request->{n} > 1 ? undef : $ok;
            } elsif ($what eq 'always') {
                return undef;
            } elsif ($what eq 'hang') {
                MCP::Net::wait_for(sub { !-e $hold });
            } elsif ($what eq 'watch') {
                MCP::Root::write_file($hung_up, q()) if $peer->linger;
            } elsif ($what eq 'half') {
                $peer->send(substr $ok, 0, length($ok) - 5);
                return undef;
            } elsif ($what eq 'head') {
                $peer->send("HTTP/1.1 200 OK\r\nContent-Ty");
                return undef;
            } elsif ($what eq 'chunk') {
                $peer->send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc");
                return undef;
            } elsif ($what eq 'garbage') {
                $peer->send("SSH-2.0-OpenSSH_9.2\r\n");
                return undef;
            } elsif ($what eq 'large') {
                return MCP::Upstream::answer(200, 'x' x 100_000, 'Content-Type' => 'text/plain');
            } elsif ($what eq 'fail') {
                return MCP::Upstream::json(500, { sorry => MCP::Json::true() });
            }
            return $ok;
        }
    );
}

my @methods = qw(GET POST PUT PATCH DELETE);

for my $mpm (@mpms) {
    my $stack = MCP::Stack->new(
        mpm    => $mpm,
        webdav => 0,
        server => $mpm eq 'prefork'
        ? "StartServers 1\nServerLimit 3\nMaxRequestWorkers 3\nMinSpareServers 1\nMaxSpareServers 3\nMCPMaxCalls 12\n"
        : "StartServers 1\nServerLimit 1\nThreadsPerChild 12\nMaxRequestWorkers 12\nMinSpareThreads 1\nMaxSpareThreads 12\nMCPMaxCalls 12\n",
        location => "MCPMaxResult 64K\n"
    );
    my $root = $stack->root;
    my $upstream = upstream($root);
    my $nobody = MCP::Net::free_port();
    $stack->reconfigure(allow => [$upstream->origin, "http://127.0.0.1:$nobody"]);
    $stack->gateway->graceful;
    $stack->connector(
        {
            slug       => 'app',
            base_url   => $upstream->origin,
            operations => [
                (map { operation("drop/\L$_", $_), operation("always/\L$_", $_) } @methods),
                map { operation($_, 'POST') } qw(ok half head chunk garbage large fail watch)
            ]
        }
    );
    $stack->connector(
        { slug => 'slow', base_url => $upstream->origin, timeout_ms => 500, operations => [operation('hang', 'POST')] });
    $stack->connector(
        { slug => 'none', base_url => "http://127.0.0.1:$nobody", operations => [operation('ok', 'POST')] });
    my $client = $stack->client(keep => 1);
    my @names = MCP::Client::connected($client->list);
    my $tool = sub {
        my ($id) = @_;
        my ($found) = grep { $_ eq $id || index($_, "${id}_") == 0 } map { s{/}{_}gr } @names;
        return $found;
    };
    my $count = sub { my ($target) = @_; return scalar grep { $_->{target} eq $target } $upstream->requests };
    my $newest = sub {
        my ($row) = sort { $b->{seq} <=> $a->{seq} } $stack->calls;
        return join q( ), map { defined $row->{$_} ? $row->{$_} : q(-) } qw(outcome error_code upstream_status);
    };
    # on one kept connection to the gateway and, in the one child, on one to the upstream
    my $call = sub { return $client->call($tool->($_[0])) };
    is_deeply [grep { !defined $tool->($_) } qw(app__ok slow__hang none__ok app__drop_get)], [], "$mpm: the tools are there";

    # --- dropped connections ---------------------------------------------------

    for my $method (@methods) {
        my $target = "/drop/\L$method";
        $call->('app__ok');
        my $answer = $call->("app__drop_\L$method");
        my @seen = grep { $_->{target} eq $target } $upstream->requests;
        cmp_ok $seen[0]{n}, '>', 1, "$mpm, $method: sent on a kept connection, which is dropped";
        if ($method eq 'GET') {
            is @seen, 2, "$mpm, $method: repeated once";
            is $seen[1]{n}, 1, "$mpm, $method: on a new connection";
            is MCP::Client::code($answer), undef, "$mpm, $method: answered";
            is $newest->(), 'ok - 200', "$mpm, $method: recorded";
        } else {
            is @seen, 1, "$mpm, $method: executed once, never sent again";
            is MCP::Client::code($answer), 'upstream_unreachable', "$mpm, $method: answered";
            like MCP::Client::text($answer), qr/may have been executed/, "$mpm, $method: says that it may have run";
            is $newest->(), 'error upstream_unreachable -', "$mpm, $method: recorded";
        }
        $call->("app__always_\L$method");
        my $times = $count->("/always/\L$method");
        if ($method eq 'GET') {
            cmp_ok $times, '<=', 2, "$mpm, $method: dropped always, sent twice at most";
        } else {
            is $times, 1, "$mpm, $method: dropped on a new connection, sent once";
        }
        is $newest->(), 'error upstream_unreachable -', "$mpm, $method: dropped always, recorded";
    }

    # --- answers that are none -------------------------------------------------

    for my $case (
        [app__half    => 'upstream_invalid'],
        [app__head    => 'upstream_invalid'],
        [app__chunk   => 'upstream_invalid'],
        [app__garbage => 'upstream_invalid'],
        [app__large   => 'result_too_large'],
        [none__ok     => 'upstream_unreachable']
      )
    {
        my ($name, $code) = @$case;
        is MCP::Client::code($call->($name)), $code, "$mpm: $name answers $code";
        like $newest->(), qr/^error $code /, "$mpm: $name is recorded so";
    }
    my $answer = $call->('app__fail');
    ok $answer->{json}{result}{isError}, "$mpm: a 500 is an error in-band";
    like MCP::Client::text($answer), qr/sorry/, "$mpm: with the body";
    is $newest->(), 'error upstream_status 500', "$mpm: and recorded with its status";
    is MCP::Client::code($call->('app__ok')), undef, "$mpm: the next call is fine";

    # --- silence ---------------------------------------------------------------

    $root->write('hold', q());
    my $later = MCP::Later->start(sub { $stack->client->call('slow__hang') });
    $answer = $later->get;
    is MCP::Client::code($answer), 'upstream_timeout', "$mpm: an upstream that hangs is given up";
    cmp_ok $answer->{took}, '<', 0.5 + SLACK_S, "$mpm: in time";
    cmp_ok $answer->{took}, '>=', 0.5, "$mpm: not before";
    is $newest->(), 'error upstream_timeout -', "$mpm: and recorded";
    unlink $root->path('hold');

    # --- clients that leave ----------------------------------------------------

    $later = MCP::Later->start(sub { $stack->client->call('app__watch') });
    ok MCP::Net::wait_for(sub { $count->('/watch') == 1 }), "$mpm: a client waits";
    $later->kill9;
    ok MCP::Net::wait_for(sub { -e $root->path('hung-up') }), "$mpm: it leaves, and the upstream call is ended";
    ok MCP::Net::wait_for(sub { $newest->() eq 'error cancelled -' }), "$mpm: recorded as cancelled"
        or diag $newest->();

    $root->write('hold', q());
    $stack->connector(
        {
            slug       => 'old',
            base_url   => $upstream->origin,
            operations => [operation('hang', 'POST')]
        }
    );
    my $old = $stack->client;
    $answer = $old->legacy('initialize',
        { protocolVersion => '2025-11-25', capabilities => {}, clientInfo => { name => 'old', version => '1' } });
    my $session = MCP::Client::header($answer, 'Mcp-Session-Id');
    my $had = $count->('/hang');
    $later = MCP::Later->start(
        sub {
            $old->legacy(
                'tools/call',
                { name => 'old__hang', arguments => {} },
                version => '2025-11-25',
                session => $session
            );
        }
    );
    ok MCP::Net::wait_for(sub { $count->('/hang') > $had }), "$mpm: an older client waits";
    $later->kill9;
    # the gateway looks for a modern client's end ten times a second: another call's whole life is time enough
    $later = MCP::Later->start(sub { $stack->client->call('slow__hang') });
    $later->get;
    unlink $root->path('hold');
    ok MCP::Net::wait_for(
        sub {
            grep { $_->{operation} eq 'old/hang' && $_->{outcome} eq 'ok' } $stack->calls;
        }
        ),
        "$mpm: it leaves, and its call runs to its end";

    $upstream->stop;
    $stack->end(expected => [qw(MCP0301 AH00161)]);
}

# --- one stalled upstream ----------------------------------------------------------

for my $mpm (@mpms) {
    my $stack = MCP::Stack->new(
        mpm    => $mpm,
        webdav => 0,
        server => $mpm eq 'prefork'
        ? "StartServers 16\nServerLimit 16\nMaxRequestWorkers 16\nMinSpareServers 1\nMaxSpareServers 16\nMCPMaxCalls 8\n"
        : "StartServers 1\nServerLimit 1\nThreadsPerChild 16\nMaxRequestWorkers 16\nMinSpareThreads 1\nMaxSpareThreads 16\nMCPMaxCalls 8\n"
    );
    my $root = $stack->root;
    my $upstream = upstream($root);
    $root->write('htdocs/page.txt', "a page\n");
    $stack->reconfigure(
        allow  => [$upstream->origin],
        server => "$stack->{given}{server}<Location /page.txt>\nRequire all granted\n</Location>\n"
    );
    $stack->gateway->graceful;
    my %file = (
        base_url   => $upstream->origin,
        operations => [operation('hang', 'POST'), operation('ok', 'POST')]
    );
    $stack->connector({ slug => $_, %file }) for qw(a b c d e);
    my $client = $stack->client;
    $root->write('hold', q());

    # two of eight may run on one connection
    my @stuck = map { MCP::Later->start(sub { $client->call('a__hang') }) } 1, 2;
    ok MCP::Net::wait_for(sub { $upstream->requests == 2 }), "$mpm: one connection has all its calls in flight";
    my @late = map { MCP::Later->start(sub { $client->call('a__hang') })->get } 1 .. 4;
    is_deeply [map { $_->{status} } @late], [(429) x 4], "$mpm: more are answered 429";
    is_deeply [grep { !$_ } map { MCP::Client::header($_, 'Retry-After') } @late], [], "$mpm: with Retry-After";
    is_deeply [grep { $_ > SLACK_S } map { $_->{took} } @late], [], "$mpm: at once";
    is $upstream->requests, 2, "$mpm: and not sent";
    is MCP::Client::code($client->call('b__ok')), undef, "$mpm: another connection's tools answer";
    is $client->get('/page.txt')->{body}, "a page\n", "$mpm: so does the rest of the site";

    # four connections with two calls each: the whole share
    for my $name (qw(b c d)) {
        my $had = $upstream->requests;
        push @stuck, map { MCP::Later->start(sub { $client->call("${name}__hang") }) } 1, 2;
        MCP::Net::wait_for(sub { $upstream->requests == $had + 2 });
    }
    my $had = $upstream->requests;
    my $answer = MCP::Later->start(sub { $client->call('e__ok') })->get;
    is $answer->{status}, 503, "$mpm: all calls in flight, one more is answered 503";
    ok MCP::Client::header($answer, 'Retry-After'), "$mpm: with Retry-After";
    is $answer->{json}{error}{data}{code}, 'overloaded', "$mpm: and its code";
    cmp_ok $answer->{took}, '<', SLACK_S, "$mpm: at once";
    is $upstream->requests, $had, "$mpm: and not sent";
    is $client->get('/page.txt')->{body}, "a page\n", "$mpm: the rest of the site answers";
    is $client->list->{status}, 200, "$mpm: and so does tools/list";
    unlink $root->path('hold');
    is_deeply [map { MCP::Client::code($_->get) } @stuck], [(undef) x 8], "$mpm: those that waited are answered";
    is MCP::Client::code($client->call('e__ok')), undef, "$mpm: and there is room again";
    my %rows;
    $rows{"$_->{outcome} " . ($_->{error_code} || q(-))}++ for $stack->calls;
    is_deeply \%rows, { 'ok -' => 10, 'denied rate_limited' => 4, 'denied overloaded' => 1 }, "$mpm: each has one row";
    $upstream->stop;
    $stack->end(expected => [qw(MCP0301 AH00161 AH00288 AH00484)]);
}

done_testing;
