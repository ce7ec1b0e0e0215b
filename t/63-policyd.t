# policyd as a program: its configuration and keys, one instance, its rights, SIGHUP, and the end: SIGTERM and
# kill -9 while changes and calls run lose nothing that was acknowledged.

use strict;
use warnings;
use File::Find ();
use IO::Socket::UNIX;
use IPC::Open2 ();
use POSIX ();
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::HiRes qw(time);
use MCP::Admin;
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Load;
use MCP::Log;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Witness;

my $is_root = $> == 0;
my ($uid, $gid) = $is_root ? (getpwnam 'nobody')[2, 3] : ($>, $) + 0);
my ($web_uid, $web_gid) = $is_root ? (getpwnam 'www-data')[2, 3] : ();
my $root = MCP::Root->new;

# policyd with a file of this text: (exit status, out, err).
sub check {
    my ($text, @words) = @_;
    my $file = $root->write('check.conf', $text);
    return MCP::Policyd::capture({ apart => 1, env => { MCP::Build::policyd_env() } }, MCP::Build::policyd(), '-c', $file, @words ? @words : '-t');
}

sub mode { my @info = stat $_[0]; return @info ? sprintf '%04o', $info[2] & 07777 : 'none' }

# "MODE UID:GID" of a file.
sub rights { my @info = stat $_[0]; return @info ? sprintf '%04o %d:%d', $info[2] & 07777, @info[4, 5] : 'none' }

sub digest_of_all {
    my ($dir) = @_;
    my %all;
    File::Find::find({ no_chdir => 1, wanted => sub { $all{$_} = rights($_) . q( ) . (-f $_ ? MCP::Root::slurp($_) : q()) } }, $dir);
    return \%all;
}

sub status_of {
    my ($policyd, $key) = @_;
    my ($value) = (MCP::Root::slurp("/proc/@{[ $policyd->pid ]}/status") || q()) =~ /^\Q$key\E:\s*(.*)$/m;
    return $value;
}

my $long = 'x' x 108;
my $file = $root->path('check.conf');

subtest 'policyd -t takes what is sound' => sub {
    for my $case (
        ['an empty file',        q()],
        ['comments and blanks',  "# nothing\n\n   \t\n   # indented = comment\n"],
        ['no last line end',     'organisation = A'],
        ['CR LF',                "organisation = A\r\nlog = stderr\r\n"],
        ['blanks around',        "  \torganisation\t =\t  A B \t\n"],
        ['no blanks',            "organisation=A\nactor=unix:7 a\@b.org\n"],
        ['an = in a value',      "organisation = a = b # c\n"],
        ['every key',
            "organisation = Ä\nstate_dir = /a/b\nquery_endpoint = ipc:///a/q\nquery_endpoint = tcp://127.0.0.1:1\n"
                . "query_endpoint = tcp://[::1]:65535\nquery_endpoint = tcp://*:9\nadmin_socket = /a/s\nkey_dir = /k\n"
                . ($is_root ? "user = nobody\ngroup = nogroup\nhttpd_group = www-data\naudit_group = www-data\nadmin_group = www-data\n" : q())
                . "pid_file = /a/p\nlog = syslog\nlog_level = error\nactor = unix:1 a\@b\nactor = unix:4294967294 c\@d\n"
                . "reserved_labels = one two,three\ncontrol_prefix = gate\n"],
        ['8 endpoints',          join q(), map { "query_endpoint = tcp://127.0.0.1:$_\n" } 1 .. 8],
        ['256 actors',           join q(), map { "actor = unix:$_ a$_\@b.org\n" } 1 .. 256],
        ['a line of 2048 bytes', 'organisation = A' . q( ) x 2032 . "\n"],
    ) {
        my ($name, $text) = @$case;
        my ($status, $out, $err) = check($text);
        is("$status $out$err", "0 $file: syntax ok\n", $name);
    }
    ok(!-e '/a', 'nothing is made by it');
};

