package MCP::Load;

# Many clients at once: each is a process with a connection of its own that calls a tool again and again, with a
# mark that no other call has, and writes down when it began, when it ended and what it was told.
#
#   my $load = MCP::Load->start(root => $root, url => $stack->url, tokens => [$token], clients => 50);
#   ...
#   my @calls = $load->stop;    # {client, began, ended, status, mark, own, text, retries}
#
# began and ended are of the clock of MCP::Witness. status 0: no answer. own: the answer is the one to this call
# and to no other.

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use MCP::Net;
use MCP::Root;
use MCP::Witness;

my $started = 0;

# root, url; tokens => [...] (client number n has the one at n modulo their count); clients => count;
# rounds => calls of each (default: until stop); tool => default load__post; keep => 0: a connection for each
# call, 1 (default): kept, 'both': kept by every other client; ends => N: a client ends at its Nth answer
# other than 200; retry => 0: a kept connection that breaks is an answer that did not come
sub start {
    my ($class, %given) = @_;
    my ($port, $path) = $given{url} =~ m{^http://127\.0\.0\.1:(\d+)(/.*)$} or die "no loopback URL: $given{url}\n";
    pipe my $gate, my $latch or die "pipe: $!\n";
    my $self = bless {
        tool => 'load__post',
        keep => 1,
        retry => 1,
        %given,
        owner => $$,
        port  => $port,
        path  => $path,
        latch => $latch,
        run   => ++$started,
        pids  => []
    }, $class;
    for my $client (0 .. $given{clients} - 1) {
        my $pid = fork;
        die "fork: $!\n" if !defined $pid;
        if ($pid == 0) {
            close $latch;
            eval { $self->work($client, $gate); 1 } or print STDERR "# client $client: $@";
            POSIX::_exit(0);
        }
        push @{ $self->{pids} }, $pid;
    }
    close $gate;
    return $self;
}

sub file { my ($self, $client) = @_; return $self->{root}->path("load-$self->{run}-$client.record") }

# Lets every client finish the call that it is at; then all calls, ordered by their begin.
sub stop {
    my ($self) = @_;
    close $self->{latch} if $self->{latch};
    delete $self->{latch};
    return $self->wait;
}

# Waits until all clients have ended by themselves.
sub wait {
    my ($self) = @_;
    my %left = map { $_ => 1 } @{ $self->{pids} };
    MCP::Net::wait_for(
        sub {
            for my $pid (keys %left) {
                delete $left{$pid} if waitpid($pid, POSIX::WNOHANG()) != 0;
            }
            return !%left;
        },
        240
    ) or die "load: clients hang\n";
    $self->{pids} = [];
    my @calls;
    for my $client (0 .. $self->{clients} - 1) {
        for my $line (split /\n/, MCP::Root::slurp($self->file($client)) || q()) {
            my %call = (client => $client);
            @call{qw(began ended status retries own mark text)} = split / /, $line, 7;
            push @calls, \%call;
        }
    }
    return sort { $a->{began} <=> $b->{began} } @calls;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $@, $!);
    for my $pid (@{ $self->{pids} }) {
        kill 'KILL', $pid;
        waitpid $pid, 0;
    }
    return;
}

# --- one client ------------------------------------------------------------------

