package MCP::Witness;

# A quick upstream that is a witness under load: each request that arrives is stamped with the clock that all
# processes of the test share, and is on record before it is answered. MCP::Upstream does more, one thing at a
# time; this one does one thing, often.
#
#   my $witness = MCP::Witness->start(root => $stack->root, slow => 0.05);
#   $stack->connector($witness->file);    # tools load__get {mark}, load__post {mark}, both answer {"mark": ...}
#   my @seen = $witness->calls;           # {at, method, mark}, in order of arrival

use strict;
use warnings;
use Fcntl qw(O_APPEND O_CREAT O_WRONLY);
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
use MCP::Root;

my $started = 0;

sub now { return clock_gettime(CLOCK_MONOTONIC) }

# slow: seconds that each answer takes
sub start {
    my ($class, %given) = @_;
    my $listener = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1',
        LocalPort => $given{port} || 0,
        Listen    => 512,
        ReuseAddr => 1
    ) or die "witness: $!\n";
    my $record = $given{root}->path(sprintf 'witness-%d.record', ++$started);
    MCP::Root::write_file($record, q());
    my $self = bless { owner => $$, port => $listener->sockport, record => $record, slow => $given{slow} },
        $class;
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        POSIX::setpgid(0, 0);
        $self->listen_for_ever($listener);
    }
    POSIX::setpgid($pid, $pid);
    close $listener;
    $self->{pid} = $pid;
    return $self;
}

sub port   { return $_[0]{port} }
sub origin { return "http://127.0.0.1:$_[0]{port}" }
sub record { return $_[0]{record} }

# The connector file for it.
sub file {
    my ($self, $slug) = @_;
    my $mark = {
        name     => 'mark',
        in       => 'path',
        required => MCP::Json::true(),
        schema   => { type => 'string', pattern => '^[A-Za-z0-9.-]+$', maxLength => 100 }
    };
    return {
        slug       => defined $slug ? $slug : 'load',
        base_url   => $self->origin,
        operations => [
            { id => 'get',  method => 'GET',  path => '/{mark}', description => 'reads',  parameters => [$mark] },
            { id => 'post', method => 'POST', path => '/{mark}', description => 'writes', parameters => [$mark] }
        ]
    };
}

sub calls {
    my ($self) = @_;
    my $text = MCP::Root::slurp($self->{record});
    return map { /^(\S+) (\S+) (\S+)$/ ? { at => $1, method => $2, mark => $3 } : () } split /\n/, $text;
}

# Bytes on record so far: a cheap sign that calls arrive.
sub size { return -s $_[0]{record} }

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
            $self->serve_connection($socket);
            POSIX::_exit(0);
        }
        close $socket;
    }
    POSIX::_exit(0);
}

# Requests of ours have no body: the gateway sends POST with a length of 0.
sub serve_connection {
    my ($self, $socket) = @_;
    my $buffer = q();
    $SIG{PIPE} = 'IGNORE';
    sysopen my $record, $self->{record}, O_WRONLY | O_APPEND | O_CREAT or return;
    while (1) {
        while ($buffer !~ /\r\n\r\n/) {
            my $count = sysread $socket, $buffer, 65536, length $buffer;
            return if !$count;
        }
        $buffer =~ s{^(\S+) /(\S*) .*?\r\n\r\n}{}s or return;
        my ($method, $mark) = ($1, $2);
        syswrite $record, sprintf "%.6f %s %s\n", now(), $method, $mark;    # one write: whole under O_APPEND
        select undef, undef, undef, $self->{slow} if $self->{slow};
        my $body = qq({"mark":"$mark"});
        syswrite $socket, sprintf "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
            length $body, $body
            or return;
    }
    return;
}

1;