subtest 'policyd -t names file, line and remedy of what is not' => sub {
    my $first = "organisation = A\n\n# comment\n";    # the mistake stands in line 4
    for my $case (
        ['colour = red',                          'unknown key "colour"; policyd.conf(5) lists the keys'],
        ['Organisation = A',                      'unknown key "Organisation"; policyd.conf(5) lists the keys'],
        ["col\xc3\xb6r = red",                    qr/unknown key ".*"; policyd\.conf\(5\) lists the keys/],
        ['organisation',                          'not `key = value`; write it so, or begin a comment with #'],
        ['= A',                                   'not `key = value`; write it so, or begin a comment with #'],
        ['log =',                                 'log has no value; write one, or remove the line'],
        ["log = \t ",                             'log has no value; write one, or remove the line'],
        ['organisation = B',                      'organisation stands in line 1 already; remove one of the two'],
        ["log = std\x01err",                      'a control character stands in the line; remove it'],
        ["log = std\0err",                        'a control character stands in the line; remove it'],
        ["log = std\x7ferr",                      'a control character stands in the line; remove it'],
        ['x' x 2049,                              'the line is longer than 2048 bytes; shorten it'],
        ['log = file',                            'log = file: write stderr or syslog'],
        ['log_level = trace',                     'log_level = trace: write error, warning, notice, info or debug'],
        ['log_level = Notice',                    qr/^log_level = Notice: write/],
        ['state_dir = lib/policyd',               'state_dir = lib/policyd: write an absolute path without . and .. in it'],
        ['state_dir = /',                         qr/^state_dir = \/: write an absolute path/],
        ['state_dir = /a/../b',                   qr/write an absolute path/],
        ['state_dir = /a/./b',                    qr/write an absolute path/],
        ['state_dir = /a/..',                     qr/write an absolute path/],
        ['key_dir = keys',                        qr/^key_dir = keys: write an absolute path/],
        ['pid_file = p',                          qr/^pid_file = p: write an absolute path/],
        ['admin_socket = a.sock',                 qr/^admin_socket = a\.sock: write an absolute path/],
        ["admin_socket = /$long",                 qr/^admin_socket = .*: too long for a socket; at most 107 bytes/],
        ['user = a b',                            'user = a b: write one name of a user or group'],
        ['group = a:b',                           qr/^group = a:b: write one name/],
        ['httpd_group = -x',                      qr/^httpd_group = -x: write one name/],
        ['audit_group = /etc',                    qr/^audit_group = \/etc: write one name/],
        ['admin_group = a,b',                     qr/^admin_group = a,b: write one name/],
        ['query_endpoint = /run/q',               'query_endpoint = /run/q: write ipc:///PATH or tcp://ADDRESS:PORT'],
        ['query_endpoint = inproc://q',           qr/write ipc:\/\/\/PATH or tcp/],
        ['query_endpoint = ipc://q',              'query_endpoint = ipc://q: write ipc:// and an absolute path of at most 107 bytes'],
        ['query_endpoint = ipc://*',              qr/write ipc:\/\/ and an absolute path/],
        ["query_endpoint = ipc:///$long",         qr/at most 107 bytes/],
        ['query_endpoint = tcp://127.0.0.1',      qr/write ipc:\/\/\/PATH or tcp/],
        ['query_endpoint = tcp://127.0.0.1:0',    qr/write ipc:\/\/\/PATH or tcp/],
        ['query_endpoint = tcp://127.0.0.1:*',    qr/write ipc:\/\/\/PATH or tcp/],
        ['query_endpoint = tcp://127.0.0.1:65536', qr/write ipc:\/\/\/PATH or tcp/],
        ['query_endpoint = tcp://:7411',          qr/write ipc:\/\/\/PATH or tcp/],
        ['query_endpoint = tcp://a b:7',          qr/write ipc:\/\/\/PATH or tcp/],
        ['actor = 1000 a@b.org',                  'actor = 1000 a@b.org: write unix:UID EMAIL, as in unix:1000 ada@example.com'],
        ['actor = unix:ada a@b.org',              qr/write unix:UID EMAIL/],
        ['actor = unix:-1 a@b.org',               qr/write unix:UID EMAIL/],
        ['actor = unix:07 a@b.org',               qr/write unix:UID EMAIL/],
        ['actor = unix:7',                        qr/write unix:UID EMAIL/],
        ['actor = unix:7 ada',                    qr/write unix:UID EMAIL/],
        ['actor = unix:7 a@b@c',                  qr/write unix:UID EMAIL/],
        ['actor = unix:7 a@b.org c@d.org',        qr/write unix:UID EMAIL/],
        ['actor = unix:0 a@b.org',                'actor = unix:0 a@b.org: uid 0 is always the Owner; remove this line'],
        ['actor = unix:4294967295 a@b.org',       qr/no user can have this uid/],
        ['actor = unix:9999999999 a@b.org',       qr/no user can have this uid/],
        ["actor = unix:7 a\@b\nactor = unix:7 c\@d", qr/this uid has an actor on an earlier line; remove one/, 5],
        [join("\n", map { "actor = unix:$_ a\@b" } 1 .. 257), qr/too many actors; at most 256/, 260],
        [join("\n", map { "query_endpoint = tcp://127.0.0.1:$_" } 1 .. 9), qr/too many endpoints; at most 8/, 12],
        ["query_endpoint = tcp://a:1\nquery_endpoint = tcp://a:1", qr/stands on an earlier line; remove one/, 5],
        ['reserved_labels = One',                 qr/^reserved_labels = One: write labels of a-z/],
        ['reserved_labels = a-, b',               qr/write labels of a-z/],
        ["reserved_labels = " . join(q( ), map { "l$_" } 1 .. 65), qr/too many labels; at most 64/],
        ['control_prefix = a b',                  qr/^control_prefix = a b: write one label/],
        ['control_prefix = elaichi__',            qr/^control_prefix = .*: write one label/],
        ['control_prefix = ' . 'x' x 33,          qr/write one label/],
    ) {
        my ($line, $expected, $number) = @$case;
        $number = 4 if !defined $number;
        my ($status, $out, $err) = check("$first$line\nstate_dir = relative\n");
        my $shown = $line =~ s/[^ -~]/?/gr;
        $shown = substr($shown, 0, 50) . '...' if length $shown > 50;
        is("$status $out", '1 ', "$shown: refused");
        my ($where, $what) = $err =~ /\Apolicyd: (\Q$file\E:\d+): (.*)\n\z/s;
        is($where, "$file:$number", "$shown: file and line");
        ref $expected ? like($what, $expected, "$shown: remedy") : is($what, $expected, "$shown: remedy");
    }
};

