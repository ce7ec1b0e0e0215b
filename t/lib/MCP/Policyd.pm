package MCP::Policyd;

# A real policyd with a configuration of its own, and policyctl to speak with it.

use strict;
use warnings;
use File::Temp ();
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(SOCK_STREAM);
use MCP::Build;
use MCP::Json;
use MCP::Net;
use MCP::Process;
use MCP::Root;

# root => MCP::Root; config => {key => value or [values]}, over what follows; name => for a second one
sub new {
    my ($class, %given) = @_;
    my $root = $given{root};
    my $name = $given{name} || 'policyd';
    my $dir = $root->make($name);
    my %config = (
        organisation   => 'Test',
        state_dir      => "$dir/state",
        data_dir       => MCP::Build::source() . '/conf',
        key_dir        => "$dir/keys",
        query_endpoint => "ipc://$dir/run/query/q.sock",
        admin_socket   => "$dir/run/admin.sock",
        pid_file       => "$dir/run/policyd.pid",
        log_level      => 'debug',
    );
    if ($> == 0) {
        @config{qw(user httpd_group)} = ('nobody', 'www-data');
    } else {
        $config{actor} = "unix:$> owner\@example.org";
    }
    %config = (%config, %{ $given{config} || {} });
    my $self = bless {
        name   => $name,
        dir    => $dir,
        conf   => "$dir/policyd.conf",
        log    => $root->path("$name.log"),
        config => \%config
    }, $class;
    $self->configure;
    return $self;
}

# Writes the file again, with changes to keys; a value of undef takes a key out.
sub configure {
    my ($self, %changes) = @_;
    my $config = $self->{config};
    my $text = q();
    %$config = (%$config, %changes);
    for my $key (sort keys %$config) {
        my $value = $config->{$key};
        next if !defined $value;
        $text .= "$key = $_\n" for ref $value ? @$value : ($value);
    }
    MCP::Root::write_file($self->{conf}, $text);
    return;
}

sub log      { return $_[0]{log} }
sub dir      { return $_[0]{dir} }
sub pid      { return $_[0]{process}->pid }
sub process  { return $_[0]{process} }
sub endpoint { my $e = $_[0]{config}{query_endpoint}; return ref $e ? $e->[0] : $e }
sub key      { return "$_[0]{config}{key_dir}/httpd.key" }
sub socket   { return $_[0]{config}{admin_socket} }
sub db       { return "$_[0]{config}{state_dir}/$_[1].db" }

# Runs policyd with further words to its end: (exit status, output).
sub run_once {
    my ($self, @words) = @_;
    return capture({}, MCP::Build::policyd(), '-c', $self->{conf}, @words);
}

sub init {
    my ($self) = @_;
    my ($status, $out) = $self->run_once('--init');
    die "policyd --init: $out\n" if $status != 0;
    $self->{is_made} = 1;
    return $self;
}

# Starts it and waits until it answers at the admin socket and has bound the query socket.
sub start {
    my ($self) = @_;
    $self->init if !$self->{is_made};
    my $mark = count($self->{log}, qr/ PD1002: ready/);
    $self->{process} = MCP::Process->start(
        command => [MCP::Build::policyd(), '-c', $self->{conf}],
        log     => $self->{log},
        env     => { MCP::Build::policyd_env() }
    );
    MCP::Net::wait_for(
        sub {
            return 1 if !$self->{process}->is_running;
            return count($self->{log}, qr/ PD1002: ready/) > $mark && MCP::Net::connects_unix($self->socket);
        }
    );
    die "policyd does not start:\n" . (MCP::Root::slurp($self->{log}) || q()) . "\n"
        if !$self->{process}->is_running || !MCP::Net::connects_unix($self->socket);
    return $self;
}

sub count {
    my ($file, $pattern) = @_;
    my $text = MCP::Root::slurp($file);
    my $count = () = defined $text ? $text =~ /$pattern/g : ();
    return $count;
}

sub stop  { my ($self, @how) = @_; return $self->{process} ? $self->{process}->stop(@how) : undef }
sub kill9 { return $_[0]{process}->kill9 }

# Sends SIGHUP and waits until its outcome stands in the log.
sub reload {
    my ($self) = @_;
    my $mark = count($self->{log}, qr/ PD10(?:09|10): /);
    $self->{process}->signal('HUP');
    return MCP::Net::wait_for(sub { count($self->{log}, qr/ PD10(?:09|10): /) > $mark });
}

# --- policyctl -----------------------------------------------------------------

# Runs a command: (exit status, all output), or (exit status, standard output, standard error) with
# {apart => 1}. {in => TEXT} is its input, {env => {...}} goes over the environment.
sub capture {
    my ($how, @command) = @_;
    my $dir = File::Temp->newdir('mcp-c-XXXXXX', TMPDIR => 1);
    my %file = map { $_ => "$dir/$_" } qw(in out err);
    MCP::Root::write_file($file{in}, defined $how->{in} ? $how->{in} : q());
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        %ENV = (%ENV, %{ $how->{env} || {} });
        open STDIN,  '<', $file{in}  or POSIX::_exit(126);
        open STDOUT, '>', $file{out} or POSIX::_exit(126);
        open STDERR, '>', $file{err} or POSIX::_exit(126);
        { no warnings 'exec'; exec { $command[0] } @command; }
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    my $status = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    my ($out, $err) = map { MCP::Root::slurp($file{$_}) } qw(out err);
    return $how->{apart} ? ($status, $out, $err) : ($status, "$out$err");
}

# policyctl with these words: (exit status, standard output, standard error). A hash reference among the words
# goes in as --json.
sub run_ctl {
    my ($self, @words) = @_;
    my ($body) = grep { ref } @words;
    my @plain = grep { !ref } @words;
    my %how = (apart => 1);
    if (defined $body) {
        $how{in} = MCP::Json::encode($body);
        push @plain, '--json', '-';
    }
    my @command = (MCP::Build::policyctl(), '--socket', $self->socket, @plain);
    unshift @command, 'sudo', '-n' if $> != 0 && $self->{needs_root};
    return capture(\%how, @command);
}

# The answer as data; dies with what policyctl said when it is refused.
sub ctl {
    my ($self, @words) = @_;
    my ($status, $out, $err) = $self->run_ctl(@words, '-o', 'json');
    die "policyctl @words: exit $status: $err\n" if $status != 0;
    return $out =~ /\S/ ? MCP::Json::decode($out) : undef;
}

# The code of a refusal; undef where it was not refused.
sub ctl_refusal {
    my ($self, @words) = @_;
    my ($status, $out, $err) = $self->run_ctl(@words);
    return $status == 0 ? undef : $err =~ /^policyctl: (\w+)/ ? $1 : "exit $status";
}

# Only root can make the first Owner.
sub first_owner {
    my ($self, $email) = @_;
    local $self->{needs_root} = 1;
    return $self->ctl(qw(members create --name Owner --roles Owner --email), $email);
}

# One JSON-RPC message to the admin socket: the whole answer as data. Text is sent as it stands.
sub admin {
    my ($self, $method, $params) = @_;
    my $socket = IO::Socket::UNIX->new(Peer => $self->socket, Type => SOCK_STREAM)
        or die "admin socket: $!\n";
    my $text = MCP::Json::encode(
        { jsonrpc => '2.0', id => 1, method => $method, defined $params ? (params => $params) : () });
    local $SIG{PIPE} = 'IGNORE';
    print {$socket} "$text\n";
    my $answer = <$socket>;
    return defined $answer ? MCP::Json::decode($answer) : undef;
}

1;
