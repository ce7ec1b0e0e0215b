package MCP::Later;

# A call that is under way while the test goes on: it runs in a process of its own, and its result is fetched
# when it is wanted.
#
#   my $call = MCP::Later->start(sub { return $client->call(...) });
#   ...
#   my $answer = $call->get;    # what the sub returned, with `took` (seconds) where it is a hash

use strict;
use warnings;
use POSIX ();
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
use MCP::Json;

sub start {
    my ($class, $work) = @_;
    pipe my $in, my $out or die "pipe: $!\n";
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        close $in;
        my $began = clock_gettime(CLOCK_MONOTONIC);
        my $result = eval { $work->() };
        $result = { error => "$@" } if $@;
        $result->{took} = clock_gettime(CLOCK_MONOTONIC) - $began if ref $result eq 'HASH';
        print {$out} MCP::Json::encode($result);
        close $out;
        POSIX::_exit(0);
    }
    close $out;
    return bless { pid => $pid, in => $in, owner => $$ }, $class;
}

# Waits for the end of the sub.
sub get {
    my ($self) = @_;
    if (!exists $self->{result}) {
        my $in = $self->{in};
        local $/;
        my $text = <$in>;
        waitpid $self->{pid}, 0;
        $self->{result} = defined $text && $text ne q() ? MCP::Json::decode($text) : undef;
    }
    return $self->{result};
}

# Ends it where it is; a client that it was is gone then.
sub kill9 {
    my ($self) = @_;
    return if exists $self->{result};
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    $self->{result} = undef;
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $@, $!);
    $self->kill9;
    return;
}

1;
