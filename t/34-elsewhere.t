# A change that was made elsewhere on the same store holds here within 60 s, without a restart and without a word to this policyd: rules,
# connections and toolboxes show in tools/list and decide calls; grants and members hold on the very next call. It is made by a small
# program linked with the store, not by a second policyd. The WebDAV server's access log is the witness that nothing was sent.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Verdict qw(result verdict);

use constant PATIENCE_S => 60;    # what may pass at most until a change holds

my $stack = MCP::Stack->new;
my $client = $stack->client;
my $state = $stack->policyd->dir . '/state';
my %read = (path => 'a.txt');

# --- the program -------------------------------------------------------------------

my $program = $stack->root->path('store_elsewhere');
{
    my $built = MCP::Build::dir();
    my @command = (
        MCP::Build::config('CC'), qw(-std=gnu11 -D_GNU_SOURCE -O1),
        MCP::Build::sanitized() ? '-fsanitize=address,undefined' : (),
        '-isystem', MCP::Build::apxs('APR_INCLUDEDIR'),
        '-o', $program, MCP::Build::source() . '/t/unit/store_elsewhere.c',
        "$built/.libs/libpolicyd.a", "$built/.libs/libproto.a",
        qw(-lpthread), map { split ' ', MCP::Build::config($_) || q() } qw(JANSSON_CFLAGS SQLITE_LIBS JANSSON_LIBS APR_LIBS)
    );
    my ($status, $out) = MCP::Policyd::capture({}, @command);
    is $status, 0, 'the program compiles' or BAIL_OUT($out);
}

# Runs it as policyd's own user. Dies where it is refused.
sub elsewhere {
    my ($verb, $kind, $id, @more) = @_;
    my @as = $> == 0 ? ('setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups') : ();
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1, env => { MCP::Build::policyd_env() } },
        @as, $program, $state, $verb, $kind, $id, map { ref ? MCP::Json::encode($_) : $_ } @more);
    die "store_elsewhere $verb $kind $id: $err\n" if $status != 0;
    chomp $out;
    return $out;
}

sub document { my ($kind, $id) = @_; return MCP::Json::decode(elsewhere('get', $kind, $id)) }

sub listed { my ($from) = @_; return { map { $_ => 1 } MCP::Client::names($from->list) } }