subtest 'what no single line can be blamed for' => sub {
    for my $case (
        ["group = nogroup\n",                               'group is set but user is not; set both, or neither'],
        ["query_endpoint = ipc:///a/s\nadmin_socket = /a/s\n", 'query_endpoint and admin_socket are the same path; change one'],
        ["pid_file = /a/s\nadmin_socket = /a/s\n",          'pid_file and admin_socket are the same path; change one'],
        ["user = no-such-user-here\n",                      'user = no-such-user-here: there is no such user; create it, or name another'],
        (map { ["$_ = no-such-group\n", "$_ = no-such-group: there is no such group; create it, or name another"] }
                qw(httpd_group audit_group admin_group)),
        ['# ' . ('x' x 2000 . "\n# ") x 200,                qr/^not a plain file of at most 262144 bytes/],
    ) {
        my ($text, $expected) = @$case;
        my ($status, $out, $err) = check($text);
        is("$status $out", '1 ', substr($text, 0, 40) =~ s/\n.*//sr . ': refused');
        my ($what) = $err =~ /\Apolicyd: \Q$file\E: (.*)\n\z/s;
        ref $expected ? like($what, $expected, 'says why') : is($what, $expected, 'says why');
    }
    if ($is_root) {
        my ($status, undef, $err) = check("user = root\n");
        is($status, 1, 'root is no account for it');
        like($err, qr/user = root is root; name an account of policyd's own/, 'says so');
    }
    my $run = sub { return MCP::Policyd::capture({ apart => 1 }, MCP::Build::policyd(), @_) };
    my ($status, undef, $err) = $run->('-c', $root->path('none.conf'), '-t');
    is("$status $err", "1 policyd: @{[ $root->path('none.conf') ]}: cannot be read: No such file or directory; name another file with -c\n", 'a file that is not there');
    ($status, undef, $err) = $run->('-c', $root->path, '-t');
    like("$status $err", qr/^1 policyd: .*: not a plain file of at most/, 'a directory');
    for my $words (['-x'], ['-c'], ['--inits'], ['-t', 'more'], ['-c', $file, 'more']) {
        ($status, undef, $err) = $run->(@$words);
        is($status, 2, "@$words: wrong usage");
        like($err, qr/^policyd: .*\nusage: policyd/, "@$words: says so");
    }
    for my $word (qw(-h --help)) {
        my ($its, $out) = $run->($word);
        like("$its $out", qr/^0 usage: policyd/, $word);
    }
    my ($its, $out) = $run->('--version');
    like("$its $out", qr/^0 policyd \d+\.\d+\.\d+\S*\n\z/, '--version');
};

subtest '--init makes what is missing and overwrites nothing' => sub {
    my $policyd = MCP::Policyd->new(root => $root, name => 'init',
        config => $is_root ? { audit_group => 'www-data' } : {});
    my ($dir, $keys, $state) = ($policyd->dir, $policyd->dir . '/keys', $policyd->dir . '/state');
    my ($status, $out) = $policyd->run_once;
    is($status, 1, 'before it policyd does not start');
    like($out, qr/state: No such file or directory; run policyd --init -c \Q$dir\E/, 'and says what to do');
    ($status, $out) = $policyd->run_once('--init');
    is($status, 0, '--init');
    is_deeply([sort $out =~ /^made (.*)$/mg],
        [sort $state, $keys, "$dir/run", "$dir/run/query", map { "$keys/$_" } qw(server.key httpd.key clients.allow master.key)],
        'tells what it made');
    my %want = $is_root
        ? (
        $state                => "0750 $uid:$web_gid",
        $keys                 => "0750 0:$gid",
        "$dir/run"            => "0755 $uid:$gid",
        "$dir/run/query"      => "0750 $uid:$web_gid",
        "$keys/server.key"    => "0600 $uid:$gid",
        "$keys/httpd.key"     => '0640 0:0',
        "$keys/clients.allow" => "0640 0:$gid",
        "$keys/master.key"    => "0600 $uid:$gid"
        )
        : ();
    is(rights($_), $want{$_}, substr($_, length $dir) . " is $want{$_}") for sort keys %want;
    if (!$is_root) {
        is(mode("$keys/$_"), '0600', "$_ is private") for qw(server.key master.key);
        is(mode($state), '0700', 'the state directory is private');
    }
    my $before = digest_of_all($dir);
    ($status, $out) = $policyd->run_once('--init');
    is($status, 0, 'once more');
    unlike($out, qr/^(?:made|added)/m, 'makes nothing');
    my %kept = map { $_ => 1 } $out =~ /^kept (.*)$/mg;
    is(scalar keys %kept, 8, 'says what it kept');
    is_deeply(digest_of_all($dir), $before, 'and no byte, mode or owner has changed');

    unlink "$keys/clients.allow" or die "unlink: $!\n";
    MCP::Root::write_file("$keys/clients.allow", "# another httpd\n");
    chmod 0640, "$keys/clients.allow";
    ($status, $out) = $policyd->run_once('--init');
    like($out, qr/^added httpd\.key's client to /m, 'a list that lacks the key of httpd gets it');
    my $allow = MCP::Root::slurp("$keys/clients.allow");
    like($allow, qr/^# another httpd\n/, 'and keeps what it has');
    unlink "$keys/server.key" or die "unlink: $!\n";
    ($status, $out) = $policyd->run_once('--init');
    is($status, 1, 'a key of httpd for another server');
    like($out, qr/httpd\.key was made for another server\.key; move it away and run policyd --init/, 'is refused with the remedy');
    unlink "$keys/httpd.key" or die "unlink: $!\n";
    is(($policyd->run_once('--init'))[0], 0, 'which helps');

    chmod 0777, $state or die "chmod: $!\n";
    for my $words (['--init'], []) {
        ($status, $out) = $policyd->run_once(@$words);
        is($status, 1, "a state directory that anybody can write to: policyd @$words");
        like($out, qr/anybody can write to \Q$state\E; chmod o-w it/, 'is refused with the remedy');
    }
    chmod 0750, $state;
    for my $key (qw(server.key master.key)) {
        my $mode = (stat "$keys/$key")[2] & 07777;
        chmod 0644, "$keys/$key" or die "chmod: $!\n";
        ($status, $out) = $policyd->run_once;
        is($status, 1, "$key that others can read: policyd does not start");
        like($out, qr/\Q$keys\/$key\E/, 'and names it');
        chmod $mode, "$keys/$key";
    }
    unlink "$keys/master.key" or die "unlink: $!\n";
    symlink '/dev/null', "$keys/master.key" or die "symlink: $!\n";
    is(($policyd->run_once)[0], 1, 'a key that is a link');
    unlink "$keys/master.key";
    is(($policyd->run_once)[0], 1, 'a key that is missing');
};

my $policyd = MCP::Policyd->new(
    root   => $root,
    config => $is_root ? { audit_group => 'www-data', admin_group => 'www-data' } : {}
);

subtest 'the supervisor is told' => sub {
    my $path = $root->path('notify.sock');
    my $supervisor = IO::Socket::UNIX->new(Local => $path, Type => SOCK_DGRAM) or die "notify: $!\n";
    chmod 0666, $path;
    {
        local $ENV{NOTIFY_SOCKET} = $path;
        $policyd->start;
    }
    my $told = sub { $supervisor->recv(my $text, 4096); return $text };
    like($told->(), qr/^READY=1$/m, 'when it is ready');
    ok($policyd->reload, 'SIGHUP');
    like($told->(), qr/^RELOADING=1\nMONOTONIC_USEC=\d+$/m, 'when it reads its files again');
    like($told->(), qr/^READY=1$/m, 'and when it has');
    is($policyd->stop, 0, 'SIGTERM');
    like($told->(), qr/^STOPPING=1$/m, 'and that it goes');
};

$policyd->start;
MCP::Admin::call($policyd->socket, 'members__create', { email => 'first@example.org' });

subtest 'what it may do, and what its files let others do' => sub {
    my ($dir, $pid) = ($policyd->dir, $policyd->pid);
    is(status_of($policyd, 'NoNewPrivs'), 1, 'it gains no privilege');
    like(MCP::Root::slurp("/proc/$pid/limits"), qr/^Max core file size +0 +0 /m, 'it leaves no core');
    SKIP: {
        skip 'LeakSanitizer needs to trace it', 1 if MCP::Build::sanitized();
        skip 'only root sees it', 1 if !$is_root;
        is((stat "/proc/$pid/environ")[4], 0, 'it can not be dumped or traced');
    }
    is(MCP::Root::slurp("$dir/run/policyd.pid"), "$pid\n", 'the pid file has its pid');
    plan skip_all => 'the rest takes root' if !$is_root;
    is(status_of($policyd, 'Uid'), join("\t", ($uid) x 4), 'it is the configured user, for good');
    is(status_of($policyd, 'Gid'), join("\t", ($gid) x 4), 'and group');
    is(status_of($policyd, $_), '0' x 16, "$_ is empty") for qw(CapPrm CapEff CapAmb);
    my %groups = map { $_ => 1 } split q( ), status_of($policyd, 'Groups');
    ok($groups{$web_gid} && !$groups{0}, 'it is in the groups that it gives files to, and not in root\'s');
    my %want = (
        'state/policy.db'   => "0600 $uid:",
        'state/trail.db'    => "0600 $uid:",
        'state/audit.db'    => "0640 $uid:$web_gid",
        'run/admin.sock'    => "0660 $uid:$web_gid",
        'run/query/q.sock'  => "0660 $uid:$web_gid",
        'run/policyd.pid'   => "0644 $uid:$gid"
    );
    like(rights("$dir/$_"), qr/^\Q$want{$_}\E/, "$_ is $want{$_}") for sort keys %want;
    my @open = grep { /\.db/ } glob "$dir/state/*";
    is((grep { !/audit/ && (stat)[2] & 0077 } @open), 0, 'no file beside policy.db and trail.db is more open than they');
    SKIP: {
        chomp(my $sqlite = `sh -c 'command -v sqlite3'`);
        skip 'sqlite3 is not installed', 2 if $sqlite eq q();
        my $read = sub {
            my ($db) = @_;
            return MCP::Admin::as(60101, $web_gid, sub { return MCP::Policyd::capture({}, $sqlite, '-readonly', "$dir/state/$db.db", 'SELECT count(*) FROM ' . ($db eq 'audit' ? 'audit_trail' : 'object')) });
        };
        ok(MCP::Net::wait_for(sub { my ($status, $out) = $read->('audit'); return $status == 0 && $out =~ /^[1-9]/ }), 'an auditor reads audit.db while it is written');
        isnt(($read->('policy'))[0], 0, 'but not policy.db');
    }
};

subtest 'a second instance is refused, and the first one minds nothing' => sub {
    my $config = $policyd->{config};
    my $other = sub {
        my (%own) = @_;
        my $second = MCP::Policyd->new(root => $root, name => 'second', config => { %$config, %own });
        return $second->run_once;
    };
    my $dir = $root->make('second');
    mkdir "$dir/$_" for qw(run run/query);
    chown $uid, $gid, "$dir/run", "$dir/run/query" if $is_root;
    my %own = (
        pid_file       => "$dir/run/policyd.pid",
        admin_socket   => "$dir/run/admin.sock",
        query_endpoint => "ipc://$dir/run/query/q.sock"
    );
    my ($status, $out) = $other->();
    is($status, 1, 'the same configuration');
    like($out, qr/another policyd holds \Q$config->{pid_file}\E; stop it first/, 'the pid file is locked');
    ($status, $out) = $other->(pid_file => $own{pid_file});
    is($status, 1, 'another pid file');
    like($out, qr/another policyd answers at \Q$config->{admin_socket}\E; stop it first/, 'the admin socket is alive');
    ($status, $out) = $other->(pid_file => $own{pid_file}, admin_socket => $own{admin_socket});
    is($status, 1, 'and another admin socket');
    like($out, qr/another policyd holds .*state.*; stop it, or give this one its own state directory/, 'the store is locked');
    my $lone = MCP::Policyd->new(root => $root, name => 'third',
        config => { query_endpoint => $config->{query_endpoint} });
    $lone->init;
    ($status, $out) = $lone->run_once;
    is($status, 1, 'all its own but the query socket');
    like($out, qr/\Q$config->{query_endpoint}\E: another process answers there; stop it, or configure another/, 'the query socket is alive');
    is($policyd->admin('whoami__get')->{result}{surface}, 'admin', 'the first one still answers');
    ok(-S $config->{admin_socket} && -S substr($policyd->endpoint, 6), 'and still has its sockets');
};

subtest 'SIGHUP takes over actors and log level, and nothing of a bad file' => sub {
    my $said = sub { return MCP::Policyd::count($policyd->log, $_[0]) };
    $policyd->configure(log_level => 'warning');
    ok($policyd->process->signal('HUP'), 'log_level = warning');
    ok(MCP::Net::wait_for(sub {
        my $before = $said->(qr/ PD1205: /);
        $policyd->admin('whoami__get');
        return $said->(qr/ PD1205: /) == $before;
    }), 'debug lines end');
    $policyd->configure(log_level => 'debug', organisation => 'Other');
    $policyd->reload;
    is($said->(qr/ PD1008: reload: organisation has changed, which needs a restart/), 1, 'what needs a restart is said');
    my $text = MCP::Root::slurp($policyd->{conf});
    for my $bad ("$text\ncolour = red\n", "actor = unix:0 a\@b\n", "user = no-such-user-here\n", q(x)) {
        my $count = $said->(qr/ PD1006: /);
        MCP::Root::write_file($policyd->{conf}, $bad);
        $policyd->reload;
        is($said->(qr/ PD1006: reload: .*; the configuration in force stays/), $count + 1, 'a bad file is told of');
        is($policyd->admin('whoami__get')->{result}{surface}, 'admin', 'and the old one stays');
    }
    unlink $policyd->{conf};
    my $count = $said->(qr/ PD1006: /);
    $policyd->reload;
    is($said->(qr/ PD1006: /), $count + 1, 'a file that is gone is a bad one');
    $policyd->configure(organisation => 'Test');
    $policyd->reload;

    plan skip_all => 'actors take root, to be others' if !$is_root;
    my $as = sub { my ($result, $error) = MCP::Admin::as($_[0], $web_gid, sub { MCP::Admin::call($policyd->socket, 'whoami__get') }); return $result ? $result->{email} : $error->{code} };
    is($as->(60101), 'permission_denied', 'a uid that is not mapped');
    $policyd->configure(actor => 'unix:60101 first@example.org');
    $policyd->reload;
    is($as->(60101), 'first@example.org', 'is the member once the file says so');
    MCP::Root::write_file($policyd->{conf}, "actor = unix:60102 first\@example.org\nnonsense\n");
    $policyd->reload;
    is($as->(60101), 'first@example.org', 'still after a bad file');
    is($as->(60102), 'permission_denied', 'of which nothing is taken');
    $policyd->configure(actor => undef);
    $policyd->reload;
    is($as->(60101), 'permission_denied', 'and no longer when the line is gone');
};

subtest 'after a stop nothing stays behind' => sub {
    my $dir = $policyd->dir;
    is($policyd->stop, 0, 'SIGTERM: exit 0');
    ok(!-e "$dir/run/admin.sock", 'the admin socket is gone');
    ok(!-e "$dir/run/query/q.sock", 'and the query socket');
    is(MCP::Root::slurp("$dir/run/policyd.pid"), q(), 'the pid file has no pid');
    is_deeply([grep { m{/(?:policy|trail)\.db-(?:wal|shm)$} } glob "$dir/state/*"], [], 'the logs of policy.db and trail.db are written back');
    is($policyd->start->stop('INT'), 0, 'SIGINT does the same');
};

subtest 'after kill -9 it comes up again by itself' => sub {
    my $dir = $policyd->dir;
    $policyd->start;
    MCP::Admin::call($policyd->socket, 'members__create', { email => 'before@example.org' });
    $policyd->kill9;
    ok(-S "$dir/run/admin.sock" && -S "$dir/run/query/q.sock", 'the sockets are still there');
    like(MCP::Root::slurp("$dir/run/policyd.pid"), qr/^\d+\n\z/, 'and the pid');
    $policyd->start;
    is((MCP::Admin::call($policyd->socket, 'members__get', { member => 'before@example.org' }))[0]{email}, 'before@example.org', 'what was acknowledged is there');
    is(MCP::Root::slurp("$dir/run/policyd.pid"), $policyd->pid . "\n", 'the pid file is its own');
    is($policyd->stop, 0, 'and it stops as ever');
    for my $path ("$dir/run/admin.sock", "$dir/run/query/q.sock") {
        MCP::Root::write_file($path, "precious\n");
        my ($status, $out) = $policyd->run_once;
        if ($path =~ /admin/) {
            is($status, 1, 'a file at the path of a socket');
            is(MCP::Root::slurp($path), "precious\n", 'is not removed');
        }
        unlink $path;
        last;
    }
};

subtest 'a list that waits for a held up audit.db does not hold up the stop' => sub {
    chomp(my $sqlite = `sh -c 'command -v sqlite3'`);
    plan skip_all => 'sqlite3 is not installed' if $sqlite eq q();
    $policyd->start;
    my $holder = IPC::Open2::open2(my $from, my $to, $sqlite, $policyd->db('audit'));
    syswrite $to, "BEGIN IMMEDIATE;\nSELECT 'held';\n";
    is(scalar <$from>, "held\n", 'somebody holds the lock');
    MCP::Admin::call($policyd->socket, 'members__create', { email => 'while@example.org' });
    my $admin = MCP::Admin->new($policyd->socket);
    $admin->send($admin->request('audit__list', {}));
    is($admin->line(0.3), undef, 'the list waits for the copy');
    my $other = MCP::Admin->new($policyd->socket);
    is($other->ask('members__get', { member => 'while@example.org' })->{result}{email}, 'while@example.org', 'nobody else does');
    my $began = time;
    is($policyd->stop('TERM', 60), 0, 'policyd stops');
    cmp_ok(time - $began, '<', 25, 'in bounded time');
    my $answer = $admin->answer;
    is($answer->{error}{data}{code}, 'policy_unavailable', 'and who waited is told') or diag(explain($answer));
    close $to;
    waitpid $holder, 0;
    $policyd->start;
    my ($rows) = MCP::Admin::call($policyd->socket, 'audit__list', { operation => 'members__create', limit => 1 });
    is($rows->{items}[0]{outcome}, 'ok', 'the copy catches up after the next start');
    is($policyd->stop, 0, 'and policyd stops');
};

my @bad = MCP::Log::unexpected([$policyd->log], 'PD1003', 'PD1006', 'PD1008', 'PD0143', 'PD1118', 'PD1011');
ok(!@bad, 'the log holds nothing unexpected');
diag("  $_") for @bad;

# --- clients.allow, and stopping under load ----------------------------------------

my $stack = MCP::Stack->new(webdav => 0, server => "MCPPolicyTimeout 2s\n", location => "MCPCallTimeout 20s\n");
$policyd = $stack->policyd;
my $witness = MCP::Witness->start(root => $stack->root, slow => 0.01);
$stack->{given}{allow} = [$witness->origin];
$stack->reconfigure(allow => [$witness->origin]);
$stack->gateway->graceful;
$stack->connector($witness->file);
my $token = $stack->grant('member@example.org')->{token};

subtest 'SIGHUP takes over clients.allow, and nothing of a bad one' => sub {
    my $allow = "$policyd->{config}{key_dir}/clients.allow";
    my $good = MCP::Root::slurp($allow);
    my $client = MCP::Client->new(url => $stack->url, token => $token);
    is($client->list->{status}, 200, 'httpd is served');
    MCP::Root::write_file($allow, "not a key\n");
    my $count = MCP::Policyd::count($policyd->log, qr/ PD1009: /);
    $policyd->reload;
    is(MCP::Policyd::count($policyd->log, qr/ PD1009: reload: .*clients\.allow:1: .*; the list in force stays/), $count + 1, 'a bad list is told of, with its line');
    is($client->list->{status}, 200, 'and the old one stays');
    MCP::Root::write_file($allow, "# nobody\n");
    $policyd->reload;
    is($client->list->{status}, 503, 'a key that is off the list is not answered, on a connection that it has');
    MCP::Root::write_file($allow, $good);
    $policyd->reload;
    ok(MCP::Net::wait_for(sub { return $client->list->{status} == 200 }), 'back on it, it is');
};

# A process that makes members at the admin socket until it is refused or cut off, and writes down whom policyd
# acknowledged and whom not.
sub writer {
    my ($name) = @_;
    my $record = $stack->root->path("writer-$name");
    MCP::Root::write_file($record, q());
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        open my $out, '>>', $record or POSIX::_exit(1);
        $out->autoflush(1);
        my $admin = eval { MCP::Admin->new($policyd->socket) };
        for (my $i = 1; $admin; $i++) {
            my $answer = $admin->ask('members__create', { email => "$name-$i\@example.org" });
            my $said = !$answer ? 'nothing' : $answer->{result} ? 'ok' : $answer->{error}{data}{code};
            print {$out} "$said $name-$i\@example.org\n";
            last if $said ne 'ok';
        }
        POSIX::_exit(0);
    }
    return { pid => $pid, record => $record };
}

sub written { my ($writer, $what) = @_; return (MCP::Root::slurp($writer->{record}) || q()) =~ /^\Q$what\E (\S+)$/mg }

for my $round (
    ['SIGTERM',          sub { $policyd->process->signal('TERM') },                                      0],
    ['SIGTERM again',    sub { $policyd->process->signal('TERM') },                                      0],
    ['two SIGTERMs',     sub { $policyd->process->signal('TERM'); $policyd->process->signal('TERM') },   0],
    ['SIGTERM, SIGTERM', sub { $policyd->process->signal('TERM'); MCP::Net::wait_for(sub { 0 }, 0.002); $policyd->process->signal('TERM') }, 0],
    ['kill -9',          sub { $policyd->process->signal('KILL') },                                      9],
) {
    my ($name, $stop, $expected) = @$round;
    subtest "$name while changes and calls run" => sub {
        my $tag = join q(), map { lc } $name =~ /(\w)/g;
        my $mark = ($stack->audit)[-1]{audit_id};
        my $before = $witness->size || 0;
        my @writers = map { writer("$tag$_") } 1 .. 6;
        my $load = MCP::Load->start(root => $stack->root, url => $stack->url, tokens => [$token], clients => 6, ends => 3);
        ok(MCP::Net::wait_for(sub { return $witness->size > $before + 3000 && (grep { -s $_->{record} > 500 } @writers) == @writers }), 'both are under way');
        my $began = time;
        $stop->();
        my $status = $policyd->process->wait(40);
        is($status, $expected, "it ends with $expected");
        cmp_ok(time - $began, '<', 15, 'in time');
        waitpid $_->{pid}, 0 for @writers;
        $policyd->start;
        my @calls = $load->stop;

        my %members = map { $_->{email} => 1 } @{ $stack->ctl(qw(members list --all --query), $tag)->{items} };
        my @acknowledged = map { written($_, 'ok') } @writers;
        cmp_ok(scalar @acknowledged, '>', 10, 'changes were acknowledged: ' . @acknowledged);
        is_deeply([grep { !$members{$_} } @acknowledged], [], 'and every one of them is there');
        my @refused = map { written($_, 'policy_unavailable') } @writers;
        is_deeply([grep { $members{$_} } @refused], [], 'none that was refused has happened');
        is((grep { my $w = $_; !(grep { written($w, $_) } qw(nothing policy_unavailable outcome_unrecorded)) } @writers), 0, 'every writer was told, or cut off');

        # until every attempt has its end
        my @rows;
        MCP::Net::wait_for(sub {
            @rows = $stack->audit(after => $mark);
            return !grep { $_->{outcome} eq 'running' } @rows;
        });
        is_deeply([grep { $_->{outcome} eq 'running' } @rows], [], 'in the end no attempt is running');
        my %made = map { $_ => 0 } qw(ok error denied interrupted);
        $made{ $_->{outcome} }++ for grep { $_->{operation} && $_->{operation} eq 'members__create' } @rows;
        is($made{ok}, scalar keys %members, 'as many changes recorded as there are') or diag(explain(\%made));
        my @done = grep { $_->{status} == 200 && $_->{own} } @calls;
        my %called = map { $_ => 0 } qw(ok error denied interrupted);
        $called{ $_->{outcome} }++ for grep { $_->{tool} && $_->{tool} eq 'load__post' } @rows;
        cmp_ok(scalar @done, '>', 10, 'calls were answered: ' . @done);
        cmp_ok($called{ok}, '>=', scalar @done, 'each of them is on record as ok');
        my %own = map { $_->{mark} => 1 } @calls;
        my @sent = grep { $own{ $_->{mark} } } $witness->calls;
        cmp_ok($called{ok} + $called{error} + $called{interrupted}, '>=', scalar @sent, 'and nothing was sent without a record');
        my %once;
        $once{ $_->{mark} }++ for @sent;
        is((grep { $_ > 1 } values %once), 0, 'nor twice');
        is(MCP::Client->new(url => $stack->url, token => $token)->call('load__get', { mark => "after-$tag" })->{status}, 200, 'httpd goes on');
    };
}

# MCP03xx: the link was down meanwhile; PD0121: the interrupted; PD0170: an end that a forced stop refused
$stack->end(expected => [qw(MCP03\d\d MCP04\d\d PD1101 PD0121 PD0170 PD1003 PD1009 PD1116 PD1118)]);
$witness->stop;

done_testing();
