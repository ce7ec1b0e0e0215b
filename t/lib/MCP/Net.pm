package MCP::Net;

# Loopback ports, and waiting for an event under a watchdog.

use strict;
use warnings;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Socket qw(SOCK_STREAM);
use Time::HiRes qw(time);

our $PATIENCE = defined $ENV{MCP_TEST_PATIENCE} ? $ENV{MCP_TEST_PATIENCE} : 30;    # seconds

my %given;

# A port that nobody has at this moment and that this test was not given before.
sub free_port {
    for (1 .. 100) {
        my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1)
            or die "no port: $!\n";
        my $port = $socket->sockport;
        return $port if !$given{$port}++;
    }
    die "no free port\n";
}

# Until $check returns true: its value. False once the patience is over. The pause between two looks is a
# look's own cost, not a guess about how long something takes.
sub wait_for {
    my ($check, $patience) = @_;
    my $end = time + (defined $patience ? $patience : $PATIENCE);
    my $pause = 0.002;
    while (1) {
        my $value = $check->();
        return $value if $value;
        return $value if time >= $end;
        select undef, undef, undef, $pause;
        $pause = $pause < 0.05 ? $pause * 1.5 : 0.05;
    }
}

sub connects {
    my ($port) = @_;
    return defined IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 2);
}

# Does something wait at a Unix socket, bytes or connections, that its owner has not taken? undef where there is no ss to tell.
sub has_unread {
    my ($path) = @_;
    my ($ss) = grep { -x } map { "$_/ss" } split(/:/, $ENV{PATH}), qw(/bin /usr/bin);
    return undef if !defined $ss;
    my @lines = `$ss -xan`;
    return scalar grep { /^u_str\s+(?:ESTAB|LISTEN)\s+[1-9]\d*\s+\d+\s+\Q$path\E\s/ } @lines;
}

sub connects_unix {
    my ($path) = @_;
    return defined IO::Socket::UNIX->new(Peer => $path, Type => SOCK_STREAM);
}

1;
