package Bench::Policy;

# What a large policy costs: a policyd of its own with an organisation of a size, asked through the link, beside one whose
# store is empty but for one member. Times by one thread, so that nothing waits for anything else.

use strict;
use warnings;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;
use Bench::Build;
use Bench::Meter;

our %SIZE = (members => 10_000, roles => 200, items => 100_000, connectors => 400, operations => 50, grants => 1000);
our %EMPTY = (members => 1, roles => 0, items => 0, connectors => 1, operations => 1, grants => 1); # who has the role Member
my @ORDER = qw(members roles items connectors operations grants);
my $RESOURCE = 'http://127.0.0.1:1/mcp';

sub run {
    my (@command) = @_;
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1 }, @command);
    die "$command[0] failed: $err\n" if $status != 0;
    return $out;
}

# A policyd over a store that was filled before it starts: {policyd, tokens => FILE, start_s, kib}.
sub stand {
    my ($root, $name, $filler, %size) = @_;
    my $policyd = MCP::Policyd->new(root => $root, name => $name, config => { log_level => 'notice' });
    $policyd->start;
    $policyd->stop; # the store is there now, with its owner
    my $state = "$policyd->{dir}/state";
    my $tokens = $root->write("$name.tokens", run($filler, $state, $RESOURCE, 'http://127.0.0.1:1', map { $size{$_} } @ORDER));
    run('chown', '-R', '--reference', $state, $state) if $> == 0;
    my $began = Bench::Meter::now_s();
    $policyd->start;
    my ($left_out) = grep { / PD010[1-5]:/ } split /\n/, MCP::Root::slurp($policyd->log);
    die "policyd does not take what was filled in: $left_out\n" if defined $left_out;
    return { policyd => $policyd, tokens => $root->path("$name.tokens"), start_s => Bench::Meter::now_s() - $began };
}

sub views {
    my ($driver, $stand, $seconds) = @_;
    my $policyd = $stand->{policyd};
    local $ENV{BENCH_PID} = $policyd->pid;
    return MCP::Json::decode(
        run($driver, 'views', $policyd->endpoint, $policyd->key, $RESOURCE, $stand->{tokens}, 1, $seconds));
}

# One rule written through policyctl while all is there: from the order to its effect, as policyd's own duration tells it.
sub rule_us {
    my ($policyd) = @_;
    my @times;
    for my $number (1 .. 20) {
        my $rule = $policyd->ctl(qw(restrictions create),
            { effect => 'block', target => { role => "Role $number" }, items => [ { connector => "app$number" } ] });
        $policyd->ctl(qw(restrictions delete), { restriction => $rule->{restriction} });
    }
    my $rows = $policyd->ctl(qw(audit list --tool restrictions__create --limit 20));
    return Bench::Meter::median(map { $_->{duration_us} } @{ $rows->{items} });
}

sub measure {
    my ($root, $say, $rounds, $seconds) = @_;
    my ($driver, $filler) = (Bench::Build::link_bench($root->path('link_bench')), Bench::Build::fill_store($root->path('fill_store')));
    $say->('policy: filling the stores');
    my %stand = (large => stand($root, 'large', $filler, %SIZE), empty => stand($root, 'empty', $filler, %EMPTY));
    my %kib = map { $_ => Bench::Meter::memory_kib($stand{$_}{policyd}->pid, 'VmRSS') } keys %stand;
    my %rounds;
    for (1 .. $rounds) {
        for my $name (qw(large empty)) {
            $say->("policy: $name");
            push @{ $rounds{$name} }, views($driver, $stand{$name}, $seconds);
        }
        # every class is asked for the first time again
        $stand{large}{policyd}->ctl(qw(roles update), { role => 'Role 0', description => "round $_" });
    }
    my %row = (size => {%SIZE}, start_s => $stand{large}{start_s}, views => $rounds{large}[0]{views});
    my %kinds = (cold => ['large', 'first'], warm => ['large', 'again'], empty => ['empty', 'again']);
    for my $kind (keys %kinds) {
        my ($of, $when) = @{ $kinds{$kind} };
        $row{$kind} = { map { my $key = $_; $key => Bench::Meter::median(map { $_->{"${when}_$key"} } @{ $rounds{$of} }) }
                qw(p50_us p99_us cpu_us) };
    }
    for my $key (qw(p50_us cpu_us)) {
        $row{ratio}{$key} =
            Bench::Meter::median(map { $rounds{large}[$_]{"again_$key"} / ($rounds{empty}[$_]{"again_$key"} || 1) } 0 .. $rounds - 1);
    }
    $row{rule_us} = rule_us($stand{large}{policyd});
    $row{kib} = { loaded => $kib{large}, empty => $kib{empty}, used => Bench::Meter::memory_kib($stand{large}{policyd}->pid, 'VmRSS') };
    $_->{policyd}->stop for values %stand;
    return \%row;
}

1;
