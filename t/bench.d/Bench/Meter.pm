package Bench::Meter;

# What is measured: a round of load, CPU time and memory of processes.

use strict;
use warnings;
use POSIX ();
use Time::HiRes ();
use MCP::Json;
use MCP::Policyd;
use MCP::Root;

my $ticks = POSIX::sysconf(POSIX::_SC_CLK_TCK());

# --- load ----------------------------------------------------------------------

# One round: {url, method, headers => [..], body => FILE, connections, seconds}. What wrk saw, with per_second;
# dies when an answer was no 2xx or 3xx, or a connection broke: such a round measures something else.
sub load {
    my (%round) = @_;
    my %env = (
        BENCH_METHOD  => $round{method} || 'GET',
        BENCH_HEADERS => join("\n", @{ $round{headers} || [] })
    );
    $env{BENCH_BODY} = $round{body} if defined $round{body};
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1, env => \%env },
        'wrk', '-t1', "-c$round{connections}", "-d$round{seconds}s", '--timeout', '10s', '-s', $round{script},
        $round{url});
    my ($json) = $err =~ /^BENCH (\{.*\})$/m;
    die "wrk failed (status $status): $err$out\n" if $status != 0 || !defined $json;
    my $seen = MCP::Json::decode($json);
    die "$seen->{status} of $seen->{requests} answers of $round{url} were refusals or errors\n" if $seen->{status};
    die "$seen->{broken} connections to $round{url} broke or timed out\n" if $seen->{broken};
    die "no answer of $round{url}\n" if !$seen->{requests};
    $seen->{per_second} = $seen->{requests} * 1e6 / $seen->{us};
    $seen->{answer_bytes} = $seen->{bytes} / $seen->{requests};
    return $seen;
}

# --- processes -----------------------------------------------------------------

# A process and its children.
sub family {
    my ($pid) = @_;
    my @family = ($pid);
    opendir my $proc, '/proc' or die "/proc: $!\n";
    for my $other (grep { /^\d+$/ } readdir $proc) {
        my $stat = MCP::Root::slurp("/proc/$other/stat");
        push @family, $other if defined $stat && $stat =~ /\) \S (\d+) / && $1 == $pid;
    }
    closedir $proc;
    return @family;
}

# Microseconds of CPU time that these processes have used, user and system, all their threads.
sub cpu_us {
    my (@pids) = @_;
    my $sum = 0;
    for my $pid (@pids) {
        my $stat = MCP::Root::slurp("/proc/$pid/stat");
        die "process $pid has ended during the measurement\n" if !defined $stat;
        my @fields = split ' ', substr $stat, rindex($stat, ')') + 2;
        $sum += $fields[11] + $fields[12];
    }
    return $sum * 1e6 / $ticks;
}

# Seconds of the monotonic clock.
sub now_s { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

# Of the whole machine: microseconds used by programs, and by anything or left idle.
sub machine_us {
    my ($line) = (MCP::Root::slurp('/proc/stat') || q()) =~ /^cpu +(.*)$/m;
    my ($user, $nice, $system, $idle, $wait, $irq, $soft, $steal) = split ' ', $line;
    my $programs = $user + $nice + $system;
    return map { $_ * 1e6 / $ticks } ($programs, $idle + $wait, $programs + $irq + $soft + $steal + $idle + $wait);
}

# Of ended children of this program: wrk's.
sub own_children_us {
    my ($user, $system) = (POSIX::times())[3, 4];
    return ($user + $system) * 1e6 / $ticks;
}

# KiB by the name that /proc/PID/status has for it: VmHWM, VmRSS.
sub memory_kib {
    my ($pid, $name) = @_;
    my ($kib) = (MCP::Root::slurp("/proc/$pid/status") || q()) =~ /^\Q$name\E:\s+(\d+) kB$/m;
    die "process $pid tells no $name\n" if !defined $kib;
    return $kib + 0;
}

# --- numbers -------------------------------------------------------------------

sub median {
    my @sorted = sort { $a <=> $b } @_;
    my $middle = int(@sorted / 2);
    return @sorted % 2 ? $sorted[$middle] : ($sorted[$middle - 1] + $sorted[$middle]) / 2;
}

1;
