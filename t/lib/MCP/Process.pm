package MCP::Process;

# A program that a test has started: it ends with the test, whatever happens.

use strict;
use warnings;
use POSIX ();
use MCP::Net;

my %alive;    # pid => 1, of this very process

# command => [...], log => FILE, env => {...}, dir => PATH
sub start {
    my ($class, %given) = @_;
    my $owner = $$;
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        # a process group of its own, so that what it starts can be ended with it
        POSIX::setpgid(0, 0);
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE USR1 ALRM);
        %ENV = (%ENV, %{ $given{env} || {} });
        chdir($given{dir} || '/') or POSIX::_exit(126);
        open STDIN,  '<',  '/dev/null'              or POSIX::_exit(126);
        open STDOUT, '>>', $given{log} || '/dev/null' or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT                 or POSIX::_exit(126);
        { no warnings 'exec'; exec { $given{command}[0] } @{ $given{command} }; }
        print STDERR "exec $given{command}[0]: $!\n";
        POSIX::_exit(127);
    }
    POSIX::setpgid($pid, $pid);    # whoever comes first
    $alive{$pid} = 1;
    return bless { pid => $pid, owner => $owner, command => $given{command} }, $class;
}

sub pid { return $_[0]{pid} }

# Status of a process that has ended (as in $?), undef while it runs.
sub status {
    my ($self) = @_;
    if (!defined $self->{status} && waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid}) {
        $self->{status} = $?;
        delete $alive{ $self->{pid} };
    }
    return $self->{status};
}

sub is_running { return !defined $_[0]->status }

sub signal {
    my ($self, $signal) = @_;
    return $self->is_running ? kill $signal, $self->{pid} : 0;
}

# The status, or undef if it still runs when the patience is over.
sub wait {
    my ($self, $patience) = @_;
    MCP::Net::wait_for(sub { defined $self->status }, $patience);
    return $self->{status};
}

# Asks it to end; kills it and its group when it does not. Returns the status.
sub stop {
    my ($self, $signal, $patience) = @_;
    if ($self->is_running) {
        kill $signal || 'TERM', $self->{pid};
        $self->wait($patience);
    }
    if ($self->is_running) {
        $self->{was_killed} = 1;
        kill 'KILL', -$self->{pid};
        $self->wait;
    }
    return $self->{status};
}

sub kill9 {
    my ($self) = @_;
    kill 'KILL', $self->{pid} if $self->is_running;
    return $self->wait;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;    # a fork's copy
    local ($?, $@, $!);
    $self->stop('TERM', 10) if !defined $self->{status};
    kill 'KILL', -$self->{pid};    # what it has left behind
    return;
}

# A test that dies, is interrupted or hangs ends its processes too.
my $parent = $$;
$SIG{INT} = $SIG{TERM} = sub { exit 1 };
$SIG{ALRM} = sub {
    print STDERR "# the watchdog ends this test: it takes too long\n";
    exit 1;
};
alarm(defined $ENV{MCP_TEST_WATCHDOG} ? $ENV{MCP_TEST_WATCHDOG} : 900) if $ENV{HARNESS_ACTIVE};

END {
    if ($$ == $parent) {
        local $?;
        kill 'KILL', -$_ for keys %alive;
    }
}

1;
