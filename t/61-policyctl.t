# policyctl: its commands are made of the registry, so every row of that is walked; exit statuses, formats,
# arguments by schema, paging, and what it says when nobody or somebody else answers.

use strict;
use warnings;
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(SOCK_STREAM);
use Test::More;
use MCP::Build;
use MCP::Json;
use MCP::Log;
use MCP::Policyd;
use MCP::Root;

my $root = MCP::Root->new;
my $policyd = MCP::Policyd->new(root => $root)->start;
my $program = MCP::Build::policyctl();
my $socket = $policyd->socket;
my $dash = $root->path('input');

# (status, out, err) of policyctl with these words and nothing added.
sub bare { my ($how, @words) = @_; return MCP::Policyd::capture({ apart => 1, %$how }, $program, @words) }

# With the socket; text for standard input as {in => ...} in front.
sub ctl {
    my $how = ref $_[0] eq 'HASH' ? shift : {};
    return bare($how, '--socket', $socket, @_);
}

sub ok_ctl {
    my ($status, $out, $err) = ctl(@_);
    die "policyctl @_: $status: $err" if $status != 0;
    return MCP::Json::decode($out);
}

# Operations that have a row now, oldest first, without the reading of rows itself.
sub recorded {
    my $answer = $policyd->admin('audit__list', { limit => 1000 });
    return map { $_->{operation} } grep { $_->{operation} ne 'audit__list' } reverse @{ $answer->{result}{items} };
}

my $rows = $policyd->admin('rpc.describe')->{result};
my %of;
push @{ $of{ $_->{resource} } }, $_ for @$rows;

# Text as put_wrapped leaves it, in one line.
sub flat { my ($text) = @_; $text =~ s/\s+/ /g; return $text }

$policyd->ctl(qw(members create), { email => 'owner@example.org', roles => ['Owner'] });

subtest 'without policyd: usage, version, completion and what is wrong' => sub {
    my ($status, $out, $err) = bare({});
    is($status, 2, 'no words: wrong usage');
    is($out, q(), 'nothing on standard output');
    like($err, qr/^usage: policyctl RESOURCE OPERATION/, 'the usage on standard error');
    for my $word (qw(-h --help)) {
        ($status, $out, $err) = bare({}, $word);
        is($status, 0, "$word: done");
        like($out, qr/^usage: policyctl RESOURCE OPERATION/, "$word: the usage on standard output");
        is($err, q(), "$word: no complaint");
    }
    for my $word (qw(-V --version)) {
        ($status, $out) = bare({}, $word);
        is($status, 0, "$word: done");
        like($out, qr/^policyctl \d+\.\d+\.\d+\S*\n\z/, "$word: one line");
    }
    ($status, $out) = bare({}, qw(completion bash));
    is($status, 0, 'completion needs no policyd');
    MCP::Root::write_file($dash, $out);
    is(system('bash', '-n', $dash), 0, 'and is bash');
    ($status, undef, $err) = bare({}, qw(completion zsh));
    is($status, 2, 'a shell that is not known');
    like($err, qr/^policyctl: completion takes the name of a shell: bash$/m, 'says which is');
};

subtest 'a socket where nobody answers' => sub {
    my $nobody = $root->path('nobody.sock');
    for my $words ([qw(members list)], ['whoami'], ['help'], [qw(members create --email a@b)], [qw(no such thing)]) {
        my ($status, $out, $err) = bare({}, '--socket', $nobody, @$words);
        is($status, 1, "@$words: failed");
        is($out, q(), "@$words: no output");
        is($err, "policyctl: policyd can't be reached at $nobody: No such file or directory\n"
                . "hint: is policyd running, and are you in its admin_group? --socket names another socket\n",
            "@$words: says where and what to do");
    }
    MCP::Root::write_file($nobody, q());
    my ($status, undef, $err) = bare({}, '--socket', $nobody, 'whoami');
    is($status, 1, 'a file that is no socket');
    like($err, qr/^policyctl: policyd can't be reached at .*: Connection refused\n/, 'is refused');
    ($status, undef, $err) = bare({}, '--socket', '/' . 'x' x 200, 'whoami');
    is($status, 1, 'a path too long for a socket');
    like($err, qr/is too long for a socket/, 'is named');
    ($status) = bare({ env => { POLICYD_SOCKET => $socket } }, 'whoami');
    is($status, 0, 'POLICYD_SOCKET names the socket');
    ($status) = bare({ env => { POLICYD_SOCKET => $nobody } }, '--socket', $socket, 'whoami');
    is($status, 0, '--socket goes before it');
    ($status) = bare({ env => { POLICYD_SOCKET => $nobody } }, "--socket=$socket", 'whoami');
    is($status, 0, 'and so does --socket=PATH');
};

# A server at a socket of its own that says one text to whoever connects.
sub impostor {
    my ($text) = @_;
    my $path = $root->path('impostor.sock');
    unlink $path;
    my $server = IO::Socket::UNIX->new(Local => $path, Listen => 5, Type => SOCK_STREAM) or die "impostor: $!\n";
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        $SIG{ALRM} = 'DEFAULT';
        alarm 60;
        my $peer = $server->accept;
        my $line = <$peer>;
        print {$peer} $text;
        close $peer;
        POSIX::_exit(0);
    }
    my @answer = bare({}, '--socket', $path, 'whoami');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    return @answer;
}

