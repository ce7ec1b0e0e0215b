# The admin socket: JSON-RPC 2.0, one message a line, over a stream that may be cut anywhere; its bounds; and who
# the peer is, which the kernel says. Switching to other users needs root.

use strict;
use warnings;
use POSIX ();
use Test::More;
use MCP::Admin;
use MCP::Build;
use MCP::Json;
use MCP::Log;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;

my $MIB = 1 << 20;
my $is_root = $> == 0;
my ($mapped, $group) = $is_root ? (getpwnam 'www-data')[2, 3] : ();
my $group_name = $is_root ? getgrgid $group : undef;
my @uids = (60101 .. 60105);    # of nobody

my $root = MCP::Root->new;
my $policyd = MCP::Policyd->new(
    root   => $root,
    config => $is_root
    ? {
        admin_group => $group_name,
        actor       => ["unix:$mapped member\@example.org", "unix:$uids[1] auditor\@example.org",
            "unix:$uids[2] nobody\@example.org", "unix:$uids[3] gone\@example.org"]
        }
    : {}
)->start;
my $path = $policyd->socket;
my $me = "unix:$>";

sub open_one { return MCP::Admin->new($path) }
sub call     { return MCP::Admin::call($path, @_) }

my $whoami = '{"jsonrpc":"2.0","id":1,"method":"whoami__get"}';

