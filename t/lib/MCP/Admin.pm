package MCP::Admin;

# One connection to the admin socket: bytes go out as they stand, lines come in; and code that runs as another
# user.

use strict;
use warnings;
use Carp qw(croak);
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(SOCK_STREAM);
use Time::HiRes qw(time);
use MCP::Json;
use MCP::Net;

sub new {
    my ($class, $path) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $path, Type => SOCK_STREAM) or die "$path: $!\n";
    binmode $socket;
    return bless { socket => $socket, buffer => q(), id => 0 }, $class;
}

sub socket { return $_[0]{socket} }

# All bytes; false when the peer has hung up.
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

# The next line without its end; undef at the end of the stream or of the patience.
sub line {
    my ($self, $patience) = @_;
    my $end = time + (defined $patience ? $patience : $MCP::Net::PATIENCE);
    while ($self->{buffer} !~ /\n/) {
        my $left = $end - time;
        return undef if $left <= 0 || !IO::Select->new($self->{socket})->can_read($left);
        my $count = sysread $self->{socket}, $self->{buffer}, 1 << 20, length $self->{buffer};
        if (!$count) {
            $self->{has_ended} = 1;
            return undef;
        }
    }
    $self->{buffer} =~ s/^(.*?)\n//s;
    return $1;
}

# Reads to the end: true if the peer hung up and had nothing more to say.
sub has_ended {
    my ($self) = @_;
    return !defined $self->line && $self->{has_ended} ? 1 : 0;
}

# An answer as data; undef when none comes.
sub answer {
    my ($self) = @_;
    my $line = $self->line;
    return defined $line ? MCP::Json::decode($line) : undef;
}

# The text of a request: a number as its id, unless one is given as JSON text.
sub request {
    my ($self, $method, $params, $id) = @_;
    $id = ++$self->{id} if !defined $id;
    return sprintf qq({"jsonrpc":"2.0","id":%s,"method":%s%s}\n), $id, MCP::Json::encode($method),
        defined $params ? ',"params":' . MCP::Json::encode($params) : q();
}

sub ask {
    my ($self, $method, $params, $id) = @_;
    $self->send($self->request($method, $params, $id));
    return $self->answer;
}

# What one call of an operation gives on a connection of its own: (result, undef) or (undef, error.data).
sub call {
    my ($path, $method, $params) = @_;
    my $answer = MCP::Admin->new($path)->ask($method, $params);
    return (undef, { code => 'no answer' }) if !defined $answer;
    return ($answer->{result}, $answer->{error} ? $answer->{error}{data} : undef);
}

# Runs code in a process of that user and group: the list that it returns, as data. Root alone can.
sub as {
    my ($uid, $gid, $code) = @_;
    pipe my $from, my $to or die "pipe: $!\n";
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        close $from;
        my @answer = eval {
            $) = "$gid $gid";    # groups first: afterwards nothing more is allowed
            POSIX::setgid($gid);
            POSIX::setuid($uid);
            die "no switch to uid $uid\n" if $< != $uid || $> != $uid || $( != $gid;
            $code->();
        };
        print {$to} MCP::Json::encode({ $@ ne q() ? (error => "$@") : (answer => \@answer) });
        close $to;
        POSIX::_exit(0);
    }
    close $to;
    my $text = do { local $/; <$from> };
    waitpid $pid, 0;
    my $said = defined $text && $text ne q() ? MCP::Json::decode($text) : { error => 'it said nothing' };
    croak "as uid $uid: $said->{error}" if defined $said->{error};
    return wantarray ? @{ $said->{answer} } : $said->{answer}[0];
}

1;
