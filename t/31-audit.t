# Every attempt has exactly one entry, in order, through every door; no value, invented key, token, credential or body of an
# upstream is in any file of ours; and N calls are N executions and N rows, whatever runs beside them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use File::Find ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Later;
use MCP::Load;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;
use MCP::Witness;

my $AUDITORS = 'games';    # a group of every Debian, for those who may read
my $STRANGER = 'daemon';   # a user who may not

# Lines that sqlite3 prints; dies where it refuses.
sub sql {
    my ($file, $text, @as) = @_;
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1 }, @as, 'sqlite3', '-readonly', $file, $text);
    die "sqlite3: $err\n" if $status != 0;
    return split /\n/, $out;
}

sub as_user {
    my ($user, $group) = @_;
    return ('setpriv', "--reuid=$user", "--regid=$group", '--clear-groups');
}

# --- one entry an attempt ------------------------------------------------------------

{
    my $stack = MCP::Stack->new(policyd => { audit_group => $AUDITORS });
    my $hold = $stack->root->path('hold');
    my $upstream = MCP::Upstream->start(
        root  => $stack->root,
        serve => sub { MCP::Net::wait_for(sub { !-e $hold }); return MCP::Upstream::json(200, {}) }
    );
    $stack->reconfigure(allow => [$upstream->origin]);
    $stack->gateway->graceful;
    $stack->connector(
        {
            slug       => 'slow',
            base_url   => $upstream->origin,
            operations => [{ id => 'go', method => 'POST', path => '/go', description => 'waits' }]
        }
    );
    my $client = $stack->client;
    my $reader = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    my $auditor = $stack->client(member => 'auditor@example.org');
    my @before = $stack->calls;
    is @before, 0, 'there is no attempt yet';

    $client->list;
    $client->call('webdav__read_file', { path => 'a.txt' });
    $client->call('webdav__read_file', { path => 'a.txt', invented => 1, other => [2] });
    $client->call('webdav__read_file', { path => 'nothing.txt' });
    $client->call('webdav__no_such_tool', { path => 'a.txt' });
    $reader->call('webdav__delete_file', { path => 'a.txt' });
    $auditor->call('webdav__read_file', { path => 'a.txt' });
    $client->call('webdav__read_file', { path => '../a.txt' });
    $client->with('mcp_unknown')->call('webdav__read_file', { path => 'a.txt' });
    $client->post('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{');
    $client->call('webdav__write_file', { path => 'b.txt', content => 'new' });

    my @expected = (
        ['webdav__read_file',    'ok',     undef,                'path',         1, 0, 'webdav/read_file'],
        ['webdav__read_file',    'error',  'invalid_arguments',  'path',         3, 2, 'webdav/read_file'],
        ['webdav__read_file',    'error',  'upstream_status',    'path',         1, 0, 'webdav/read_file'],
        ['webdav__no_such_tool', 'denied', 'unknown_tool',       q(),            1, 1, undef],
        ['webdav__delete_file',  'denied', 'insufficient_scope', 'path',         1, 0, 'webdav/delete_file'],
        ['webdav__read_file',    'denied', 'permission_denied',  q(),            1, 1, undef],
        ['webdav__read_file',    'denied', 'url_restricted',     'path',         1, 0, 'webdav/read_file'],
        ['webdav__write_file',   'ok',     undef,                'content path', 2, 0, 'webdav/write_file'],
    );
    my @rows = sort { $a->{seq} <=> $b->{seq} } $stack->calls;
    my $shown = sub {
        my ($row) = @_;
        return [@{$row}{qw(tool outcome error_code)}, join(q( ), sort @{ $row->{arg_names} || [] }),
            @{$row}{qw(arg_count arg_unknown operation)}];
    };
    is_deeply [map { $shown->($_) } @rows], \@expected, 'policyctl shows one row for each attempt, in order';
    is $rows[2]{upstream_status}, 404, 'with the status of the upstream';
    is_deeply [map { $_->{member} } @rows[0, 4, 5]], [qw(member@example.org member@example.org auditor@example.org)],
        'with the member';
    is scalar(grep { !$_->{duration_us} } grep { $_->{outcome} ne 'denied' } @rows), 0, 'and how long it took';

    # the same through the view
    my @columns = qw(seq audit_id time member role grant_id client surface operation tool via connector connection
        connection_id classification approved arg_count arg_unknown outcome error_code upstream_status duration_us
        request_bytes response_bytes redactions trace_id revision);
    my @by_list = map { my $row = $_; join '|', map { defined $row->{$_} ? $row->{$_} : q() } @columns }
        sort { $a->{seq} <=> $b->{seq} } $stack->audit;
    my ($last) = $by_list[-1] =~ /^(\d+)/;    # that list has a row of its own by now
    my $db = $stack->policyd->db('audit');
    my $all = 'SELECT ' . join(q( || '|' || ), map { "ifnull($_, '')" } @columns)
        . " FROM audit_trail WHERE seq <= $last ORDER BY seq";
    is_deeply [sql($db, $all)], \@by_list, 'the SQL view shows the same rows, control-plane changes included';
    my ($status, $csv) = $stack->policyd->run_ctl(qw(audit list --all -o csv));
    is scalar(() = $csv =~ /\n/g), 1 + @by_list + 1, 'and the CSV as many, a head, and one for the list before';
    my ($names) = sql($db, "SELECT arg_names FROM audit_trail WHERE tool = 'webdav__write_file'");
    is_deeply [sort @{ MCP::Json::decode($names) }], [qw(content path)], 'names of arguments are a JSON array there';
    is_deeply [sql($db, "SELECT tool FROM audit_trail WHERE outcome = 'error' AND error_code = 'upstream_status'")],
        ['webdav__read_file'], 'it can be filtered';

    # while it runs
    MCP::Root::write_file($hold, q());
    my $later = MCP::Later->start(sub { $client->call('slow__go') });
    $upstream->wait_for_requests(1);
    my ($row) = grep { defined $_->{operation} && $_->{operation} eq 'slow/go' } $stack->calls;
    is $row->{outcome}, 'running', 'an attempt that runs is on record';
    is_deeply [sql($db, "SELECT outcome FROM audit_trail WHERE seq = $row->{seq}")], ['running'], 'in the view too';
    unlink $hold;
    $later->get;
    my @after = grep { defined $_->{operation} && $_->{operation} eq 'slow/go' } $stack->calls;
    is_deeply [map { "$_->{seq} $_->{outcome}" } @after], ["$row->{seq} ok"], 'and the same row has its end';
    is scalar(my @seqs = $stack->calls), @expected + 1, 'there are no other rows';

    # who may read
  SKIP: {
        skip 'only root can be somebody else', 3 if $> != 0;
        my @seen = sql($db, "SELECT count(*) FROM audit_trail WHERE surface = 'mcp'", as_user($STRANGER, $AUDITORS));
        is_deeply \@seen, [@expected + 1], 'another user of the auditors\' group reads the view';
        my $reads = sub { return eval { sql(@_); 1 } };
        ok !$reads->($db, 'SELECT 1 FROM audit_trail', as_user($STRANGER, $STRANGER)), 'a stranger does not';
        ok !$reads->($stack->policyd->db('trail'), 'SELECT 1 FROM record', as_user($STRANGER, $AUDITORS)),
            'the trail is nobody else\'s';
    }

    # a reader who holds the view open stops no call
    {
        my $out;
        my $pid = open $out, '|-', 'sqlite3', '-readonly', $db or die "sqlite3: $!\n";
        my $flag = $stack->root->path('reading');
        $out->autoflush(1);
        print {$out} ".output /dev/null\nBEGIN;\nSELECT count(*) FROM audit_trail;\n.output $flag\nSELECT 1;\n.output /dev/null\n";
        ok MCP::Net::wait_for(sub { -s $flag }), 'a reader holds the view open';
        my $count = grep { $_->{outcome} eq 'ok' } $stack->calls;
        is MCP::Client::code($client->call('webdav__read_file', { path => 'a.txt' })), undef, 'calls go on' for 1 .. 3;
        is scalar(grep { $_->{outcome} eq 'ok' } $stack->calls), $count + 3, 'and are shown';
        close $out;
    }
    $upstream->stop;
    $stack->end;
}

