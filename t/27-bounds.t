# Bounds and leaks: a redirect that echoes a credential, batches whose daemon goes away or whose answers are too many, JSON
# that would become gigabytes of tree, clients that send slowly or leave over TLS, and the counters of what leaves no row.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Find ();
use IO::Select;
use POSIX ();
use Test::More;
use Time::HiRes ();
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Later;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts result verdict);

use constant {
    POLICY_S   => 1,          # MCPPolicyTimeout
    CALL_S     => 3,          # MCPCallTimeout
    BODY_S     => 20,         # a body that comes slowly
    SLACK_S    => 8,          # for a busy machine
    GONE_S     => 2,          # until a client that left is noticed
    THREADS    => 6,
    LARGE      => 1_700_000,  # bytes of an answer of which two fill a batch
    GROWTH_KIB => 40 * 1024
};

my $mpm = $ENV{MCP_TEST_MPM} || 'event';
my @v1 = ('MCP-Protocol-Version' => '2025-03-26');
my $junk = 'mcp_' . 'A' x 43;

sub now { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

# --- clients that send slowly: a gateway of their own, whose every thread they hold, beside all that follows ------------

my $crowded = MCP::Stack->new(
    webdav   => 0,
    location => 'MCPMaxBody 8M',
    server   => $mpm eq 'prefork'
    ? "StartServers @{[THREADS]}\nServerLimit @{[THREADS]}\nMaxRequestWorkers @{[THREADS]}\nTimeout 300\n"
    : "StartServers 1\nServerLimit 1\nThreadsPerChild @{[THREADS]}\nMaxRequestWorkers @{[THREADS]}\n"
        . "MinSpareThreads 1\nMaxSpareThreads @{[THREADS]}\nTimeout 300\n"
);
MCP::Root::write_file($crowded->root->path('htdocs', 'static.txt'), "served\n");

# What a slow client says in its header, and then each second.
my @slow = (
    [ 'a byte of its length each second',    'Content-Length: 4000000',    sub { 'x' } ],
    [ 'another one',                         'Content-Length: 4000000',    sub { 'x' } ],
    [ 'a chunk each second',                 'Transfer-Encoding: chunked', sub { "1\r\nx\r\n" } ],
    [ 'a byte of a chunk line each second',  'Transfer-Encoding: chunked', sub { $_[0] ? 'x' : '1;' } ],
    [ 'a byte of a trailer each second',     'Transfer-Encoding: chunked', sub { $_[0] ? 'x' : "1\r\nx\r\n0\r\nT: " } ],
    [ 'nothing after the header',            'Content-Length: 4000000',    sub { q() } ]
);

# Sends until there is an answer or an end: its status, 'closed', or 'held' when the patience is over.
sub dawdle {
    my ($length, $piece) = @_;
    my $client = MCP::Client->new(url => $crowded->url);
    my $socket = $client->connect;
    my $end = now() + BODY_S + SLACK_S;
    $client->send_bytes("POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $junk\r\nContent-Type: application/json\r\n$length\r\n\r\n");
    for (my $n = 0; now() < $end; $n++) {
        $client->send_bytes($piece->($n));
        next if !IO::Select->new($socket)->can_read(1);
        my $answer = $client->take_answer;
        return { status => $answer ? $answer->{status} : 'closed' };
    }
    return { status => 'held' };
}

my @dawdlers = map { my (undef, @how) = @$_; MCP::Later->start(sub { return dawdle(@how) }) } @slow;

# Asks for the file until it is not answered at once, and waits for that answer then.
my $visitor = MCP::Later->start(
    sub {
        my $client = MCP::Client->new(url => $crowded->url);
        for (1 .. 100) {
            my $began = now();
            my $socket = $client->connect;
            $client->send_bytes("GET /static.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            my $was_held = !IO::Select->new($socket)->can_read(0.5);
            my $answer = $client->take_answer;
            return { was_held => $was_held, waited => now() - $began, body => $answer ? $answer->{body} : 'no answer' } if $was_held;
            $client->hang_up;
        }
        return { was_held => 0, waited => 0, body => 'always answered at once' };
    }
);

# --- the gateway of all others -------------------------------------------------------------------------------------------

my $openssl = (grep { -x } map { "$_/openssl" } split /:/, $ENV{PATH})[0];
my $has_ssl = defined $openssl && -e MCP::Build::modules() . '/mod_ssl.so';
my $tls_port = MCP::Net::free_port();

my $root = MCP::Root->new;
my $hold = $root->path('hold');
my $secret = 'PLANTED' . join q(), map { sprintf '%08x', int rand 2**32 } 1 .. 3;
my $elsewhere = MCP::Upstream->start(root => $root);
my $away = $elsewhere->origin;

# Where /moved/NAME points, by the target that was asked for.
my %moved = (
    echo_302  => sub { [ 302, "$away$_[0]" ] },
    echo_301  => sub { [ 301, "$away$_[0]" ] },
    echo_307  => sub { [ 307, "$away$_[0]" ] },
    fragment  => sub { [ 302, "$away/x#key=$secret" ] },
    user      => sub { [ 302, "http://user:$secret\@127.0.0.1:1/x" ] },
    user_only => sub { [ 302, "http://$secret\@127.0.0.1:1" ] },
    no_scheme => sub { [ 302, "//user:$secret\@127.0.0.1:1/x" ] },
    one_slash => sub { [ 302, "http:/user:$secret\@127.0.0.1:1/x" ] },
    no_slash  => sub { [ 302, "http:user:$secret\@127.0.0.1:1/x" ] },
    backslash => sub { [ 302, "http:\\\\user:$secret\@127.0.0.1:1\\x" ] },
    other     => sub { [ 302, "ftp://user:$secret\@127.0.0.1:1/x" ] },
    late_user => sub { [ 302, "http://user:a/$secret\@127.0.0.1:1/x" ] },
    page      => sub { [ 302, "$away$_[0]", qq(<p>It is <a href="$away$_[0]">here</a>.</p>) ] }
);

sub answer {
    my ($target) = @_;
    if ($target =~ m{^/moved/(\w+)\?} && $moved{$1}) {
        my ($status, $location, $page) = @{ $moved{$1}->($target) };
        return MCP::Upstream::answer($status, defined $page ? $page : q(), 'Content-Type' => 'text/html', Location => $location);
    }
    return MCP::Upstream::answer(302, q(), Location => "$away/new/place") if $target =~ m{^/moved/plain\?};
    MCP::Net::wait_for(sub { !-e $hold }) if $target eq '/slow';
    return MCP::Upstream::answer(200, 'l' x LARGE, 'Content-Type' => 'text/plain') if $target eq '/large';
    return MCP::Upstream::answer(200, '[' . join(',', ('{}') x 699_000) . ']', 'Content-Type' => 'application/json') if $target eq '/bomb';
    return MCP::Upstream::json(200, { did => $target });
}

my $upstream = MCP::Upstream->start(root => $root, serve => sub { return answer($_[0]{target}) });

sub tls_conf {
    return q() if !$has_ssl;
    my ($key, $certificate) = map { $root->path($_) } qw(tls.key tls.crt);
    my ($status, $out) = MCP::Policyd::capture({}, $openssl, qw(req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -keyout),
        $key, '-out', $certificate);
    die "openssl req: $out\n" if $status != 0;
    return <<"END";
SSLSessionCache none
Listen 127.0.0.1:$tls_port
<VirtualHost 127.0.0.1:$tls_port>
    ServerName 127.0.0.1:$tls_port
    SSLEngine on
    SSLCertificateFile "$certificate"
    SSLCertificateKeyFile "$key"
</VirtualHost>
END
}

my $stack = MCP::Stack->new(
    webdav   => 0,
    allow    => [ $upstream->origin, $away ],
    modules  => [ 'status', $has_ssl ? 'ssl' : () ],
    location => "MCPMaxBody 8M\nMCPMaxResult 3M\nMCPCallTimeout @{[CALL_S]}s",
    server   => "StartServers 2\nMCPPolicyTimeout @{[POLICY_S]}s\n<Location \"/server-status\">\nSetHandler server-status\n</Location>\n" . tls_conf()
);

sub operation {
    my ($method, $id, $path) = @_;
    return { id => $id, method => $method, path => defined $path ? $path : "/$id", description => "Does $id." };
}
$stack->connector({ slug => 'app', base_url => $upstream->origin, operations => [ map { operation('POST', $_) } qw(quick slow large bomb) ] });
$stack->connector(
    {
        slug       => 'moved',
        base_url   => $upstream->origin,
        auth       => { type => 'api_key', in => 'query', name => 'key' },
        operations => [ map { operation('GET', $_, "/moved/$_") } 'plain', sort keys %moved ]
    },
    credential => { value => $secret }
);
my $client = $stack->client;

# --- a redirect ----------------------------------------------------------------------------------------------------------

subtest 'a redirect that echoes a credential does not hand it to the client' => sub {
    for my $name (sort keys %moved) {
        my $had = () = $upstream->requests;
        my ($answer, @old);
        my @rows = attempts($stack, sub {
            $answer = $client->call("moved__$name", {});
            @old = map { $client->legacy('tools/call', { name => "moved__$name", arguments => {} }, version => $_) } qw(2025-11-25 2025-03-26);
        });
        my @asked = $upstream->requests;
        like($asked[$had]{target}, qr/[?]key=\Q$secret\E\z/, "$name: the upstream gets the credential");
        is(result($answer)->{structuredContent}{error}{code}, 'upstream_status', "$name: is told in-band");
        for my $told ($answer, @old) {
            is(verdict($told), '200/isError', "$name: as an error");
            is(index(MCP::Json::encode($told), $secret), -1, "$name: without the credential") or diag $told->{body};
        }
        is(scalar @rows, 3, "$name: a row each");
        is(index(MCP::Json::encode(\@rows), $secret), -1, "$name: which do not hold it either");
    }
    my $plain = $client->call('moved__plain', {});
    like(MCP::Client::text($plain), qr{\Q$away\E/new/place}, 'a place without a secret is told');
    is_deeply([ $elsewhere->requests ], [], 'and nowhere was it sent to');
};

# --- batches -------------------------------------------------------------------------------------------------------------

sub batch_of {
    my @calls = @_;
    return MCP::Json::encode([ map { { jsonrpc => '2.0', id => $_, method => 'tools/call', params => { name => "app__$calls[$_]", arguments => {} } } } 0 .. $#calls ]);
}

# Posts [slow, quick] and does something while the upstream serves the first.
sub meanwhile {
    my ($from, $during) = @_;
    MCP::Root::write_file($hold, q());
    my $had = () = $upstream->requests;
    my $later = MCP::Later->start(sub { return $from->post(batch_of(qw(slow quick)), headers => \@v1) });
    $upstream->wait_for_requests($had + 1);
    $during->();
    unlink $hold;
    my $answer = $later->get;
    is($answer->{status}, 200, 'the whole is 200');
    is(ref $answer->{json}, 'ARRAY', 'with a list') or diag MCP::Json::encode($answer);
    my @list = ref $answer->{json} eq 'ARRAY' ? @{ $answer->{json} } : ({}, {});
    is_deeply([ map { $_->{id} } @list ], [ 0, 1 ], 'of two, in their order');
    is(scalar(my @all = $upstream->requests), $had + 1, 'the second was not sent');
    return (@list[ 0, 1 ], $answer);
}

subtest 'policyd dies while the first of a batch is served' => sub {
    my ($first, $second, $answer) = meanwhile($client, sub { $stack->policyd->kill9 });
    ok($first->{result}{isError}, 'the first has its outcome in-band');
    like($first->{result}{content}[0]{text}, qr/outcome_unrecorded/, 'which is outcome_unrecorded');
    ok($second->{error}, 'the second is an error') or diag MCP::Json::encode($second);
    is($second->{error}{data}{code}, 'policy_unavailable', 'and told why');
    my $none = $client->post(batch_of(qw(quick quick)), headers => \@v1);
    is($none->{status}, 503, 'while it is away a batch of which nothing ran is 503');
    ok(defined MCP::Client::header($none, 'Retry-After'), 'and may be sent again');
    $stack->policyd->start;
    my $again = $client->post(batch_of(qw(quick quick)), headers => \@v1);
    is_deeply([ map { $_->{result}{isError} ? 'error' : 'ok' } @{ $again->{json} } ], [qw(ok ok)], 'and when it is back it is served');
};

subtest 'a grant is revoked while the first of a batch is served' => sub {
    my $grant = $stack->grant('member@example.org');
    my $guest = $client->with($grant->{token});
    my ($first, $second, $answer) = meanwhile($guest, sub { $stack->ctl(qw(grants revoke --grant), $grant->{grant}) });
    ok($first->{result} && !$first->{result}{isError}, 'the first is served') or diag MCP::Json::encode($first);
    ok($second->{error}, 'the second is an error') or diag MCP::Json::encode($second);
    is(MCP::Client::header($answer, 'WWW-Authenticate'), undef, 'without a challenge');
    my ($row) = sort { $b->{seq} <=> $a->{seq} } $stack->calls(grant => $grant->{grant});
    is("$row->{outcome} $row->{error_code}", 'denied grant_revoked', 'the record says why');
    is($guest->post(batch_of(qw(quick quick)), headers => \@v1)->{status}, 401, 'the next batch is 401 as a whole');
    my $unknown = $client->post(batch_of(qw(quick quick)), headers => \@v1, token => $junk);
    is($unknown->{status}, 401, 'and so is one of an unknown token');
    ok(defined MCP::Client::header($unknown, 'WWW-Authenticate'), 'with the challenge');
};

subtest 'the answers of a batch are bounded like one' => sub {
    my $had = () = $upstream->requests;
    my $answer;
    my @rows = attempts($stack, sub { $answer = $client->post(batch_of(qw(large large quick large)), headers => \@v1) });
    is($answer->{status}, 200, 'it is answered');
    my @list = @{ $answer->{json} };
    is_deeply([ map { $_->{error} ? 'error' : length $_->{result}{content}[0]{text} } @list ], [ LARGE, LARGE, 'error', 'error' ], 'two fill it');
    like($list[2]{error}{message}, qr/not begun/, 'the third says that it was not begun') or diag MCP::Json::encode($list[2]);
    is($list[2]{error}{data}{code}, 'result_too_large', 'and why');
    is(scalar @rows, 2, 'what was not begun has no row');
    is(scalar(my @all = $upstream->requests), $had + 2, 'and was not sent');
    cmp_ok(length $answer->{body}, '<', 2 * 3 * 1024 * 1024, 'the whole is at most one more than the limit');
};

# --- JSON that would become a large tree -----------------------------------------------------------------------------------

# The peak of each child: {pid => KiB}; from now on, where the kernel can be told to forget the last one.
sub peaks {
    my %peak;
    for my $pid ($stack->gateway->children) {
        my ($kib) = (MCP::Root::slurp("/proc/$pid/status") || q()) =~ /^VmHWM:\s+(\d+) kB/m;
        $peak{$pid} = $kib if defined $kib;
    }
    return \%peak;
}

sub forget_peaks {
    for my $pid ($stack->gateway->children) {
        open my $out, '>', "/proc/$pid/clear_refs" or next;
        print {$out} '5';
        close $out or next;    # without the right to it the old peak stays, and the bound is as sharp as the tests before allow
    }
    return;
}

sub is_bounded {
    my ($name, $work) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    forget_peaks();
    my $before = peaks();
    my $answer = $work->();
    my $after = peaks();
  SKIP: {
        skip 'sanitizers keep freed memory', 1 if MCP::Build::sanitized();
        my ($growth) = sort { $b <=> $a } map { $after->{$_} - ($before->{$_} || $after->{$_}) } keys %$after;
        cmp_ok($growth, '<', GROWTH_KIB, "$name: no child needed more than a few MiB for it");
    }
    return $answer;
}

subtest 'a small text that would be a large tree is not made one' => sub {
    my $count = 1_390_000;    # of three bytes each: 4 MiB
    my %bombs = (
        'objects'           => '{"a":[' . join(',', ('{}') x $count) . ']}',
        'lists in a batch'  => '[' . join(',', ('[]') x $count) . ']',
        'numbers'           => '{"a":[' . join(',', (1) x (2 * $count)) . ']}',
        'members'           => '{' . join(',', map { qq("$_":0) } 1 .. $count / 4) . '}',
        'after a string'    => '{"\\\\":"[{\\"","a":[' . join(',', ('{}') x $count) . ']}',
        'broken at its end' => '{"a":[' . join(',', ('{}') x $count)
    );
    for my $name (sort keys %bombs) {
        my $refused = is_bounded("$name, an unknown token", sub { $client->post($bombs{$name}, token => $junk) });
        like($refused->{status}, qr/^4(?:01|13)\z/, "$name: an unknown token is 401 or 413");
        my $large = is_bounded("$name, a good token", sub { $client->post($bombs{$name}) });
        is($large->{status}, 413, "$name: 413 for a good one");
    }
    my $taken = is_bounded('99,000 values', sub { $client->call('app__quick', { a => [ (0) x 99_000 ] }) });
    isnt($taken->{status}, 413, 'what stays below the limit is read');
    my $string = $client->call('app__quick', { a => '[{,' x 200_000 });
    isnt($string->{status}, 413, 'brackets in a string are not counted');
};

subtest 'nor is that of an upstream' => sub {
    my $answer = is_bounded('2 MiB of objects', sub { $client->call('app__bomb', {}) });
    is(verdict($answer), '200/result', 'it is served');
    like(result($answer)->{content}[0]{text}, qr/^\[\{\},\{\}/, 'as text');
    is(length result($answer)->{content}[0]{text}, 3 * 699_000 + 1, 'whole');
    ok(!exists result($answer)->{structuredContent}, 'and not as a tree');
};

# --- a client that leaves over TLS -------------------------------------------------------------------------------------------

# Starts s_client and says something over it: (pid, handle). The handle's end is a close_notify.
sub over_tls {
    my ($text) = @_;
    pipe my $in, my $out or die "pipe: $!\n";
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        close $out;
        open STDIN,  '<&', $in                             or POSIX::_exit(126);
        open STDOUT, '>',  $root->path('s_client.out')     or POSIX::_exit(126);
        open STDERR, '>',  $root->path('s_client.err')     or POSIX::_exit(126);
        { no warnings 'exec'; exec { $openssl } $openssl, qw(s_client -quiet -no_ign_eof -connect), "127.0.0.1:$tls_port"; }
        POSIX::_exit(127);
    }
    close $in;
    syswrite $out, $text;
    return ($pid, $out);
}

subtest 'a client that leaves over TLS is noticed' => sub {
    plan skip_all => 'there is no openssl or no mod_ssl' if !$has_ssl;
    my $body = sprintf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"app__slow","arguments":{},"_meta":%s}}', MCP::Json::encode(MCP::Client::meta());
    my $head = join "\r\n", 'POST /mcp HTTP/1.1', "Host: 127.0.0.1:$tls_port", 'Authorization: Bearer ' . $client->token, 'Content-Type: application/json',
        'Accept: application/json, text/event-stream', 'MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', 'Mcp-Name: app__slow',
        'Content-Length: ' . length $body;
    MCP::Root::write_file($hold, q());
    my $had = () = $upstream->requests;
    my $row;
    my $took;
    attempts($stack, sub {
        my ($pid, $out) = over_tls("$head\r\n\r\n$body");
        ok($upstream->wait_for_requests($had + 1), 'the upstream is asked');
        my $began = now();
        close $out;
        MCP::Net::wait_for(sub {
            ($row) = sort { $b->{seq} <=> $a->{seq} } $stack->calls;
            return $row->{outcome} ne 'running';
        }, CALL_S + 2);
        $took = now() - $began;
        kill 'KILL', $pid;
        waitpid $pid, 0;
    });
    unlink $hold;
    is("$row->{operation} $row->{outcome} " . ($row->{error_code} || q()), 'app/slow error cancelled', 'its call is recorded as cancelled');
    cmp_ok($took, '<', GONE_S, 'soon');
};

# --- counters ------------------------------------------------------------------------------------------------------------------

sub counters {
    my $answer = $client->request('GET', '/server-status?auto', []);
    return { $answer->{body} =~ /^MCP(\w+): (\d+)$/mg };
}

# What these requests have added, without what stayed.
sub adds {
    my ($name, $more, $work) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $before = counters();
    $work->();
    my $after = counters();
    is_deeply({ map { $after->{$_} == $before->{$_} ? () : ($_ => $after->{$_} - $before->{$_}) } keys %$after }, $more, $name);
    return;
}

subtest 'what leaves no row is counted over all children' => sub {
    is_deeply([ sort keys %{ counters() } ], [qw(Broken Busy InsufficientScope OtherRefusals Requests Unauthorized Unavailable)], 'the counters');
    adds('a NUL is broken', { Requests => 1, Broken => 1 }, sub { is($client->post("{\"a\":\"\0\"}")->{status}, 400, 'it is refused') });
    adds('bad UTF-8 is broken', { Requests => 1, Broken => 1 }, sub { is($client->post("{\"a\":\"\xff\xfe\"}")->{status}, 400, 'it is refused') });
    adds('no JSON is broken', { Requests => 12, Broken => 12 }, sub { $client->post('{') for 1 .. 12 });
    adds('an unknown token', { Requests => 12, Unauthorized => 12 }, sub { $client->list(token => $junk) for 1 .. 12 });
    adds('a broken body of an unknown token', { Requests => 1, Unauthorized => 1 }, sub { $client->post('{', token => $junk) });
    adds('no token', { Requests => 1, Unauthorized => 1 }, sub { $client->list(token => undef) });
    adds('good calls', { Requests => 12 }, sub { is(verdict($client->call('app__quick', {})), '200/result', 'served') for 1 .. 12 });
    adds('a body that is too large', { Requests => 1, OtherRefusals => 1 }, sub { $client->post('[' . '0,' x 100_001 . '0]') });
    adds('a static file', {}, sub { $client->get('/none.txt') });
    like($client->get('/server-status')->{body}, qr{<h2>MCP</h2>\n<dl>\n<dt>Requests: \d+</dt>}, 'people can read them too');
};

# --- the end: what the slow clients saw, and what all files hold ----------------------------------------------------------------

subtest 'clients that send slowly are ended, and their threads serve others' => sub {
    for my $i (0 .. $#slow) {
        my $seen = $dawdlers[$i]->get;
        like($seen->{status}, qr/^(?:40[018]|closed)\z/, "$slow[$i][0]: is ended");
        cmp_ok($seen->{took}, '<', BODY_S + SLACK_S, "$slow[$i][0]: in time");
    }
    my $seen = $visitor->get;
    ok($seen->{was_held}, 'they had held every thread');
    is($seen->{body}, "served\n", 'somebody else is served then');
    cmp_ok($seen->{waited}, '<', BODY_S + SLACK_S, 'soon');
};

$stack->end(expected => [qw(MCP0301 PD0121 AH01873 AH01882 AH01906 AH01909)]);    # AH018..: OpenSSL's version, no session cache; AH019..: a certificate made in a hurry
$crowded->end(expected => [qw(AH00484 AH00485 AH00286 AH00161 AH10159)]);    # all workers are busy: that is the test

my @found;
File::Find::find(
    {
        no_chdir => 1,
        wanted   => sub {
            return if !-f $_;
            my $text = MCP::Root::slurp($_);
            push @found, $_ if defined $text && index($text, $secret) >= 0;
        }
    },
    $stack->root->path
);
is_deeply(\@found, [], 'no file of the gateway or of policyd holds the credential');
done_testing;