# Somebody else is still served.
sub still_serves {
    my ($what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($result) = call('whoami__get');
    return is($result->{label}, $me, $what);
}

sub rss_mib {
    my $text = MCP::Root::slurp("/proc/@{[ $policyd->pid ]}/status") || q();
    return $text =~ /^VmRSS:\s+(\d+) kB/m ? $1 / 1024 : 0;
}

# Rows newer than an audit id, oldest first, without the asking itself.
sub rows_after {
    my ($mark) = @_;
    my ($result, $error) = call('audit__list', { after => $mark, limit => 1000 });
    die "audit__list: $error->{code}\n" if !$result;
    return grep { $_->{operation} ne 'audit__list' } @{ $result->{items} };
}

sub mark { return (call('audit__list', { limit => 1 }))[0]{items}[0]{audit_id} }

call('whoami__get');    # the trail has a row to start from
if ($is_root) {
    call('members__create', { email => "$_\@example.org", roles => ["\u$_"] }) for qw(owner member auditor);
    call('members__create', { email => 'gone@example.org' });
} else {
    BAIL_OUT('the first Owner takes root: sudo -n policyctl') if !eval { $policyd->first_owner('owner@example.org') };
}

subtest 'an answer has the id of its request' => sub {
    my $admin = open_one();
    for my $id ('1', '-1', '0', '9007199254740993', '9223372036854775807', '"a\"b"', '""', 'null', '"\u0041"', '1.5', '"' . 'x' x 5000 . '"') {
        $admin->send($admin->request('whoami__get', undef, $id));
        my $line = $admin->line;
        my $shown = $id eq '"\u0041"' ? '"A"' : $id;
        like($line, qr/^\{"jsonrpc":"2\.0","id":\Q$shown\E,"result":\{/, 'id ' . substr $id, 0, 40);
    }
    my $answer = $admin->ask('members__get', { member => 'x@y.z' }, '"e"');
    is($answer->{id}, 'e', 'an error has it too');
    is_deeply([sort keys %$answer], [qw(error id jsonrpc)], 'an error is id, jsonrpc and error');
    is_deeply([sort keys %{ $answer->{error} }], [qw(code data message)], 'of code, message and data');
    is($answer->{error}{code}, 1, 'refused by the operation');
    is($answer->{error}{data}{code}, 'not_found', 'with a code of the closed list');
    is($answer->{error}{message}, $answer->{error}{data}{message}, 'the message is the same');
    like($answer->{error}{data}{audit}, qr/^\d+-\d+$/, 'and the audit id');
};

subtest 'a request without an id is run and not answered' => sub {
    my $admin = open_one();
    $admin->send(qq({"jsonrpc":"2.0","method":"members__create","params":{"email":"quiet\@example.org"}}\n));
    $admin->send(qq({"jsonrpc":"2.0","method":"members__get","params":{"member":"nobody\@example.org"}}\n));
    $admin->send(qq({"jsonrpc":"2.0","method":"no__such"}\n));
    my $answer = $admin->ask('members__get', { member => 'quiet@example.org' }, '"after"');
    is($answer->{id}, 'after', 'the first answer is that of the request behind them');
    is($answer->{result}{email}, 'quiet@example.org', 'and the operation has run');
};

subtest 'lines that are no request' => sub {
    my $deep = ('[' x 200) . (']' x 200);
    my $admin = open_one();
    for my $case (
        ['garbage',                 'GET / HTTP/1.1',                                         -32700, undef],
        ['half an object',          '{"jsonrpc":"2.0"',                                       -32700, undef],
        ['two values',              '{} {}',                                                  -32700, undef],
        ['a duplicate key',         '{"jsonrpc":"2.0","id":1,"id":2,"method":"whoami__get"}', -32700, undef],
        ['a key twice below',       '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"a":2}}', -32700, undef],
        ['not UTF-8',               "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}",                  -32700, undef],
        ['a NUL',                   "{\"jsonrpc\":\"2.0\"\0}",                                -32700, undef],
        ['nested too deeply',       qq({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":$deep}}), -32700, undef],
        ['blanks only',             "  \t",                                                   -32700, undef],
        ['a number',                '42',                                                     -32600, undef],
        ['null',                    'null',                                                   -32600, undef],
        ['a batch',                 "[$whoami]",                                              -32600, undef],
        ['an empty batch',          '[]',                                                     -32600, undef],
        ['no version',              '{"id":1,"method":"whoami__get"}',                        -32600, 1],
        ['another version',         '{"jsonrpc":"1.0","id":1,"method":"whoami__get"}',        -32600, 1],
        ['a version as a number',   '{"jsonrpc":2.0,"id":1,"method":"whoami__get"}',          -32600, 1],
        ['no method',               '{"jsonrpc":"2.0","id":1}',                               -32600, 1],
        ['a method that is no text', '{"jsonrpc":"2.0","id":1,"method":7}',                   -32600, 1],
        ['an id that is a list',    '{"jsonrpc":"2.0","id":[1],"method":"whoami__get"}',      -32600, undef],
        ['an id that is a boolean', '{"jsonrpc":"2.0","id":true,"method":"whoami__get"}',     -32600, undef],
        ['another member',          '{"jsonrpc":"2.0","id":1,"method":"whoami__get","x":1}',  -32600, 1],
        ['an answer',               '{"jsonrpc":"2.0","id":1,"result":{}}',                   -32600, 1],
        ['params that are a list',  '{"jsonrpc":"2.0","id":1,"method":"whoami__get","params":[]}', -32602, 1],
        ['params that are null',    '{"jsonrpc":"2.0","id":1,"method":"whoami__get","params":null}', -32602, 1],
        ['an unknown method',       '{"jsonrpc":"2.0","id":1,"method":"members__juggle"}',    -32601, 1],
        ['an empty method',         '{"jsonrpc":"2.0","id":1,"method":""}',                   -32601, 1],
        ['a prefixed name',         '{"jsonrpc":"2.0","id":1,"method":"elaichi__whoami__get"}', -32601, 1],
        ['a name in another case',  '{"jsonrpc":"2.0","id":1,"method":"Whoami__get"}',        -32601, 1],
        ['a method with a NUL',     '{"jsonrpc":"2.0","id":1,"method":"whoami__get\u0000x"}', undef, undef],
    ) {
        my ($name, $line, $code, $id) = @$case;
        $admin->send("$line\n");
        my $answer = $admin->answer;
        ok(ref $answer eq 'HASH' && $answer->{error}, "$name: an error") or next;
        is($answer->{error}{code}, $code, "$name: of JSON-RPC's own code") if defined $code;
        is($answer->{id}, $id, "$name: with its id, if it has one") if defined $code;
        ok(length $answer->{error}{data}{code} && length $answer->{error}{data}{message}, "$name: and our code and message");
    }
    is($admin->ask('whoami__get')->{result}{label}, $me, 'the connection has survived them all');
    $admin->send("\n\r\n\n$whoami\r\n");
    is($admin->answer->{id}, 1, 'empty lines are nothing, and a carriage return belongs to the line end');
};

subtest 'arguments are checked by the schema, and no value is repeated' => sub {
    my $value = 'vAlUe-7391';
    for my $case (
        ['members__create', { email => [$value] }],
        ['members__create', { email => 'a@b.org', name => $value x 20 }],
        ['members__list',   { limit => $value }],
        ['members__list',   { limit => 1001 }],
        ['members__list',   { state => $value }],
        ['settings__set',   { key => 'collapse.mode', value => $value }],
        ['grants__create',  { member => 'owner@example.org', client => 'c', scopes => [$value] }],
        ['audit__list',     { since => $value }],
    ) {
        my ($method, $params) = @$case;
        my ($result, $error) = call($method, $params);
        is($error->{code}, 'invalid_request', "$method is refused");
        unlike(MCP::Json::encode($error), qr/\Q$value\E/, "$method: without the value");
    }
    my $admin = open_one();
    $admin->send('{"jsonrpc":"2.0","id":1,"method":"members__list","params":{"' . ('k' x 200) . qq(":1}}\n));
    is($admin->answer->{error}{data}{code}, 'invalid_request', 'an argument that nobody knows');
};

subtest 'bytes arrive as they like' => sub {
    my $admin = open_one();
    my $text = $admin->request('whoami__get', {}, '"slow"');
    my $half = length($text) / 2;
    $admin->send(substr $text, 0, $half);
    still_serves('others are served while half a line waits');
    $admin->send(substr $text, $half);
    is($admin->answer->{id}, 'slow', 'the other half makes it a request');
    for my $byte (split //, $admin->request('whoami__get', {}, '"bytes"')) {
        $admin->send($byte);
    }
    is($admin->answer->{id}, 'bytes', 'byte by byte');
    $admin->send(join q(), map { $admin->request('whoami__get', {}, $_) } 1 .. 500);
    is_deeply([map { $admin->answer->{id} } 1 .. 500], [1 .. 500], '500 in one piece, answered in their order');
    $admin->send($admin->request('audit__list', { limit => 1000 }, 1) . $admin->request('whoami__get', {}, 2)
            . "garbage\n" . $admin->request('members__list', {}, 3) . $admin->request('rpc.describe', undef, 4));
    is_deeply([map { $_->{id} } map { $admin->answer } 1 .. 5], [1, 2, undef, 3, 4], 'a slow one first changes no order');

    $admin = open_one();
    $admin->send($admin->request('audit__list', { limit => 1000 }, 1) . $admin->request('whoami__get', {}, 2));
    shutdown $admin->socket, 1;
    is_deeply([map { $admin->answer->{id} } 1, 2], [1, 2], 'what was asked before a half-close is answered');
    ok($admin->has_ended, 'and then it ends');
    $admin = open_one();
    $admin->send('{"jsonrpc":"2.0","id":1,"method":"whoami__g');
    shutdown $admin->socket, 1;
    ok($admin->has_ended, 'half a line and the end is nothing');
    still_serves('and nobody minds');
};

subtest 'an operation outlives the connection that asked for it' => sub {
    for my $i (1 .. 10) {
        my $admin = open_one();
        $admin->send($admin->request('members__create', { email => "left$i\@example.org" }));
        close $admin->socket;
    }
    my $count = MCP::Net::wait_for(
        sub { my ($found) = call('members__list', { query => 'left' }); return $found && @{ $found->{items} } == 10 });
    ok($count, 'all ten have happened');
    my ($rows) = call('audit__list', { operation => 'members__create', outcome => 'running' });
    is_deeply($rows->{items}, [], 'and have their end on record');
};

subtest 'a line has at most 16 MiB' => sub {
    my $admin = open_one();
    my $room = 16 * $MIB - length $whoami;
    $admin->send($whoami . q( ) x $room . "\n");
    is($admin->answer->{id}, 1, '16 MiB are taken');
    $admin->send($whoami . q( ) x $room . "\r\n");
    is($admin->answer->{id}, 1, 'a carriage return does not count');
    $admin->send($whoami . q( ) x ($room + 1) . "\n");
    my $answer = $admin->answer;
    is($answer->{error}{data}{code}, 'too_large', 'a byte more is refused');
    is($answer->{id}, undef, 'without an id');
    like($answer->{error}{message}, qr/16 MiB/, 'and the limit is named');
    ok($admin->has_ended, 'the connection ends');
    $admin = open_one();
    $admin->send(q(x) x (17 * $MIB));    # the rest is not read: the peer may see a broken pipe
    is($admin->answer->{error}{data}{code}, 'too_large', 'a line that never ends is refused before it does');
    still_serves('others are served');
    my ($result, $error) = call('members__create', { email => 'a@b.org', name => 'n' x $MIB });
    is($error->{code}, 'invalid_request', 'an operation has a limit of its own');
    my ($row) = reverse rows_after(mark() =~ s/(\d+)$/$1 - 2/er);
    is("$row->{operation} $row->{outcome}", 'members__create error', 'and its row');
};

subtest 'large half lines of many connections are bounded together' => sub {
    my $before = rss_mib();
    my (@held, $refused);
    for (1 .. 14) {
        my $admin = open_one();
        $admin->send(q( ) x (15 * $MIB));
        push @held, $admin;
    }
    for my $admin (@held) {
        my $line = $admin->line(0.2);
        $refused++ if defined $line && $line =~ /"overloaded"/;
    }
    ok($refused, 'some are turned away');
    cmp_ok($refused || 0, '<', 14, 'and some are not');
    still_serves('a small request is served meanwhile');
    cmp_ok(rss_mib() - $before, '<', 400, 'memory stays bounded') if !MCP::Build::sanitized();
    undef @held;
    ok(MCP::Net::wait_for(
            sub { my $admin = eval { open_one() } or return 0; $admin->send($whoami . q( ) x (15 * $MIB) . "\n"); my $answer = $admin->answer; return $answer && $answer->{result} }
        ),
        'once they are gone there is room again'
    );
};

# Sends this text on a connection from a process of its own, since a sender blocks once nobody reads.
sub send_aside {
    my ($admin, $text, $is_last) = @_;
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        $admin->send($text);
        shutdown $admin->socket, 1 if $is_last;
        POSIX::_exit(0);
    }
    return $pid;
}

# Ids of this many answers; the first that is missing ends it.
sub ids {
    my ($admin, $count) = @_;
    my @ids;
    while (@ids < $count) {
        my $line = $admin->line;
        last if !defined $line || $line !~ /"id":(\d+),/;
        push @ids, $1;
    }
    return \@ids;
}

subtest 'a peer that does not read holds up nobody but itself' => sub {
    my $deaf = open_one();
    my $one = length MCP::Json::encode($deaf->ask('rpc.describe', undef, 0));
    my $count = 400;
    my $before = rss_mib();
    my $text = join q(), map { $deaf->request('rpc.describe', undef, $_) } 1 .. $count;
    my $pid = send_aside($deaf, $text);
    still_serves('others are served') for 1 .. 20;
    cmp_ok(rss_mib() - $before, '<', 64, sprintf 'answers do not pile up (%.0f MiB would)', $count * $one / $MIB)
        if !MCP::Build::sanitized();
    is_deeply(ids($deaf, $count), [1 .. $count], 'when it reads it gets all of them');
    waitpid $pid, 0;
    $deaf = open_one();
    $pid = send_aside($deaf, $text, 1);
    is_deeply(ids($deaf, $count), [1 .. $count], 'also when it has closed its end behind the last');
    ok($deaf->has_ended, 'and then it ends');
    waitpid $pid, 0;
};

subtest 'one user has at most 16 connections' => sub {
    my @held = map { open_one() } 1 .. 16;
    is_deeply([map { $_->ask('whoami__get')->{result}{label} } @held], [($me) x 16], '16 are served');
    my $more = open_one();
    my $answer = $more->answer;
    is($answer->{error}{data}{code}, 'overloaded', 'the 17th is told so');
    ok(length $answer->{error}{data}{hint}, 'and what to do');
    ok($more->has_ended, 'and closed');
    like(MCP::Root::slurp($policyd->log), qr/ PD1203: /, 'which the log tells');
    is($held[0]->ask('whoami__get')->{result}{label}, $me, 'the others stay');
    my ($status, $out, $err) = $policyd->run_ctl('whoami');
    is($status, 1, 'policyctl fails then');
    like($err, qr/^policyctl: overloaded: too many connections\nhint: /, 'and says why');
    close((pop @held)->socket);
    ok(MCP::Net::wait_for(sub { my ($result) = call('whoami__get'); return $result }), 'one less, and there is room');
};

subtest 'all users together have at most 64' => sub {
    plan skip_all => 'takes root, to be several users' if !$is_root;
    my (@gates, @pids);
    for my $uid (@uids[0 .. 3]) {
        pipe my $ready, my $tell or die "pipe: $!\n";
        pipe my $gate, my $latch or die "pipe: $!\n";
        my $pid = fork;
        die "fork: $!\n" if !defined $pid;
        if ($pid == 0) {
            close $latch;
            $) = "$group $group";
            POSIX::setgid($group);
            POSIX::setuid($uid);
            my @held = map { eval { open_one() } } 1 .. 16;
            syswrite $tell, scalar(@held) . "\n";
            sysread $gate, my $byte, 1;
            POSIX::_exit(0);
        }
        close $tell;
        close $gate;
        push @pids, $pid;
        push @gates, $latch;
        is(scalar <$ready>, "16\n", "uid $uid holds 16");
    }
    my ($result, $error) = call('whoami__get');
    is($error->{code}, 'overloaded', 'the 65th is refused, whoever it is');
    @gates = ();
    waitpid $_, 0 for @pids;
    ok(MCP::Net::wait_for(sub { my ($found) = call('whoami__get'); return $found }), 'when they leave there is room');
};

subtest 'the kernel says who asks' => sub {
    plan skip_all => 'takes root, to be unix:0 and others' if !$is_root;
    my $mark = mark();
    my ($result) = call('whoami__get');
    is_deeply([@{$result}{qw(label surface)}, $result->{roles}], ['unix:0', 'admin', ['Owner']], 'root is unix:0, an Owner');
    ok(!exists $result->{member}, 'and no member');
    my ($row) = rows_after($mark);
    is_deeply([@{$row}{qw(actor role member_id surface client via)}], ['unix:0', 'Owner', undef, 'admin', 'policyctl', 'direct'], 'so it is recorded');

    my ($member) = call('members__get', { member => 'member@example.org' });
    ($result) = MCP::Admin::as($mapped, $group, sub { call('whoami__get') });
    is_deeply([@{$result}{qw(label member email surface)}, $result->{roles}],
        ["unix:$mapped", $member->{member}, 'member@example.org', 'admin', ['Member']], 'a mapped uid is its member');
    $mark = mark();
    my (undef, $error) = MCP::Admin::as($mapped, $group, sub { call('members__create', { email => 'x@example.org', name => 'X', roles => ['Owner'] }) });
    is($error->{code}, 'permission_denied', 'and is refused what the roles lack');
    like($error->{message}, qr/member:write/, 'by the name of the permission');
    my @rows = rows_after($mark);
    is(scalar @rows, 1, 'one row');
    is_deeply(
        [@{ $rows[0] }{qw(operation tool outcome error_code actor member_id role classification surface approved detail audit_id)}],
        ['members__create', 'members__create', 'denied', 'permission_denied', "unix:$mapped", $member->{member}, 'Member', 'write', 'admin', 'not_needed', 'lacks=member:write', $error->{audit}],
        'that says who was denied what, and why'
    );
    is_deeply([sort @{ $rows[0]{arg_names} }], [qw(email name roles)], 'with the names of the arguments');
    is((call('members__get', { member => 'x@example.org' }))[1]{code}, 'not_found', 'and nothing has happened');

    ($result) = MCP::Admin::as($uids[1], $group, sub { call('audit__list', { limit => 1 }) });
    is(scalar @{ $result->{items} }, 1, 'an Auditor reads the trail, without tool:execute');
    (undef, $error) = MCP::Admin::as($uids[1], $group, sub { call('settings__set', { key => 'collapse.mode', value => 'never' }) });
    is($error->{code}, 'permission_denied', 'and sets nothing');
};

subtest 'whoever is nobody here is refused, on record' => sub {
    plan skip_all => 'takes root, to be others' if !$is_root;
    call('members__suspend', { member => 'gone@example.org' });
    my ($gone) = call('members__get', { member => 'gone@example.org' });
    for my $case (
        [$uids[0], 'permission_denied', 'a uid without an actor line',            undef],
        [$uids[2], 'permission_denied', 'one whose email is no member\'s',        undef],
        [$uids[3], 'member_suspended',  'one whose member is suspended',          $gone->{member}],
    ) {
        my ($uid, $code, $name, $member) = @$case;
        for my $method (qw(whoami__get members__list members__create)) {
            my $mark = mark();
            my ($result, $error) = MCP::Admin::as($uid, $group, sub { call($method, $method =~ /create/ ? { email => 'y@example.org' } : {}) });
            is($error->{code}, $code, "$name: $method");
            my @rows = rows_after($mark);
            is(scalar @rows, 1, "$name: $method: one row");
            is_deeply([@{ $rows[0] }{qw(operation outcome error_code actor member_id surface)}],
                [$method, 'denied', $code, "unix:$uid", $member, 'admin'], "$name: $method: that says who");
        }
    }
    call('members__remove', { member => 'gone@example.org' });
    my (undef, $error) = MCP::Admin::as($uids[3], $group, sub { call('whoami__get') });
    is($error->{code}, 'permission_denied', 'a removed member is nobody');
    my $refused = MCP::Admin::as($uids[0], (getpwnam 'nobody')[3], sub { return eval { open_one(); 1 } ? 'let in' : "$@" });
    like($refused, qr/Permission denied/, 'who is not in admin_group can not even connect');
};

subtest 'who may do what is read anew for each request of an open connection' => sub {
    plan skip_all => 'takes root, to be others' if !$is_root;
    pipe my $from, my $to or die "pipe: $!\n";
    pipe my $gate, my $latch or die "pipe: $!\n";
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        close $latch;
        $) = "$group $group";
        POSIX::setgid($group);
        POSIX::setuid($uids[1]);
        my $admin = open_one();
        while (1) {
            my $answer = $admin->ask('members__list', {});
            syswrite $to, ($answer->{result} ? 'yes' : $answer->{error}{data}{code}) . "\n";
            last if !sysread $gate, my $byte, 1;
        }
        POSIX::_exit(0);
    }
    close $to;
    close $gate;
    is(scalar <$from>, "yes\n", 'an Auditor lists members');
    my $next = sub { syswrite $latch, '.'; return scalar <$from> };
    call('members__update', { member => 'auditor@example.org', roles => ['Guest'] });
    is($next->(), "permission_denied\n", 'as a Guest no longer, on the same connection');
    call('members__update', { member => 'auditor@example.org', roles => ['Auditor'] });
    is($next->(), "yes\n", 'again when the role is back');
    call('members__suspend', { member => 'auditor@example.org' });
    is($next->(), "member_suspended\n", 'suspended: not');
    call('members__reinstate', { member => 'auditor@example.org' });
    is($next->(), "yes\n", 'reinstated: again');
    $policyd->configure(actor => ["unix:$mapped member\@example.org"]);
    $policyd->reload;
    is($next->(), "permission_denied\n", 'a mapping that is gone after a SIGHUP holds no longer');
    $policyd->configure(actor => ["unix:$uids[1] member\@example.org"]);
    $policyd->reload;
    is($next->(), "permission_denied\n", 'a mapping to another member is that member');
    close $latch;
    waitpid $pid, 0;
};

is($policyd->stop, 0, 'policyd stops');
my @bad = MCP::Log::unexpected([$policyd->log], 'PD1203');
ok(!@bad, 'the log holds nothing unexpected');
diag("  $_") for @bad;

done_testing();