# Waits until the list of tools is as wanted: {name => is it there}. Tells how long it took.
sub shows {
    my ($wanted, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $began = time;
    my $seen;
    my $is_so = MCP::Net::wait_for(
        sub {
            $seen = listed($client);
            return !grep { ($seen->{$_} ? 1 : 0) != $wanted->{$_} } keys %$wanted;
        },
        PATIENCE_S
    );
    ok($is_so, sprintf '%s: listed so after %d s', $what, time - $began)
        or diag(join q( ), 'listed:', sort keys %$seen);
    return;
}

# A call that answers as one of a tool that never existed, and sends nothing.
sub is_as_if_never {
    my ($tool, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @answers;
    my $before = () = $stack->upstream_log;
    for my $name ($tool, 'nobody__never') {
        my $answer = $client->call($name, \%read, id => 1);
        (my $body = $answer->{body}) =~ s/\Q$name\E/NAME/g;
        push @answers, "$answer->{status} $body";
    }
    is($answers[0], $answers[1], "$what: calling it answers as if it had never been");
    my $after = () = $stack->upstream_log;
    is($after, $before, "$what: nothing went upstream");
    return;
}

sub is_called {
    my ($tool, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $before = () = $stack->upstream_log;
    is(verdict($client->call($tool, \%read)), '200/result', "$what: it is called");
    my $after = () = $stack->upstream_log;
    is($after, $before + 1, "$what: and sent");
    return;
}

my ($connection) = grep { $_->{label} eq 'webdav' } @{ $stack->ctl(qw(connections list))->{items} };
my $connector = $connection->{connector};
my $policy_pid = $stack->policyd->pid;

# --- what is made elsewhere ------------------------------------------------------------

shows({ webdav__read_file => 1, webdav__delete_file => 1, elsewhere__read_file => 0 }, 'at first');
is_called('webdav__read_file', 'at first');

my $second = document('connection', $connection->{connection});
is($second->{label}, 'webdav', 'the program reads the store of a policyd that runs');
like(elsewhere('insert', 'connection', 'cxn_elsewhere', q(-), { %$second, label => 'elsewhere' }, 'label:elsewhere'),
    qr/^\d+\z/, 'and commits to it');
shows({ webdav__read_file => 1, elsewhere__read_file => 1 }, 'a connection made elsewhere');
is_called('elsewhere__read_file', 'a connection made elsewhere');
is_called('webdav__read_file', 'the one beside it');

elsewhere('insert', 'restriction', 'rst_elsewhere', q(-),
    { effect => 'block', target => { role => 'Member' }, items => [{ connector => $connector, operation => 'read_file' }] });
elsewhere(
    'insert', 'toolbox',
    'tbx_elsewhere',
    q(-),
    {
        name    => 'box',
        roles   => ['Member'],
        members => [],
        entries => [
            {
                entry          => 'ent_elsewhere',
                connector      => $connector,
                connector_slug => 'webdav',
                operation      => 'file_info',
                connections    => [$connection->{connection}],
                name           => 'info',
                defaults       => {},
                frozen         => {},
                always_visible => MCP::Json::false()
            }
        ]
    },
    'name:box'
);
shows(
    { webdav__read_file => 0, elsewhere__read_file => 0, webdav__delete_file => 1, box__info => 1 },
    'a rule and a toolbox made elsewhere'
);
is_as_if_never('webdav__read_file',    'a tool blocked elsewhere');
is_as_if_never('elsewhere__read_file', 'on another connection too');
is_called('box__info', 'an entry made elsewhere');

# --- this policyd goes on as before ------------------------------------------------------

my $lock = MCP::Root::slurp("$state/policyd.lock");
chomp $lock;
is($lock, $policy_pid, 'its lock names it still');
ok($stack->policyd->process->is_running, 'it runs');
$stack->ctl(qw(settings set --key collapse.threshold --value), 100);
shows({ webdav__read_file => 0, box__info => 1 }, 'after a write of its own');

# --- and back ----------------------------------------------------------------------------

elsewhere('update', 'restriction', 'rst_elsewhere', q(-), { effect => 'allow', target => { role => 'Member' }, items => [] });
elsewhere('delete', 'toolbox', 'tbx_elsewhere');
shows({ webdav__read_file => 0, webdav__delete_file => 0, box__info => 0 }, 'an allow of nothing, made elsewhere');
is_deeply([ grep { !/^elaichi__/ } MCP::Client::names($client->list) ], [], 'no connected tool at all is listed');
is_as_if_never('webdav__delete_file', 'what nothing allows');

elsewhere('update', 'restriction', 'rst_elsewhere', q(-),
    { effect => 'allow', target => { role => 'Member' }, items => [{ connector => $connector, operation => 'delete_file' }] });
shows({ webdav__read_file => 0, webdav__delete_file => 1 }, 'an allow of one');
elsewhere('update', 'restriction', 'rst_elsewhere', q(-), { effect => 'allow', target => { role => 'Member' }, items => 'all' });
{
    my $list;
    MCP::Net::wait_for(sub { $list = $client->list; return $list->{status} != 200 }, PATIENCE_S);
    is($list->{status}, 503, 'a rule that nobody can read: its target gets nothing at all');
    like($list->{body}, qr/"policy_unavailable"/, 'and is told why');
    my $before = () = $stack->upstream_log;
    is($client->call('webdav__file_info', \%read)->{status}, 503, 'neither by a call');
    my $after = () = $stack->upstream_log;
    is($after, $before, 'and nothing went upstream');
}
elsewhere('delete', 'restriction', 'rst_elsewhere');
elsewhere('delete', 'connection',  'cxn_elsewhere');
shows({ webdav__read_file => 1, webdav__delete_file => 1, elsewhere__read_file => 0 }, 'all of it taken back elsewhere');
is_called('webdav__read_file', 'as at first');

# --- grants and members are never cached ---------------------------------------------------

my $grant = $stack->grant('member@example.org');
my $granted = $client->with($grant->{token});
is(verdict($granted->call('webdav__read_file', \%read)), '200/result', 'a grant works');
elsewhere('delete', 'grant', $grant->{grant});
is($granted->call('webdav__read_file', \%read)->{status}, 401, 'deleted elsewhere, it is refused on the very next call');
my $row = $stack->ctl(qw(members list --all))->{items};
my ($member) = grep { $_->{email} eq 'member@example.org' } @$row;
my $suspended = document('member', $member->{member});
elsewhere('update', 'member', $member->{member}, q(-), { %$suspended, state => 'suspended' }, 'email:member@example.org');
isnt(verdict($client->call('webdav__read_file', \%read)), '200/result',
    'a member suspended elsewhere is refused on the very next call');

$stack->end(expected => [qw(MCP0301 PD0103)]);    # what the rule that nobody can read brings about
done_testing;