sub work {
    my ($self, $client, $gate) = @_;
    my $tokens = $self->{tokens};
    my $keeps = $self->{keep} eq 'both' ? $client % 2 : $self->{keep};
    my $state = {
        port  => $self->{port},
        keeps => $keeps,
        retry => $self->{retry},
        head  => $self->head($tokens->[$client % @$tokens], $keeps)
    };
    my $gated = IO::Select->new($gate);
    my $failures = 0;
    open my $out, '>', $self->file($client) or die "record: $!\n";
    $SIG{PIPE} = 'IGNORE';
    $SIG{$_} = 'DEFAULT' for qw(INT TERM);
    for (my $round = 1; !defined $self->{rounds} || $round <= $self->{rounds}; $round++) {
        last if $gated->can_read(0);
        my $mark = "$self->{run}-$client-$round";
        my $began = MCP::Witness::now();
        my $answer = call($state, trace($mark), $self->body($mark));
        my $ended = MCP::Witness::now();
        my ($status) = $answer->{bytes} =~ m{^HTTP/1\.1 (\d+) };
        my $own = $answer->{bytes} =~ /\\"mark\\":\\"\Q$mark\E\\"/ && $answer->{bytes} =~ /"id":"\Q$mark\E"/ ? 1 : 0;
        my ($text) = $answer->{bytes} =~ /\r\n\r\n(.{0,300})/s;
        $text = q() if !defined $text || $own;
        $text =~ s/\s+/ /g;
        printf {$out} "%.6f %.6f %d %d %d %s %s\n", $began, $ended, $status || 0, $answer->{retries}, $own, $mark, $text;
        last if $self->{ends} && (!defined $status || $status != 200) && ++$failures >= $self->{ends};
    }
    close $out or die "record: $!\n";
    return;
}

sub head {
    my ($self, $token, $keeps) = @_;
    my $text = <<"EOF";
POST $self->{path} HTTP/1.1
Host: 127.0.0.1:$self->{port}
Authorization: Bearer $token
Content-Type: application/json
Accept: application/json, text/event-stream
MCP-Protocol-Version: 2026-07-28
Mcp-Method: tools/call
Mcp-Name: $self->{tool}
EOF
    $text .= "Connection: close\n" if !$keeps;
    $text =~ s/\n/\r\n/g;
    return $text;
}

sub body {
    my ($self, $mark) = @_;
    return sprintf '{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"%s","arguments":{"mark":"%s"},'
        . '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        . '"io.modelcontextprotocol/clientCapabilities":{}}}}', $mark, $self->{tool}, $mark;
}

# The trace id of a mark: the audit row of a call has it, and no value of an argument.
sub trace {
    my ($mark) = @_;
    my ($run, $client, $round) = split /-/, $mark;
    return sprintf 'ca11%04x%08x%016x', $run, $client, $round;
}

# One request. A kept connection that the server has closed before any byte of an answer is taken for closed
# between two requests, as every HTTP client does: once more, on a new one.
sub call {
    my ($state, $trace, $body) = @_;
    my $text = sprintf "%straceparent: 00-%s-00000000000000aa-01\r\nContent-Length: %d\r\n\r\n%s", $state->{head},
        $trace, length $body, $body;
    my $was_kept = defined $state->{socket};
    my $bytes = exchange($state, $text);
    my $retries = 0;
    if ($bytes eq q() && $was_kept && $state->{retry}) {
        $retries = 1;
        $bytes = exchange($state, $text);
    }
    return { bytes => $bytes, retries => $retries };
}

# Sends the text and reads one answer; what there is of it when the connection breaks.
sub exchange {
    my ($state, $text) = @_;
    my $socket = $state->{socket}
        || IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $state->{port}, Timeout => 30);
    delete $state->{socket};
    return q() if !$socket;
    my $bytes = q();
    my $length;
    my $gated = IO::Select->new($socket);
    syswrite $socket, $text;    # short texts go at once; a broken connection shows at the read
    while (!defined $length || length $bytes < $length) {
        last if !$gated->can_read(60);
        my $count = sysread $socket, $bytes, 65536, length $bytes;
        last if !$count;
        if (!defined $length && $bytes =~ /\r\n\r\n/) {
            my $head = $+[0];
            $length = $head + ($bytes =~ /^Content-Length: (\d+)\r$/mi ? $1 : 0);
        }
    }
    my $is_whole = defined $length && length $bytes == $length;
    $state->{socket} = $socket if $is_whole && $state->{keeps} && $bytes !~ /^Connection: close\r$/mi;
    return $is_whole ? $bytes : q();
}

1;
