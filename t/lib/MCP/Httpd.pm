package MCP::Httpd;

# A real httpd with the smallest configuration that a test needs, in the foreground, under a chosen MPM.

use strict;
use warnings;
use MCP::Build;
use MCP::Net;
use MCP::Policyd;
use MCP::Process;
use MCP::Root;

# root => MCP::Root, name => 'gateway', conf => text, modules => [names without mod_ and .so],
# mpm => event | worker | prefork (default: MCP_TEST_MPM, else event), port => default: a free one,
# log_level => default debug
sub new {
    my ($class, %given) = @_;
    my $root = $given{root};
    my $name = $given{name} || 'httpd';
    my $self = bless {
        root      => $root,
        name      => $name,
        mpm       => $given{mpm} || $ENV{MCP_TEST_MPM} || 'event',
        port      => $given{port} || MCP::Net::free_port(),
        modules   => $given{modules} || [],
        text      => defined $given{conf} ? $given{conf} : q(),
        log_level => $given{log_level} || 'debug',
        conf      => $root->path("$name.conf"),
        log       => $root->path("$name.log"),
        access    => $root->path("$name.access.log"),
    }, $class;
    $root->make('htdocs');
    $self->write;
    return $self;
}

my $built_in;

sub load {
    my ($name) = @_;
    if (!defined $built_in) {
        my $httpd = MCP::Build::httpd();
        $built_in = `"$httpd" -l`;
    }
    return q() if $built_in =~ /\bmod_\Q$name\E\.c/;
    return sprintf qq(LoadModule %s_module "%s/mod_%s.so"\n), $name, MCP::Build::modules(), $name;
}

# Writes the configuration again, with other text if given.
sub write {
    my ($self, $text) = @_;
    my ($dir, $name) = ($self->{root}->path, $self->{name});
    $self->{text} = $text if defined $text;
    my %seen;
    my $modules = join q(), map { load($_) } grep { !$seen{$_}++ } "mpm_$self->{mpm}",
        qw(unixd log_config authz_core), @{ $self->{modules} };
    my $user = $> == 0 ? "User www-data\nGroup www-data\n" : q();
    MCP::Root::write_file($self->{conf}, <<"EOF");
ServerRoot "$dir"
DefaultRuntimeDir "$dir"
PidFile "$dir/$name.pid"
Listen 127.0.0.1:$self->{port}
ServerName 127.0.0.1:$self->{port}
$modules${user}ErrorLog "$self->{log}"
LogLevel $self->{log_level}
LogFormat "%t \\"%r\\" %>s %B %D" call
CustomLog "$self->{access}" call
DocumentRoot "$dir/htdocs"
GracefulShutdownTimeout 20
$self->{text}
EOF
    return;
}

sub port    { return $_[0]{port} }
sub mpm     { return $_[0]{mpm} }
sub log     { return $_[0]{log} }
sub access  { return $_[0]{access} }
sub origin  { return "http://127.0.0.1:$_[0]{port}" }
sub process { return $_[0]{process} }
sub pid     { return $_[0]{process}->pid }

sub start {
    my ($self) = @_;
    my $before = $self->generations;
    $self->{process} = MCP::Process->start(
        command => [MCP::Build::httpd(), '-DFOREGROUND', '-f', $self->{conf}],
        log     => $self->{log},
        env     => { MCP::Build::httpd_env() }
    );
    MCP::Net::wait_for(
        sub { !$self->{process}->is_running || ($self->generations > $before && MCP::Net::connects($self->{port})) });
    die "httpd does not start:\n" . (MCP::Root::slurp($self->{log}) || q()) . "\n"
        if !$self->{process}->is_running || !MCP::Net::connects($self->{port});
    return $self;
}

# How often it was configured so far: each start and restart says so.
sub generations { return MCP::Policyd::count($_[0]{log}, qr/configured -- resuming normal operations/) }

# With a signal: by that one. Else gracefully, and after ten seconds by TERM: at a TERM the event MPM of httpd 2.4 closes the sockets of its workers
# while they end by themselves, and a child dies of it now and then (apr_os_sock_get of a pool that is gone).
sub stop {
    my ($self, @how) = @_;
    my $process = $self->{process} or return;
    return $process->stop(@how) if @how;
    if ($process->is_running) {
        $process->signal('WINCH');
        MCP::Net::wait_for(sub { !$process->is_running }, 10);
    }
    return $process->stop;
}

# apachectl graceful: USR1, and the wait until the new generation stands.
sub graceful {
    my ($self) = @_;
    my $before = $self->generations;
    $self->{process}->signal('USR1');
    return MCP::Net::wait_for(sub { $self->generations > $before });
}

# Pids of the children that serve.
sub children {
    my ($self) = @_;
    my @children;
    my $parent = $self->pid;
    opendir my $proc, '/proc' or die "/proc: $!\n";
    for my $pid (grep { /^\d+$/ } readdir $proc) {
        my $stat = MCP::Root::slurp("/proc/$pid/stat");
        push @children, $pid if defined $stat && $stat =~ /\) (\S) (\d+) / && $2 == $parent && $1 ne 'Z';
    }
    closedir $proc;
    return sort { $a <=> $b } @children;
}

# Does httpd take this configuration? (1 or 0, what it says)
sub takes {
    my ($self, $text) = @_;
    $self->write($text);
    my ($status, $out) =
        MCP::Policyd::capture({ env => { MCP::Build::httpd_env() } }, MCP::Build::httpd(), '-t', '-f', $self->{conf});
    my $log = MCP::Root::slurp($self->{log});
    return ($status == 0 ? 1 : 0, defined $log ? "$out$log" : $out);
}

1;