subtest 'a socket where somebody else answers' => sub {
    for my $case (
        ['garbage',                    "220 mail.example.org ESMTP\n",                   qr/is not policyd/],
        ['nothing',                    q(),                                              qr/did not answer: it closed/],
        ['half a line',                '{"jsonrpc":"2.0"',                               qr/did not answer: it closed/],
        ['an empty object',            "{}\n",                                           qr/is not policyd/],
        ['another id',                 qq({"jsonrpc":"2.0","id":77,"result":[]}\n),      qr/is not policyd/],
        ['a result that is no list',   qq({"jsonrpc":"2.0","id":1,"result":{"a":1}}\n),  qr/is not policyd/],
        ['an error without our data',  qq({"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}\n), qr/internal: m/],
    ) {
        my ($name, $text, $expected) = @$case;
        my ($status, $out, $err) = impostor($text);
        is($status, 1, "$name: failed");
        like($err, $expected, "$name: said so");
        is($out, q(), "$name: no output");
    }
};

subtest 'help lists every resource and every operation' => sub {
    my ($status, $out, $err) = ctl('help');
    is($status, 0, 'help');
    is($err, q(), 'without a complaint');
    for my $resource (sort keys %of) {
        my $verbs = join ', ', map { $_->{verb} } @{ $of{$resource} };
        like($out, qr/^  \Q$resource\E +\Q$verbs\E$/m, "$resource and its operations");
        my ($its, $text) = ctl($resource);
        if (@{ $of{$resource} } == 1 && $of{$resource}[0]{verb} eq 'get') {
            is($its, 0, "$resource alone runs its only operation");
            ($its, $text) = ctl('help', $resource);
            like($text, qr/^policyctl \Q$resource\E get - /, "help $resource is that operation's");
            next;
        }
        is($its, 0, "$resource alone is its help");
        like($text, qr/^  \Q$_->{verb}\E +\Q$_->{title}\E$/m, "$resource $_->{verb} has its title")
            for @{ $of{$resource} };
        my (undef, $help) = ctl('help', $resource);
        is($help, $text, "help $resource says the same");
    }
    for my $words (['help', 'nothing'], ['help', 'members', 'juggle']) {
        ($status, $out, $err) = ctl(@$words);
        is($status, 2, "@$words: wrong usage");
        like($err, qr/^policyctl: there is no such resource or operation$/m, "@$words: says so");
    }
};

subtest 'every row has help that says all about it' => sub {
    cmp_ok(scalar @$rows, '>=', 30, 'the registry has rows: ' . @$rows);
    for my $row (@$rows) {
        my ($resource, $verb) = @{$row}{qw(resource verb)};
        my ($status, $out, $err) = ctl($resource, $verb, '--help');
        is("$status $err", '0 ', "$row->{name}: --help");
        my (undef, $same) = ctl('help', $resource, $verb);
        is($same, $out, "$row->{name}: help $resource $verb is the same");
        like($out, qr/^policyctl \Q$resource $verb - $row->{title}\E$/m, "$row->{name}: title");
        my $text = flat($out);
        like($text, qr/\Q@{[ flat($row->{description}) ]}\E/, "$row->{name}: description");
        like($out, qr{^REST: +\Q$row->{rest}{method} /api/v1$row->{rest}{path}\E$}m, "$row->{name}: REST");
        my $permission = defined $row->{permission} ? $row->{permission} : 'none; any active member';
        like($out, qr/^Permission: \Q$permission\E$/m, "$row->{name}: permission");
        like($out, qr/^Class: +\Q$row->{classification}\E$/m, "$row->{name}: class");
        is(scalar($out =~ /^Secret:/m) ? 1 : 0, $row->{secret} eq 'no' ? 0 : 1, "$row->{name}: secret or not");
        my %required = map { $_ => 1 } @{ $row->{schema}{required} || [] };
        for my $name (sort keys %{ $row->{schema}{properties} }) {
            (my $flag = $name) =~ tr/_/-/;
            my ($line) = $out =~ /^(  --\Q$flag\E .*)$/m;
            ok(defined $line, "$row->{name}: --$flag") or next;
            is($line =~ /\(required\)/ ? 1 : 0, $required{$name} ? 1 : 0, "$row->{name}: --$flag required or not");
            my $what = $row->{schema}{properties}{$name}{description};
            like($text, qr/\Q@{[ flat($what) ]}\E/, "$row->{name}: --$flag described") if defined $what;
        }
        ok(defined $row->{title} && length $row->{title} < 40 && $row->{description} =~ /\.$/,
            "$row->{name}: texts have their form");
    }
};

subtest 'every row is reachable, and leaves one row of its own' => sub {
    for my $row (@$rows) {
        next if $row->{name} eq 'audit__list';    # what recorded() itself asks
        my @before = recorded();
        my ($status, $out, $err) = ctl({ in => '{}' }, $row->{resource}, $row->{verb}, qw(--json - -o json));
        my @required = @{ $row->{schema}{required} || [] };
        if (@required) {
            is($status, 1, "$row->{name} without arguments is refused by policyd");
            like($err, qr/^policyctl: invalid_request: /, "$row->{name}: for its arguments");
            like($err, qr/^audit: \d+-\d+$/m, "$row->{name}: with the row's id");
        } else {
            is($status, 0, "$row->{name} runs");
            is(ref eval { MCP::Json::decode($out) }, 'HASH', "$row->{name}: answers an object");
        }
        my @after = recorded();
        is_deeply([@after[@before .. $#after]], [$row->{name}], "$row->{name}: one row more");
    }
    my ($status, $out) = ctl(qw(audit list -o json));
    is($status, 0, 'audit__list runs');
    my ($first, $second) = map { ok_ctl(@$_)->{member} || ok_ctl(@$_)->{label} }
        [qw(whoami -o json)], [qw(whoami get -o json)];
    is($first, $second, 'whoami is whoami get');
};

subtest 'completion knows the registry' => sub {
    my $words = sub { my ($status, $out) = ctl(qw(completion words --), @_); return split /\n/, $out };
    is_deeply([sort($words->())], [sort(keys %of, qw(export apply help completion))], 'first word: resources, export, apply, help, completion');
    for my $resource (sort keys %of) {
        my @more = $resource eq 'connectors' ? qw(convert add catalog) : ();    # commands that no operation has the name of
        is_deeply([$words->($resource)], [(map { $_->{verb} } @{ $of{$resource} }), @more], "second word: those of $resource");
    }
    for my $row (@$rows) {
        my @flags = map { tr/_/-/r } sort keys %{ $row->{schema}{properties} };
        my %has = map { $_ => 1 } $words->(@{$row}{qw(resource verb)});
        is_deeply([grep { !$has{"--$_"} } @flags, 'json', 'all', 'help'], [], "flags of $row->{name}");
    }
    is_deeply([$words->(qw(members juggle))], [], 'an operation that nobody has: no flags');

    # as bash does it
    my (undef, $script) = bare({}, qw(completion bash));
    (my $dir = $program) =~ s{/[^/]*$}{};
    my $complete = sub {
        my @line = @_;
        my $quoted = join q( ), map { "'$_'" } @line;
        MCP::Root::write_file($dash, "$script\nCOMP_WORDS=($quoted)\nCOMP_CWORD=$#line\n_policyctl\n"
                . "printf '%s\\n' \"\${COMPREPLY[\@]}\"\n");
        my (undef, $out) = MCP::Policyd::capture(
            { env => { POLICYD_SOCKET => $socket, PATH => "$dir:$ENV{PATH}" }, apart => 1 }, 'bash', $dash);
        return [split /\n/, $out];
    };
    is_deeply($complete->('policyctl', 'mem'), ['members'], 'policyctl mem<tab>');
    is_deeply($complete->('policyctl', 'members', 're'), [qw(reinstate remove)], 'policyctl members re<tab>');
    is_deeply($complete->('policyctl', 'members', 'create', '--em'), ['--email'], 'policyctl members create --em<tab>');
};

subtest 'exit status 1: refused, with code, hint and audit id' => sub {
    my ($status, $out, $err) = ctl(qw(members get nobody@example.org));
    is($status, 1, 'what is not there');
    is($out, q(), 'nothing on standard output');
    like($err, qr/\Apolicyctl: not_found: [^\n]+\nhint: [^\n]+\naudit: (\d+-\d+)\n\z/, 'three lines');
    my ($id) = $err =~ /^audit: (\S+)/m;
    my $row = ok_ctl(qw(audit get -o json), $id);
    is("$row->{operation} $row->{outcome} $row->{error_code}", 'members__get error not_found', 'the row of that id');
    ($status, undef, $err) = ctl(qw(members create --email a@b.org --roles), 'No such');
    is($status, 1, 'what policyd does not take');
    ($status, undef, $err) = ctl(qw(settings set --key collapse.threshold --value many));
    is($status, 1, 'a value that the setting does not take');
    like($err, qr/^policyctl: invalid_request: collapse\.threshold takes an integer/, 'named');
    ($status, undef, $err) = MCP::Policyd::capture({ apart => 1 }, 'sh', '-c', "$program --socket $socket whoami >/dev/full");
    is($status, 1, 'output that can not be written');
    like($err, qr/^policyctl: standard output can't be written$/m, 'is no success');
};

subtest 'exit status 2: wrong usage, and policyd is asked nothing' => sub {
    my @before = recorded();
    $root->write('list.json',  '[1]');
    $root->write('bad.json',   '{"email":');
    $root->write('twice.json', '{"email":"a@b.org","email":"c@d.org"}');
    for my $case (
        [qr/there is no operation nothing/,         qw(nothing list)],
        [qr/there is no operation members juggle/,  qw(members juggle)],
        [qr/there is no operation audit/,           qw(audit --outcome ok)],
        [qr/there is no flag --colour here/,        qw(members create --colour red)],
        [qr/there is no flag --email here/,         qw(whoami --email a@b.org)],
        [qr/--email needs a value/,                 qw(members create --email)],
        [qr/--email needs a value/,                 qw(members create --email --name X)],
        [qr/--email is given twice/,                qw(members create --email a@b.org --email c@d.org)],
        [qr/--limit takes INTEGER/,                 qw(members list --limit ten)],
        [qr/--limit takes INTEGER/,                 qw(members list --limit 1.5)],
        [qr/--limit takes INTEGER/,                 qw(members list --limit=)],
        [qr/--shared takes true\|false/,            qw(connections list --shared=perhaps)],
        [qr/--variables takes JSON, or --variables\.KEY VALUE/, qw(connections update x --variables text)],
        [qr/--items takes KEY=VALUE,\.\.\. or JSON, once for each element; its keys: connector, operation, tool/,
            qw(restrictions create --items crm)],
        [qr/--items is a list: write --items KEY=VALUE,/, qw(restrictions create --items.connector crm)],
        [qr/--items has no key "conector"/,         qw(restrictions create --items conector=crm)],
        [qr/--items is not JSON without duplicate keys \(near byte \d+\)/, qw(restrictions create --items {"connector":)],
        [qr/--target has no key "rol"; its keys: role, member/, qw(restrictions create --target.rol Member)],
        [qr/arguments are --key value, or --json FILE/, qw(connectors create shop.json)],
        [qr/is one word too many/,                  qw(members get one@b.org two@b.org)],
        [qr/is one word too many/,                  qw(members list one)],
        [qr/-o takes table, json, jsonl or csv/,    qw(members list -o xml)],
        [qr/--socket needs a value/,                qw(members list --socket)],
        [qr/--json needs a value/,                  qw(members list --json)],
        [qr/--member\.b goes into a value that is no object/, qw(members get --member a --member.b c)],
        [qr/is not a JSON object/,                  qw(members create --json), $root->path('list.json')],
        [qr/is not JSON/,                           qw(members create --json), $root->path('bad.json')],
        [qr/without duplicate keys/,                qw(members create --json), $root->path('twice.json')],
        [qr/can't be read: No such file/,           qw(members create --json), $root->path('none.json')],
        [qr/can't be read: Is a directory/,         qw(members create --json), $root->path],
        [qr/is not UTF-8/,                          qw(members create --name), "\xff"],
    ) {
        my ($expected, @words) = @$case;
        my ($status, $out, $err) = ctl(@words);
        is($status, 2, "@words: wrong usage");
        is($out, q(), "@words: no output");
        like($err, $expected, "@words: says why");
        like($err, qr/^policyctl: .*\nTry `policyctl help(?: \w+){0,2}`\.\n\z/, "@words: in two lines");
        my ($resource, $verb) = @words;
        my $help = $verb =~ /^(?:juggle|--outcome)$/ ? " $resource" : $expected =~ /no operation|takes table|--(?:socket|json) needs/ ? q() : " $resource" . ($verb =~ /^-/ ? ' get' : " $verb");
        like($err, qr/^Try `policyctl help\Q$help\E`\.$/m, "@words: and where to read on");
    }
    is_deeply([recorded()], \@before, 'no row was left by any of them');
};

subtest 'values become what the schema says' => sub {
    my $set = sub {
        my ($key, @value) = @_;
        my ($status, $out, $err) = ctl(qw(settings set --key), $key, @value, qw(-o json));
        return $status == 0 ? MCP::Json::encode(MCP::Json::decode($out)->{value}) : $err;
    };
    is($set->('collapse.threshold', '--value', '40'), '40', 'digits are an integer where one may stand');
    is($set->('collapse.threshold', '--value=41'), '41', 'also with =');
    is($set->('collapse.mode', '--value', 'never'), '"never"', 'a word is text');
    like($set->('collapse.mode', '--value', '"never"'), qr/"never"|invalid_request/, 'JSON text is text');
    my $member = ok_ctl(qw(members create --email 12345@example.org --name 12345 -o json));
    is(MCP::Json::encode($member->{name}), '"12345"', 'digits are text where only text may stand');
    $member = ok_ctl(qw(members create --email t@example.org --name=--true -o json));
    is($member->{name}, '--true', 'a value that begins with dashes, after =');
    is_deeply($member->{roles}, ['Member'], 'an argument left out takes its default');
    $member = ok_ctl(qw(members update t@example.org --roles), 'Member,Auditor', qw(-o json));
    is_deeply($member->{roles}, [qw(Member Auditor)], 'a list by commas');
    $member = ok_ctl(qw(members update t@example.org --roles Guest --roles Auditor -o json));
    is_deeply($member->{roles}, [qw(Guest Auditor)], 'a list by repeating');
    $member = ok_ctl(qw(members update t@example.org --roles), '["Billing Admin"]', qw(-o json));
    is_deeply($member->{roles}, ['Billing Admin'], 'a list as JSON');
    $member = ok_ctl(qw(members update t@example.org --if-revision), $member->{revision}, qw(--name N -o json));
    is($member->{name}, 'N', 'dashes stand for underscores');
    $member = ok_ctl(qw(members update t@example.org --if_revision), $member->{revision}, qw(--name M -o json));
    is($member->{name}, 'M', 'and underscores for themselves');
    my $grant = ok_ctl(qw(grants create --member t@example.org --client c --resource https://a.example/mcp --expires-in 90 -o json));
    like($grant->{expires_at}, qr/^20/, 'seconds, where integer or text may stand');
    $grant = ok_ctl(qw(grants create --member t@example.org --client c --resource https://a.example/mcp --expires-in 12h -o json));
    like($grant->{expires_at}, qr/^20/, 'a span there');
    $member = ok_ctl(qw(members remove t@example.org --erase -o json));
    ok(!exists $member->{email}, 'a flag alone is true');
    my $list = ok_ctl(qw(connections list --shared false -o json));
    is_deeply($list->{items}, [], 'a word behind a flag of true or false');
};

my $file = {
    slug       => 'shop',
    label      => 'Shop',
    base_url   => 'https://{host}/api',
    variables  => { host => { pattern => '[a-z.]+', default => 'a.example' }, unused => { default => 'x' } },
    auth       => { type => 'bearer' },
    operations => [
        { id => 'list', method => 'GET', path => '/items', description => 'Lists items.', parameters => [] }
    ]
};
delete $file->{variables}{unused};

subtest '--json FILE, --json -, and flags over them' => sub {
    my $path = $root->write('shop.json', MCP::Json::encode($file));
    my $made = ok_ctl(qw(connectors create --json), $path, qw(-o json));
    is("$made->{slug} $made->{operations}", 'shop 1', 'arguments of a file');
    $made = ok_ctl({ in => MCP::Json::encode({ connector => 'shop', label => 'one', shared => MCP::Json::true() }) },
        qw(connections create --json - -o json));
    is($made->{label}, 'one', 'of standard input');
    $made = ok_ctl(
        { in => MCP::Json::encode({ connector => 'shop', label => 'two', shared => MCP::Json::true(), variables => { host => 'b.example' } }) },
        qw(connections create --json=- --label three --variables.host c.example -o json)
    );
    is("$made->{label} $made->{variables}{host}", 'three c.example', 'a flag replaces, a dotted one changes one key');
    my $email = $root->write('m.json', '{"email":"j@example.org","roles":["Guest"]}');
    my $member = ok_ctl(qw(members create --json), $email, qw(--roles Auditor -o json));
    is_deeply($member->{roles}, ['Auditor'], 'a list given as a flag is the whole list');
    my ($status, $out, $err) = ctl({ in => '{"email":"k@example.org","colour":"red"}' }, qw(members create --json -));
    is($status, 1, 'an argument that the schema does not know');
    like($err, qr/^policyctl: invalid_request: .*colour/, 'is policyd\'s to refuse, by name');
    my ($other) = ctl({ in => q() }, qw(members create --json -));
    is($other, 2, 'empty input');
};

subtest 'rules and toolboxes without JSON' => sub {
    my $rule = ok_ctl(qw(restrictions create --effect block --name no-list --target role=Member --items), 'connector=shop,operation=list',
        qw(--items tool=one__list -o json));
    is_deeply($rule->{target}, { role => 'Member' }, 'an object by key=value');
    is_deeply([map { $_->{tool} // "$_->{slug}/$_->{operation}" } @{ $rule->{items} }], [qw(shop/list one__list)], 'a list of objects, one a flag');
    my $box = ok_ctl(qw(toolboxes create --name box --roles Member --entries),
        'connector=shop,operation=list,connections=one,three,name=all,always_visible=true', qw(-o json));
    my ($entry) = @{ $box->{entries} };
    is_deeply([@{$entry}{qw(tool connections)}, $entry->{always_visible} ? 1 : 0], ['box__all', [qw(one three)], 1], 'a list within');
    my ($status, $out) = ctl(qw(restrictions list));
    like($out, qr{^no-list +block +role Member +shop/list, one__list +rst_}m, 'a list of rules says whom they are for and what they name');
    ($status, $out) = ctl(qw(toolboxes get box));
    like($out, qr/^  box__all +shop +list +one,three +/m, 'and an entry its connections');
    ($status, $out) = ctl(qw(toolboxes list --connector shop -o csv));
    like($out, qr/,box,/, 'toolboxes of a connector');
    ($status, $out) = ctl(qw(restrictions explain owner@example.org --tool one__list));
    like($out, qr{\Aowner\@example\.org can have one__list \(shop/list\)\nRoles: Owner\nRules: none}, 'explain begins with the answer');
    ($status, $out) = ctl(qw(restrictions delete no-list --dry-run));
    like($out, qr/\ADry run, nothing is changed\. It would be:\n.*^(?:Nobody gains or loses a tool|Members touched: \d+)/ms, 'a dry run says so, and who is touched');
    my ($left) = ctl(qw(restrictions get no-list));
    is($left, 0, 'the rule is still there');
};

subtest 'what get shows can be sent back' => sub {
    my %of = (
        restrictions => ['no-list',           'note',        'target'],
        toolboxes    => ['box',               'description', 'emails'],
        connections  => ['three',             'label',       'base'],
        members      => ['owner@example.org', 'name',        'state'],
    );
    for my $resource (sort keys %of) {
        my ($name, $key, $fixed) = @{ $of{$resource} };
        my $shown = ok_ctl($resource, 'get', $name, qw(-o json));
        my $edited = ok_ctl({ in => MCP::Json::encode({ %$shown, $key => 'again' }) }, $resource, qw(update --json - -o json));
        is($edited->{$key}, 'again', "$resource: a key is changed");
        is_deeply({ map { $_ => $edited->{$_} } grep { !/^(?:$key|revision|updated_at|warnings)$/ } keys %$edited },
            { map { $_ => $shown->{$_} } grep { !/^(?:$key|revision|updated_at|warnings)$/ } keys %$shown }, "$resource: and nothing else");
        my ($status, undef, $err) = ctl({ in => MCP::Json::encode({ %$shown, $key => 'late' }) }, $resource, qw(update --json -));
        is($status, 1, "$resource: not a second time");
        like($err, qr/^policyctl: revision_mismatch: /, "$resource: since it is another now");
        my $now = ok_ctl($resource, 'get', $edited->{ { restrictions => 'restriction', toolboxes => 'toolbox', connections => 'connection', members => 'member' }->{$resource} }, qw(-o json));
        ($status, undef, $err) = ctl({ in => MCP::Json::encode({ %$now, $fixed => 'other' }) }, $resource, qw(update --json -));
        is($status, 2, "$resource: $fixed is not what an update changes");
        like($err, qr/^policyctl: update doesn't change \Q$fixed\E; leave it out, or as get shows it\n/, "$resource: and says so");
        ($status, undef, $err) = ctl({ in => MCP::Json::encode({ %$now, colour => 'red' }) }, $resource, qw(update --json -));
        is($status, 1, "$resource: a key that nobody knows");
        like($err, qr/colour/, "$resource: is refused by its name");
    }
    my ($status, undef, $err) = ctl({ in => '{"member":"nobody@example.org","state":"active"}' }, qw(members update --json -));
    is($status, 1, 'what is not there');
    like($err, qr/^policyctl: not_found: /, 'is not found');
    ok_ctl(qw(connections update again --label three -o json));
    ok_ctl(qw(toolboxes delete box -o json));
    ok_ctl(qw(restrictions delete no-list -o json));
};

subtest 'formats: table, json, jsonl, csv' => sub {
    my $evil = "a, \"b\" \x{1b}[31m\x{202e}c\nd";
    $policyd->admin('members__create', { email => 'evil@example.org', name => $evil });
    my $table = (ctl(qw(members list)))[1];
    my @lines = split /\n/, $table;
    like($lines[0], qr/^MEMBER +EMAIL +/, 'a table has a header of the names');
    unlike($table, qr/\x1b|\x{e2}\x{80}\x{ae}/, 'and nothing that a terminal would obey');
    like($table, qr/a, "b" \\u001b\[31m\\u202ec\\u000ad/, 'but shows it');
    my ($at) = index $lines[0], 'EMAIL';
    is((grep { substr($_, $at - 2, 2) ne q(  ) || substr($_, $at, 1) eq q( ) } @lines[1 .. $#lines]), 0, 'columns are aligned');
    is((ctl(qw(members list -o table)))[1], $table, '-o table is the default');

    my $data = ok_ctl(qw(members list -o json));
    my ($member) = grep { $_->{email} eq 'evil@example.org' } @{ $data->{items} };
    is($member->{name}, $evil, 'JSON has it as it is');
    is_deeply(ok_ctl(qw(members list --output json)), $data, '--output is -o');
    is_deeply($data, $policyd->admin('members__list')->{result}, 'and is what the socket answers');

    my @jsonl = split /\n/, (ctl(qw(members list -o jsonl)))[1];
    is_deeply([map { MCP::Json::decode($_) } @jsonl], $data->{items}, 'JSONL: an item a line');

    my $csv = (ctl(qw(members list -o csv)))[1];
    my ($head, $rest) = $csv =~ /\A([^\r\n]*)\r\n(.*)\z/s;
    my @names = split /,/, $head;
    my @cells;
    while (length $rest) {    # RFC 4180
        my @row;
        while ($rest =~ s/\A(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)//) {
            my ($quoted, $plain, $end) = ($1, $2, $3);
            $quoted =~ s/""/"/g if defined $quoted;
            push @row, defined $quoted ? $quoted : $plain;
            last if $end ne q(,);
        }
        push @cells, \@row;
        last if !@row;
    }
    is(scalar @cells, scalar @{ $data->{items} }, 'CSV: a record a row');
    is((grep { @$_ != @names } @cells), 0, 'of as many fields as the header');
    my ($column) = grep { $names[$_] eq 'email' } 0 .. $#names;
    my ($name) = grep { $names[$_] eq 'name' } 0 .. $#names;
    my ($roles) = grep { $names[$_] eq 'roles' } 0 .. $#names;
    my ($record) = grep { $_->[$column] eq 'evil@example.org' } @cells;
    utf8::encode(my $bytes = $evil);
    is($record->[$name], $bytes, 'with quotes, commas and line ends as they are');
    is($record->[$roles], '["Member"]', 'a nested value is JSON');

    my $one = (ctl(qw(members get owner@example.org)))[1];
    like($one, qr/^email +owner\@example\.org$/m, 'one object is keys and values');
    like($one, qr/^roles +Owner$/m, 'with lists of words as words');
    my ($status, $out, $err) = ctl(qw(connections list --query nothing-like-it));
    is("$status $out", "0 (none)\n", 'an empty list says so');
};

subtest '--all fetches every page, once' => sub {
    my $count = 250;
    $policyd->admin('members__create', { email => sprintf('p%03d@example.org', $_) }) for 1 .. $count;
    my ($status, $out, $err) = ctl(qw(members list));
    is($status, 0, 'the first page');
    my ($cursor) = $err =~ /^more follows: --all fetches it, or --cursor (mem_\w+)$/m;
    ok(defined $cursor, 'says that more follows, on standard error');
    my $first = ok_ctl(qw(members list -o json));
    is($first->{next_cursor}, $cursor, 'the cursor of the answer');
    my $second = ok_ctl(qw(members list -o json --cursor), $cursor);
    my %seen = map { $_->{member} => 1 } @{ $first->{items} };
    is((grep { $seen{ $_->{member} } } @{ $second->{items} }), 0, 'the second page repeats nothing');
    for my $limit ([], [qw(--limit 7)], [qw(--limit 1000)]) {
        my $all = ok_ctl(qw(members list --all -o json), @$limit);
        my @emails = grep { /^p\d+\@/ } map { $_->{email} } @{ $all->{items} };
        is_deeply([sort @emails], [map { sprintf 'p%03d@example.org', $_ } 1 .. $count], "--all @$limit: all of them, once");
        ok(!exists $all->{next_cursor}, "--all @$limit: and no cursor");
    }
    my @lines = split /\n/, (ctl(qw(members list --all --limit 50 --query p0 -o jsonl)))[1];
    is(scalar @lines, 99, '--all with a filter');
    my $roles = ok_ctl(qw(roles list --all --limit 1 -o json));
    is(scalar @{ $roles->{items} }, scalar @{ ok_ctl(qw(roles list -o json))->{items} }, 'a list of two kinds of items pages too');
    my $settings = ok_ctl(qw(settings list --all --limit 2 -o json));
    is(scalar @{ $settings->{items} }, scalar @{ ok_ctl(qw(settings list -o json))->{items} }, 'and settings');
    my $audit = ok_ctl(qw(audit list --all --limit 100 --operation members__create -o json));
    my %ids = map { $_->{audit_id} => 1 } @{ $audit->{items} };
    is(scalar keys %ids, scalar @{ $audit->{items} }, 'audit --all has no row twice');
    cmp_ok(scalar keys %ids, '>=', $count, 'and all of them');
    ($status, undef, $err) = ctl(qw(members list --cursor con_x));
    is($status, 1, 'a cursor of another list');
    like($err, qr/^policyctl: invalid_request: cursor is not one that this list gave/, 'is refused');
    is((ctl(qw(whoami --all)))[0], 0, '--all where there are no pages does no harm');
};

subtest 'a secret is shown once, or never' => sub {
    my $password = 'pass-phrase-5eCr3t';
    my ($status, $out, $err) = ctl(qw(grants create --member owner@example.org --client laptop --resource https://a.example/mcp));
    my ($token) = $out =~ /^token +(mcp_[\w-]{43})$/m;
    ok(defined $token, 'the token stands in the answer that makes it') or return;
    my ($grant) = $out =~ /^grant +(gra_\w+)$/m;
    ok_ctl(qw(connections create --connector shop --label hidden --shared --credential.token), $password, qw(-o json));
    my @outputs = map { (ctl(@$_))[1] } (
        [qw(grants get), $grant], [qw(grants get -o json), $grant], [qw(grants list --all -o json)],
        [qw(grants list -o csv)], [qw(connections get hidden -o json)], [qw(connections list --all -o json)],
        [qw(connections list -o csv)], [qw(audit list --all -o json)], [qw(connectors get shop -o json)],
        [qw(grants revoke -o json), $grant], [qw(whoami -o json)]
    );
    is((grep { length == 0 } @outputs), 0, 'all of these answer something');
    is((grep { /\Q$token\E/ } @outputs), 0, 'the token is in none of them');
    is((grep { /\Q$password\E/ } @outputs), 0, 'nor is the credential');
    is((grep { /token_key|"token"/ } @outputs), 0, 'nor anything derived from the token');
    my $log = MCP::Root::slurp($policyd->log);
    unlike($log, qr/\Q$token\E|\Q$password\E/, 'nor in the log, at debug');
    ($status, undef, $err) = ctl(qw(connections create --connector shop --label again --shared --credential.secret), $password);
    is($status, 1, 'a credential of another form');
    unlike($err, qr/\Q$password\E/, 'is refused without repeating it');
    ($status, undef, $err) = ctl(qw(connections create --connector shop --label again --credential), $password);
    unlike($err, qr/\Q$password\E/, 'also by policyctl itself');
};

subtest 'policyd goes while policyctl is there' => sub {
    is($policyd->stop, 0, 'policyd stops');
    my ($status, $out, $err) = ctl('whoami');
    is($status, 1, 'nobody answers');
    like($err, qr/^policyctl: policyd can't be reached at \Q$socket\E: No such file or directory$/m, 'and the socket is gone');
};

my @bad = MCP::Log::unexpected([$policyd->log]);
ok(!@bad, 'the log holds nothing unexpected');
diag("  $_") for @bad;

done_testing();
