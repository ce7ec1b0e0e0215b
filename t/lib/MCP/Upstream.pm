package MCP::Upstream;

# An upstream that does what a test says: records every request byte for byte, answers any bytes, stalls until
# it is released, or drops the connection. One process listens, one serves each connection.
#
#   my $upstream = MCP::Upstream->start(root => $root, serve => sub {
#       my ($request, $peer) = @_;
#       return MCP::Upstream::json(200, {n => 1});    # bytes to send; undef: hang up without a word
#   });
#
# $request: {method, target, version, headers => [[name, value], ...], body, raw, n}; n counts requests of this
# connection from 1. $peer->send(BYTES), $peer->stall (until the test calls release), $peer->linger (until the
# gateway hangs up; true if it did), $peer->count (requests of all connections so far, this one included).

use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use MCP::Json;
use MCP::Net;
use MCP::Root;

my $started = 0;

sub start {
    my ($class, %given) = @_;
    my $listener = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1',
        LocalPort => $given{port} || 0,
        Listen    => 128,
        ReuseAddr => 1
    ) or die "upstream: $!\n";
    pipe my $gate, my $latch or die "pipe: $!\n";
    my $record = $given{root}->path(sprintf 'upstream-%d.jsonl', ++$started);
    MCP::Root::write_file($record, q());
    my $self = bless {
        owner  => $$,
        port   => $listener->sockport,
        record => $record,
        latch  => $latch,
        serve  => $given{serve} || sub { return json(200, {}) }
    }, $class;
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        POSIX::setpgid(0, 0);
        close $latch;
        delete $self->{latch};
        $self->{gate} = $gate;
        $self->listen_for_ever($listener);
    }
    POSIX::setpgid($pid, $pid);
    close $listener;
    close $gate;
    $self->{pid} = $pid;
    return $self;
}

sub port   { return $_[0]{port} }
sub origin { return "http://127.0.0.1:$_[0]{port}" }

# Lets everybody go on who stalls, now and later.
sub release { my ($self) = @_; close $self->{latch} if $self->{latch}; delete $self->{latch}; return }

# What was asked so far, in order of arrival.
sub requests {
    my ($self) = @_;
    my $text = MCP::Root::slurp($self->{record});
    return map { MCP::Json::decode($_) } split /\n/, defined $text ? $text : q();
}

sub wait_for_requests {
    my ($self, $count) = @_;
    return MCP::Net::wait_for(sub { scalar(my @all = $self->requests) >= $count });
}

sub stop {
    my ($self) = @_;
    return if !$self->{pid};
    kill 'KILL', -$self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($?, $@, $!);
    $self->stop if $self->{owner} == $$;
    return;
}

# --- answers -------------------------------------------------------------------

my %reason = (
    200 => 'OK', 201 => 'Created', 204 => 'No Content', 301 => 'Moved Permanently', 302 => 'Found',
    307 => 'Temporary Redirect', 400 => 'Bad Request', 404 => 'Not Found', 500 => 'Internal Server Error',
    503 => 'Service Unavailable'
);

# A whole answer; headers as [name => value, ...].
sub answer {
    my ($status, $body, @headers) = @_;
    my $text = sprintf "HTTP/1.1 %d %s\r\n", $status, $reason{$status} || 'Whatever';
    while (@headers) {
        my ($name, $value) = splice @headers, 0, 2;
        $text .= "$name: $value\r\n";
    }
    return $text . sprintf "Content-Length: %d\r\n\r\n%s", length $body, $body;
}

sub json {
    my ($status, $data, @headers) = @_;
    return answer($status, MCP::Json::encode($data), 'Content-Type' => 'application/json', @headers);
}

# --- the other process -----------------------------------------------------------

