package Bench::Search;

# Search: what it finds, on the public halves of the tool-search benchmark and beside the benchmark's own rankers; and what it costs over
# 10,000 tools, in the rooms that a worker runs and through a real worker.

use strict;
use warnings;
use Time::HiRes ();
use MCP::Client;
use MCP::Json;
use MCP::SearchBench;
use MCP::Stack;
use Bench::Meter;

our @SETS = qw(arcade-short arcade-short-scale livemcp-route arcade-user livemcp-route-srv livemcp-route-scale livemcp-task
    arcade-user-scale apibank-kw mcpproxy-golden browser-prompt sealtools-single sealtools-multi metatool-single metatool-multi bfcl-live);
our $TOOLS = 10_000;
my $PER_CONNECTOR = 5000;

# --- what is found ---------------------------------------------------------------------

# Rows {set, n, product, retried, off, refined, bm25, 'bm25-args', empty}; or {skipped => why}.
sub ranking {
    my ($root, $say, @sets) = @_;
    my $missing = MCP::SearchBench::missing();
    return { skipped => $missing } if $missing;
    my $bench = MCP::SearchBench->new($root);
    my @rows;
    for my $set (@sets ? @sets : @SETS) {
        $say->("ranking: $set");
        my %got = (
            product => $bench->measure($set),
            retried => $bench->measure($set, '--retry-suggest'),
            off     => $bench->measure($set, '--floor-off'),
            map { $_ => $bench->reference($set, $_) } qw(refined bm25 bm25-args)
        );
        push @rows, {
            set   => $set,
            n     => $got{product}{queries},
            empty => { map { $_ => $got{$_}{empty} } qw(product refined) },
            map { $_ => $got{$_}{'recall@5'} } keys %got
        };
    }
    my $elsewhere = $bench->score($bench->found([], $bench->queries('livemcp-route'), 'arcade-core'), $bench->queries('livemcp-route'));
    return { rows => \@rows, elsewhere_empty => $elsewhere->{empty} };
}

# --- what it costs ----------------------------------------------------------------------

my @verbs  = qw(list get create update delete archive restore share export import);
my @things = qw(invoice customer refund ticket contract shipment campaign folder calendar employee vendor budget asset order quote lead meeting review policy claim);
my @places = qw(warehouse office region branch desk plant store depot team project);

# A connector of so many operations with words of real ones.
sub file {
    my ($number, $count) = @_;
    my @operations;
    for my $i (0 .. $count - 1) {
        my ($verb, $thing, $place) = ($verbs[ $i % 10 ], $things[ $i / 10 % 20 ], $places[ $i / 200 % 10 ]);
        my $id = sprintf '%s_%s_%s_%d', $verb, $thing, $place, $i / 2000;
        push @operations, {
            id => $id, method => 'GET', path => "/$id/{id}",
            description => "\u$verb the $thing of a $place, number $i of application $number, and tell what became of it.",
            parameters => [ { name => 'id', in => 'path', required => MCP::Json::true(), description => "Number of the $thing", schema => { type => 'string' } } ]
        };
    }
    return { slug => "app$number", label => "Application $number", base_url => 'http://127.0.0.1:1', operations => \@operations };
}

sub median { return Bench::Meter::median(@_) }

# Milliseconds of a call each, sorted.
sub ask {
    my ($client, $times, @queries) = @_;
    my @ms;
    for my $n (0 .. $times - 1) {
        my $query = $queries[ $n % @queries ];
        my $began = Time::HiRes::time();
        my $answer = $client->call('search_tools', { query => $query, detail => 'summary' });
        die "search_tools answers $answer->{status}\n" if $answer->{status} != 200;
        push @ms, 1000 * (Time::HiRes::time() - $began);
    }
    return [ sort { $a <=> $b } @ms ];
}

# {driver => {...} or {skipped}, worker => {tools, first_ms, p50_ms, p99_ms, empty_p50_ms}}. An empty query does all that a search does but search: its
# record in the trail and its answer; what is above it is the search.
sub cost {
    my ($root, $say) = @_;
    my $missing = MCP::SearchBench::missing();
    my %cost = (driver => { skipped => $missing });
    if (!$missing) {
        $say->('search: the rooms');
        $cost{driver} = MCP::SearchBench->new($root)->times('livemcp-route', qw(livemcp toucan arcade-core arcade-api));
    }
    $say->("search: a worker with $TOOLS tools");
    my $stack = MCP::Stack->new(webdav => 0, collapse => 1, log_level => 'notice', server => "StartServers 1\nServerLimit 1\nThreadsPerChild 25\nMaxRequestWorkers 25");
    $stack->connector(file($_, $PER_CONNECTOR)) for 1 .. $TOOLS / $PER_CONNECTOR;
    my $client = $stack->client(keep => 1);
    $client->call('elaichi__whoami__get', {});
    my @queries = map { my $verb = $_; map { "$verb $_ application" } @things[ 0 .. 9 ] } @verbs[ 0 .. 4 ];
    my $first = ask($client, 1, $queries[0]);
    my ($full, $empty) = ([], []);
    for (1 .. 5) {    # in turns, so that what else the machine does is in both
        push @$full,  @{ ask($client, 100, @queries) };
        push @$empty, @{ ask($client, 100, q()) };
    }
    my @full = sort { $a <=> $b } @$full;
    my ($parent, @workers) = Bench::Meter::family($stack->gateway->process->{pid});
    $cost{worker} = { tools => $TOOLS, first_ms => $first->[0], p50_ms => median(@$full), p99_ms => $full[ int 0.99 * $#full ], empty_p50_ms => median(@$empty),
        kib => (sort { $b <=> $a } map { Bench::Meter::memory_kib($_, 'VmRSS') } @workers)[0] };
    $stack->gateway->stop;
    $stack->policyd->stop;
    return \%cost;
}

1;
