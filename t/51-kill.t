# policyd, a child of httpd, or both are killed at random moments under load: what was executed is on record, what did not
# end is recorded as interrupted in time, and the service comes back by itself. policyd is started again as a supervisor
# would.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Load;
use MCP::Net;
use MCP::Policyd;
use MCP::Stack;
use MCP::Witness;

use constant {
    CLIENTS => 10,
    BEATS_S => 6,    # three beats
    SLACK_S => 4     # a second's tick, another for the copy, and a busy machine
};

my $stack = MCP::Stack->new(
    webdav    => 0,
    log_level => 'info',
    server    => <<'EOF'
<IfModule !mpm_prefork_module>
    StartServers 2
    ServerLimit 4
    ThreadsPerChild 12
    MaxRequestWorkers 48
    MinSpareThreads 12
    MaxSpareThreads 48
</IfModule>
<IfModule mpm_prefork_module>
    StartServers 24
    MaxRequestWorkers 64
</IfModule>
MaxKeepAliveRequests 0
MCPMaxCalls 96
MCPPolicyTimeout 2s
EOF
);
my ($policyd, $gateway) = ($stack->policyd, $stack->gateway);
my $witness = MCP::Witness->start(root => $stack->root, slow => 0.03);
$stack->reconfigure(allow => [$witness->origin]);
$gateway->graceful;
$stack->connector($witness->file);

my $seed = defined $ENV{MCP_TEST_SEED} ? $ENV{MCP_TEST_SEED} : time % 100_000;
srand $seed;
note "MCP_TEST_SEED=$seed repeats the choices";

my %kill = (
    policyd => sub { $policyd->kill9; $policyd->start },
    child   => sub { my @children = $gateway->children; kill 'KILL', $children[rand @children] },
    both    => sub {
        my @children = $gateway->children;
        kill 'KILL', $children[rand @children];
        $policyd->kill9;
        $policyd->start;
    }
);

# Waits for so many more bytes of record: a random moment that depends on no clock.
sub moment {
    my ($bytes) = @_;
    my $size = $witness->size;
    return MCP::Net::wait_for(sub { $witness->size >= $size + $bytes });
}

my $load = MCP::Load->start(
    root    => $stack->root,
    url     => $stack->url,
    tokens  => [$stack->client->token],
    clients => CLIENTS,
    keep    => 'both',
    retry   => 0
);
for my $round (1 .. 3) {
    for my $what (sort keys %kill) {
        ok moment(500 + int rand 3000), "round $round: calls are executed before $what is killed";
        $kill{$what}->();
    }
}
ok moment(2000), 'and after the last kill';

# the last child goes while calls are in flight, and nobody comes after it
my $killed = MCP::Witness::now();
kill 'KILL', $gateway->children;
my @calls = $load->stop;
ok MCP::Net::wait_for(sub { !grep { $_->{outcome} eq 'running' } $stack->calls }, 30), 'no attempt stays running';
cmp_ok MCP::Witness::now() - $killed, '<', BEATS_S + SLACK_S, 'three beats after its child has gone an attempt is interrupted';

my @rows = $stack->calls;
my %times;
$times{ MCP::Load::trace($_->{mark}) }++ for $witness->calls;
my %row;
push @{ $row{ $_->{trace_id} } }, $_ for @rows;
my %call = map { MCP::Load::trace($_->{mark}) => $_ } @calls;
my %outcomes;
$outcomes{ $_->{outcome} . ($_->{error_code} ? "/$_->{error_code}" : q()) }++ for @rows;
my %statuses;
$statuses{ $_->{status} . ($_->{own} ? ' own' : q()) }++ for @calls;
note 'rows: ' . join ', ', map { "$_ $outcomes{$_}" } sort keys %outcomes;
note 'answers: ' . join ', ', map { "$_ $statuses{$_}" } sort keys %statuses;
note keys(%times) . ' calls executed';

is_deeply [grep { !$row{$_} } keys %times], [], 'every executed call has a row';
is_deeply [grep { @{ $row{$_} } > 1 } keys %row], [], 'no attempt has two';
is_deeply [grep { $times{$_} > 1 } keys %times], [], 'no call was executed twice';
is_deeply [grep { !$times{$_} } map { $_->{trace_id} } grep { $_->{outcome} eq 'ok' } @rows], [],
    'what is recorded as ok was executed';
is_deeply [grep { !$row{$_} || $row{$_}[0]{outcome} ne 'ok' } grep { $call{$_}{own} } keys %call], [],
    'what was answered is recorded as ok';
is_deeply [grep { $call{$_}{status} == 503 && $times{$_} } keys %call], [], 'what was answered 503 was not executed';
is_deeply [grep { !/^(?:ok|interrupted|error\/cancelled|error\/outcome_unrecorded)$/ } keys %outcomes], [],
    'the rows have no other outcome';
ok $outcomes{interrupted}, 'some were interrupted';
is_deeply [grep { !/^(?:200 own|503|0)$/ && !/^200$/ } keys %statuses], [], 'clients saw nothing else';

# the trail itself
my ($status, $out) = MCP::Policyd::capture({}, 'sqlite3', '-readonly', $policyd->db('trail'),
    'SELECT seq, kind, ifnull(begin_seq, 0), ifnull(supersedes, 0) FROM record ORDER BY rowid');
is $status, 0, 'the trail can be read' or diag $out;
my ($last, %begun, %ended, @wrong) = (0);
for my $line (split /\n/, $out) {
    my ($seq, $kind, $begin, $supersedes) = split /\|/, $line;
    push @wrong, "$seq after $last" if $seq != $last + 1;
    push @wrong, "$seq ends $begin, which has not begun" if $begin && !$begun{$begin};
    push @wrong, "$seq ends $begin, which $ended{$begin} has ended" if $begin && $ended{$begin} && $supersedes != $ended{$begin};
    $begun{$seq} = 1 if $kind == 1;
    $ended{$begin} = $seq if $begin;
    $last = $seq;
}
is_deeply \@wrong, [], 'its numbers rise by one, and every begin has one end';
is_deeply [grep { !$ended{$_} } keys %begun], [], 'nothing in it is open';

$stack->end(expected => [qw(AH10393 MCP0301 PD0121 AH10392), qr/exit signal Killed/]);
done_testing;
