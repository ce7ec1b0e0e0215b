# Stores that are newer, damaged, in use, full or read-only: refused with what to do, or 503 and nothing executed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Client;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;

sub sqlite {
    my ($file, $text) = @_;
    my ($status, $out) = MCP::Policyd::capture({}, 'sqlite3', $file, $text);
    die "sqlite3 $file: $out\n" if $status != 0;
    return $out;
}

# --- at the start --------------------------------------------------------------------------

{
    my $root = MCP::Root->new;
    my $policyd = MCP::Policyd->new(root => $root)->start;
    $policyd->first_owner('owner@example.org');

    # a second one of the same configuration, while the first serves
    my ($status, $out) = $policyd->run_once;
    isnt $status, 0, 'a second policyd does not start';
    like $out, qr/\b(?:already|another|running|in use)\b/i, 'and says why';
    ok $policyd->process->is_running, 'the first goes on';
    is_deeply [map { $_->{email} } @{ $policyd->ctl(qw(members list))->{items} }], ['owner@example.org'], 'and answers';

    # one of another configuration with the same state
    my $other = MCP::Policyd->new(
        root   => $root,
        name   => 'other',
        config => { map({ $_ => $policyd->{config}{$_} } qw(state_dir key_dir)) }
    );
    ($status, $out) = $other->run_once;
    isnt $status, 0, 'nor does one with sockets of its own and the same state_dir';
    like $out, qr/\b(?:already|another|running|in use)\b/i, 'and says why';
    is scalar(@{ $policyd->ctl(qw(members list))->{items} }), 1, 'the first still answers';
    is $policyd->stop, 0, 'it stops';

    # how it starts with the files as they are: undef, or what it says
    my $start = sub {
        my $before = length MCP::Root::slurp($policyd->log);
        my $is_up = eval { $policyd->start; 1 };
        $policyd->stop if $is_up;
        return $is_up ? undef : substr MCP::Root::slurp($policyd->log), $before;
    };
    is $start->(), undef, 'it starts again';

    for my $store (qw(policy trail audit)) {
        my $file = $policyd->db($store);
        sqlite($file, 'PRAGMA wal_checkpoint(TRUNCATE)');
        my $whole = MCP::Root::slurp($file);
        my $keep = sub {    # the very bytes, under the owner that they have
            open my $out_file, '+<:raw', $file or die "$file: $!\n";
            truncate $out_file, 0;
            print {$out_file} $_[0];
            close $out_file;
        };
        my $version = sqlite($file, 'PRAGMA user_version');
        sqlite($file, 'PRAGMA user_version=99');
        my $says = $start->();
        like $says, qr/\Q$store.db\E (?:has schema version 99|is damaged, newer)/, "$store: a newer one is refused";
        like $says, qr/run the newer policyd|restore a backup|remove/, "$store: with what to do";
        is sqlite($file, 'PRAGMA user_version'), "99\n", "$store: and left as it is";
        $keep->($whole);
        is $start->(), undef, "$store: restored, it starts";
        $whole = MCP::Root::slurp($file);

        sqlite($file, 'PRAGMA application_id=7');
        like $start->(), qr/\Q$store.db\E is (?:a database of another application|damaged, newer or not policyd's)/, "$store: one of another application is refused";
        $keep->($whole);

        for my $damage (
            ['no database',    'this is no database' x 500],
            ['a page of zeros', substr($whole, 0, 4096) . "\0" x 4096 . substr($whole, 8192)],
            ['a cut file',     substr $whole, 0, length($whole) - 4096 - 100]
          )
        {
            my ($name, $bytes) = @$damage;
            $keep->($bytes);
            $says = $start->();
            like $says, qr/\Q$store.db\E is (?:damaged|a database of another application)/, "$store, $name: refused";
            like $says, qr/restore|remove|move it away/, "$store, $name: with what to do";
            ok MCP::Root::slurp($file) eq $bytes, "$store, $name: and left as it is";
        }
        $keep->($whole);
        is $start->(), undef, "$store: restored, it starts";
    }

    # the query copy can be made anew
    unlink map { $policyd->db('audit') . $_ } q(), qw(-wal -shm);
    $policyd->start;
    ok scalar(grep { $_->{operation} eq 'members__create' } @{ $policyd->ctl(qw(audit list --all))->{items} }),
        'audit.db removed: it is filled again from the trail';
    is $policyd->stop, 0, 'it stops';
}

# --- while it runs -------------------------------------------------------------------------

my $mounted;
my $owner = $$;

END {
    if (defined $mounted && $$ == $owner) {
        local $?;
        system 'umount', '-l', $mounted;
    }
}

SKIP: {
    skip 'only root can mount a small file system', 1 if $> != 0;
    my $small = MCP::Root->new;
    my $dir = $small->make('small');
    my ($status, $out) = MCP::Policyd::capture({}, 'mount', '-t', 'tmpfs', '-o', 'size=8m,mode=0755', 'tmpfs', $dir);
    skip "a small file system can't be mounted here: $out", 1 if $status != 0;
    $mounted = $dir;
    my $stack = MCP::Stack->new(policyd => { state_dir => "$dir/state" }, server => "MCPPolicyTimeout 2s\n");
    my $client = $stack->client;
    my $call = sub { return $client->call('webdav__read_file', { path => 'a.txt' }) };
    my $sent = sub { return scalar(my @all = grep { /a\.txt/ } $stack->upstream_log) };
    my $fine = sub {
        my ($name) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        my $answer = $call->();
        is MCP::Client::code($answer), undef, $name or diag MCP::Client::text($answer);
        return $answer->{status} == 200;
    };
    my $refused = sub {
        my ($name) = @_;
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        my $before = $sent->();
        my $answer = $call->();
        is $answer->{status}, 503, "$name: 503";
        ok MCP::Client::header($answer, 'Retry-After'), "$name: with Retry-After";
        is $answer->{json}{error}{data}{code}, 'policy_unavailable', "$name: and its code";
        is $sent->(), $before, "$name: nothing is sent";
        return;
    };
    $fine->('with room, a call');

    # full
    my $ballast = "$dir/ballast";
    open my $fill, '>:raw', $ballast or die "$ballast: $!\n";
    while (defined(my $count = syswrite $fill, 'x' x 4096)) {
        last if $count < 4096;
    }
    close $fill;
    my ($is_full, $calls) = (0, 0);
    MCP::Net::wait_for(sub { $calls++; $is_full = $call->()->{status} == 503 });
    ok $is_full, "full, the store takes no more after $calls calls";
    $refused->('full');
    isnt $stack->policyd->ctl_refusal(qw(members create --email late@example.org --roles Member)), undef, 'full: nor is a change taken';
    is $client->discover->{status}, 200, 'full: reading goes on';
    my $rows = sub { return scalar grep { $_->{outcome} eq 'ok' } $stack->calls };
    unlink $ballast or die "$ballast: $!\n";
    my $is_back = MCP::Net::wait_for(sub { $call->()->{status} == 200 });
    ok $is_back, 'with room again, calls work by themselves';
    $fine->('and go on');
    is $rows->(), $sent->(), 'each executed call has its row';

    # read-only: files that are open stay so, hence a new policyd
    is $stack->policyd->stop, 0, 'it stops';
    ($status, $out) = MCP::Policyd::capture({}, 'mount', '-o', 'remount,ro', $dir);
  SKIP: {
        skip "the file system can't be made read-only: $out", 6 if $status != 0;
        ok !eval { $stack->policyd->start; 1 }, 'on a read-only file system it does not start';
        like $@, qr/(?:can't|cannot|read-only|permission|directory|check owner)/i, 'and says why';
        $refused->('read-only');
        MCP::Policyd::capture({}, 'mount', '-o', 'remount,rw', $dir);
    }
    $stack->policyd->start;
    $fine->('writable again, a call works');
    $stack->end(expected => [qw(MCP0301 PD\d+ none)]);
    undef $stack;
    is system('umount', $dir), 0, 'unmounted';
    undef $mounted;
}

done_testing;