sub listen_for_ever {
    my ($self, $listener) = @_;
    $SIG{CHLD} = 'IGNORE';
    $SIG{$_} = 'DEFAULT' for qw(INT TERM);
    while (1) {
        my $socket = $listener->accept or next;
        my $pid = fork;
        if (defined $pid && $pid == 0) {
            close $listener;
            binmode $socket;
            $socket->autoflush(1);
            eval { $self->serve_connection($socket); 1 } or print STDERR "# upstream: $@";
            POSIX::_exit(0);
        }
        close $socket;
    }
    POSIX::_exit(0);
}

sub serve_connection {
    my ($self, $socket) = @_;
    my $peer = bless { socket => $socket, gate => $self->{gate}, record => $self->{record} },
        'MCP::Upstream::Peer';
    my $buffer = q();
    my $n = 0;
    while (my $request = read_request($socket, \$buffer)) {
        $request->{n} = ++$n;
        $peer->{count} = note($self->{record}, $request);
        my $bytes = $self->{serve}->($request, $peer);
        last if !defined $bytes;
        $peer->send($bytes) or last;
        last if $bytes =~ /^Connection:\s*close/mi;
    }
    close $socket;
    return;
}

# Appends a line under a lock; how many there are then.
sub note {
    my ($file, $request) = @_;
    open my $out, '+>>', $file or die "$file: $!\n";
    flock $out, LOCK_EX or die "$file: $!\n";
    seek $out, 0, 0;
    my $count = () = <$out>;
    syswrite $out, MCP::Json::encode($request) . "\n";
    close $out;
    return $count + 1;
}

sub more {
    my ($socket, $buffer) = @_;
    return sysread $socket, $$buffer, 65536, length $$buffer;
}

sub read_request {
    my ($socket, $buffer) = @_;
    while ($$buffer !~ /\r\n\r\n/) {
        more($socket, $buffer) or return undef;
    }
    $$buffer =~ s/^(.*?\r\n)\r\n//s;
    my $head = $1;
    my ($line, @lines) = split /\r\n/, $head;
    my ($method, $target, $version) = split / /, $line;
    my @headers = map { [/^([^:]*):\s*(.*)$/] } @lines;
    my %last = map { lc $_->[0] => $_->[1] } @headers;
    my $body = q();
    if (defined $last{'content-length'}) {
        while (length $$buffer < $last{'content-length'}) {
            more($socket, $buffer) or return undef;
        }
        $body = substr $$buffer, 0, $last{'content-length'}, q();
    } elsif (defined $last{'transfer-encoding'}) {
        $body = read_chunks($socket, $buffer);
    }
    return {
        method  => $method,
        target  => $target,
        version => $version,
        headers => \@headers,
        body    => $body,
        raw     => $head
    };
}

sub read_chunks {
    my ($socket, $buffer) = @_;
    my $body = q();
    while (1) {
        while ($$buffer !~ /\r\n/) {
            more($socket, $buffer) or return $body;
        }
        $$buffer =~ s/^([0-9a-fA-F]+)[^\r\n]*\r\n//s or return $body;
        my $size = hex $1;
        while (length $$buffer < $size + 2) {
            more($socket, $buffer) or return $body;
        }
        $body .= substr $$buffer, 0, $size, q();
        substr $$buffer, 0, 2, q();
        return $body if $size == 0;
    }
}

package MCP::Upstream::Peer;

sub send {
    my ($self, $bytes) = @_;
    local $SIG{PIPE} = 'IGNORE';
    my $sent = 0;
    while ($sent < length $bytes) {
        my $count = syswrite $self->{socket}, $bytes, length($bytes) - $sent, $sent;
        return 0 if !defined $count;
        $sent += $count;
    }
    return 1;
}

sub count { return $_[0]{count} }

# The end of the pipe comes when the test closes its end, or ends itself.
sub stall {
    my ($self) = @_;
    my $byte;
    sysread $self->{gate}, $byte, 1;
    return 1;
}

sub linger {
    my ($self) = @_;
    my $byte;
    return sysread($self->{socket}, $byte, 1) ? 0 : 1;
}

1;