# --- nothing of it is anywhere ---------------------------------------------------------

{
    my $stack = MCP::Stack->new(server => "MCPPolicyTimeout 1s\n", location => "MCPCallTimeout 3s\n");
    my %canary;
    my $fresh = sub {
        my ($what) = @_;
        return $canary{$what} = join q(), 'kan', map { ('a' .. 'z', 0 .. 9)[rand 36] } 1 .. 24;
    };
    my ($body, $sorry, $half) = map { $fresh->($_) } 'a body', 'the body of an error', 'a body that broke off';
    my $upstream = MCP::Upstream->start(
        root  => $stack->root,
        serve => sub {
            my ($request, $peer) = @_;
            return MCP::Upstream::json(500, { error => $sorry }) if $request->{target} =~ m{^/error};
            if ($request->{target} =~ m{^/half}) {
                $peer->send("HTTP/1.1 200 OK\r\nX-Half: $half\r\nContent-Length: 100\r\n\r\n$half");
                return undef;
            }
            return MCP::Upstream::json(200, { text => $body }, 'X-Body' => $body);
        }
    );
    $stack->reconfigure(allow => [$upstream->origin]);
    $stack->gateway->graceful;
    my $credential = $fresh->('a credential');
    my @operations = map {
        {
            id          => $_,
            method      => 'POST',
            path        => "/$_",
            description => $_,
            parameters  => [{ name => 'q', in => 'query', schema => { type => 'string', pattern => '^[a-z0-9]*$' } }]
        }
    } qw(good error half);
    $stack->connector(
        {
            slug       => 'keyed',
            base_url   => $upstream->origin,
            auth       => { type => 'api_key', in => 'header', name => 'X-Api-Key' },
            operations => \@operations
        },
        credential => { value => $credential }
    );
    my $client = $stack->client;
    $canary{'a good token'} = $client->token;

    my $call = sub {
        my ($what, $name, %arguments) = @_;
        return $client->call($name, { map { $_ => $arguments{$_} eq '*' ? $fresh->("$what: $_") : $arguments{$_} } keys %arguments });
    };
    is MCP::Client::code($call->('written', 'webdav__write_file', path => 'c.txt', content => '*')), undef, 'a file is written';
    is $stack->file('c.txt'), $canary{'written: content'}, 'with the value sent';
    is MCP::Client::code($call->('path', 'webdav__read_file', path => '*')), 'upstream_status', 'a path that is not there';
    $call->('refused by pattern', 'webdav__read_file', path => 'a.txt', Range => '*');
    $client->call('webdav__read_file', { path => '../' . $fresh->('beside the template') });
    $client->call('webdav__read_file', { path => [$fresh->('of a wrong type')] });
    $client->call('webdav__copy_file', { path => 'c.txt', Destination => '//evil.example/' . $fresh->('a URL') });
    $client->call('webdav__read_file', { path => 'a.txt', $fresh->('an invented key') => 1 });
    $client->call('webdav__no_tool', { $fresh->('a key of no tool') => $fresh->('a value of no tool') });
    $client->call($fresh->('no name') . ' <!>', {});
    $client->call('webdav__read_file', { path => $fresh->('behind a mismatched name') }, name_header => 'webdav__other');
    $client->with($fresh->('an unknown token'))->call('webdav__read_file', { path => 'a.txt' });
    $client->with('Basic ' . $fresh->('a broken token'))->list;
    $client->post(qq({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"@{[$fresh->('broken JSON')]}"));
    $client->post(qq({"jsonrpc":"2.0","id":1,"method":"@{[$fresh->('a method')]}","params":{}}));
    like MCP::Client::text($call->('answered', 'keyed__good', q => '*')), qr/\Q$body\E/, 'a body arrives';
    is_deeply [map { $_->[1] } grep { lc $_->[0] eq 'x-api-key' } @{ ($upstream->requests)[-1]{headers} }], [$credential],
        'with the credential sent';
    like MCP::Client::text($call->('answered 500', 'keyed__error', q => '*')), qr/\Q$sorry\E/, 'so does that of an error';
    is MCP::Client::code($call->('broken off', 'keyed__half', q => '*')), 'upstream_invalid', 'one breaks off';
    $stack->reconfigure(allow => []);
    $stack->gateway->graceful;
    is MCP::Client::code($call->('not allowed', 'keyed__good', q => '*')), 'egress_denied', 'an address is refused';
    $stack->policyd->process->signal('STOP');
    is $call->('frozen', 'keyed__good', q => '*')->{status}, 503, 'policyd does not answer';
    $stack->policyd->process->signal('CONT');
    is $client->discover->{status}, 200, 'and answers again';

    my %own = map { $stack->root->path($_) => 1 } qw(files locks webdav.access.log);
    my $search = sub {
        my ($when) = @_;
        my (@found, $files);
        File::Find::find(
            {
                no_chdir => 1,
                wanted   => sub {
                    if ($own{$File::Find::name}) {
                        $File::Find::prune = 1;
                        return;
                    }
                    return if !-f || m{/upstream-\d+\.jsonl\z};
                    my $text = MCP::Root::slurp($_);
                    die "$_: $!\n" if !defined $text;
                    $files++;
                    for my $what (sort keys %canary) {
                        my $secret = $canary{$what};
                        my $hex = unpack 'H*', $secret;
                        my ($base64) = encode_base64($secret, q()) =~ /^(.{30})/;
                        push @found, "$what in $_" if index($text, $secret) >= 0;
                        push @found, "$what, as hex, in $_" if index(lc $text, $hex) >= 0;
                        push @found, "$what, as base64, in $_" if index($text, $base64) >= 0;
                    }
                }
            },
            $stack->root->path
        );
        return scalar @found if $when eq 'planted';
        is_deeply \@found, [], "$when: nothing of " . keys(%canary) . " secrets in $files files";
        return;
    };
    $stack->root->write('planted', "text\0" . $canary{'a value of no tool'} . "\0");
    is $search->('planted'), 1, 'what is planted is found';
    unlink $stack->root->path('planted');
    is scalar(grep { index(MCP::Root::slurp($stack->webdav->access), $_) >= 0 } $canary{'path: path'}), 1,
        'the upstream\'s own log has what it was sent';
    $stack->ctl(qw(connections list));
    my ($status, $out) = $stack->policyd->run_ctl(qw(connections get keyed -o json));
    is $status, 0, 'the connection can be looked at';
    is index($out, $credential), -1, 'without its credential';
    ok -s $stack->policyd->db('trail') . '-wal', 'the write-ahead log is there';
    $search->('while it runs');
    like MCP::Root::slurp('/proc/' . $stack->policyd->pid . '/limits'), qr/^Max core file size\s+0\s+0\s/m,
        'policyd leaves no core';
    $stack->policyd->kill9;
    $search->('policyd killed');
    $stack->policyd->start;
    $upstream->stop;
    $stack->end(expected => [qw(MCP0301 PD0121)]);
    $search->('all stopped');
}

# --- many at once -----------------------------------------------------------------------

{
    my ($children, $clients, $rounds) = (8, 64, $ENV{MCP_TEST_ROUNDS} || 100);
    my $stack = MCP::Stack->new(
        webdav    => 0,
        log_level => 'info',
        policyd   => { log_level => 'info' },
        server    => <<"EOF"
<IfModule !mpm_prefork_module>
    StartServers $children
    ServerLimit $children
    ThreadsPerChild 8
    MaxRequestWorkers 64
    MinSpareThreads 1
    MaxSpareThreads 64
    MCPMaxCalls 64
</IfModule>
<IfModule mpm_prefork_module>
    StartServers 80
    MaxRequestWorkers 120
    MaxSpareServers 120
    MCPMaxCalls 480
</IfModule>
MaxKeepAliveRequests 0
MCPPolicyTimeout 20s
EOF
    );
    my $witness = MCP::Witness->start(root => $stack->root);
    $stack->reconfigure(allow => [$witness->origin]);
    $stack->gateway->graceful;
    $stack->connector($witness->file);
    my @grants = map {
        $stack->member("m$_\@example.org", 'Member');
        $stack->grant("m$_\@example.org")
    } 1 .. 8;
    my $load = MCP::Load->start(
        root    => $stack->root,
        url     => $stack->url,
        tokens  => [map { $_->{token} } @grants],
        clients => $clients,
        rounds  => $rounds,
        keep    => 'both'
    );
    my @calls = $load->wait;
    my $count = $clients * $rounds;
    is @calls, $count, "$clients clients have made $count calls";
    is_deeply [map { "$_->{mark} $_->{status} $_->{text}" } grep { $_->{status} != 200 } @calls], [], 'all are answered';
    is_deeply [map { "$_->{mark}" } grep { !$_->{own} } @calls], [], 'each with its own mark, none with another\'s';
    my %times;
    $times{ $_->{mark} }++ for $witness->calls;
    is scalar(my @executed = $witness->calls), $count, "$count executions";
    is_deeply [sort keys %times], [sort map { $_->{mark} } @calls], 'each call was executed once';

    my $db = $stack->policyd->db('audit');
    my ($status, $out) = $stack->policyd->run_ctl(qw(audit list --surface mcp --limit 1 -o json));
    is $status, 0, 'the copy has come as far as the trail' or diag $out;
    my %grant_of = map { MCP::Load::trace($_->{mark}) => $grants[$_->{client} % @grants]{grant} } @calls;
    my @rows = map { [split /\|/] } sql($db, "SELECT seq, trace_id, grant_id, outcome, arg_count FROM audit_trail WHERE surface = 'mcp' ORDER BY seq");
    is @rows, $count, "$count rows";
    is_deeply [grep { $_->[3] ne 'ok' || $_->[4] != 1 } @rows], [], 'all ok';
    is_deeply [map { $_->[1] } grep { ($grant_of{ $_->[1] } || q()) ne $_->[2] } @rows], [],
        'each under the grant that called';
    my %seen;
    is_deeply [grep { $seen{ $_->[1] }++ } @rows], [], 'no call has two';
    my @served = sql($stack->policyd->db('trail'), 'SELECT DISTINCT child FROM record WHERE child IS NOT NULL');
    # under prefork a child has one thread: each client keeps one
    if (($ENV{MCP_TEST_MPM} || 'event') eq 'prefork') {
        cmp_ok scalar @served, '>=', $clients, "at least $clients children have served";
    } else {
        # which child takes a connection is the kernel's choice: nearly all of them have a part
        cmp_ok scalar @served, '>=', $children - 2, "nearly all of $children children have served";
    }
    $witness->stop;
    $stack->end(expected => [qw(AH00484 AH00286 AH00161 AH10159)]);
}

done_testing;
