package MCP::SearchBench;

# The public tool-search benchmark of MCP_TEST_DATA, asked through the product's own rooms (t/bench.d/search_bench.c) and judged by the
# benchmark's scorer.

use strict;
use warnings;
use MCP::Build;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;

sub data { return ($ENV{MCP_TEST_DATA} || MCP::Build::source() . '/../shared') . '/search-bench' }

# Why it can't be asked here; undef if it can.
sub missing {
    my $data = data();
    return "the benchmark is not there ($data): name it by MCP_TEST_DATA" if !-r "$data/sets.json";
    my ($status) = MCP::Policyd::capture({}, 'python3', '-c', 'import json, math');
    return $status == 0 ? undef : 'the scorer needs python3';
}

# Compiles the driver; dies with the compiler's words.
sub new {
    my ($class, $root) = @_;
    my $driver = $root->path('search_bench');
    my $built = MCP::Build::dir();
    my @command = (
        MCP::Build::config('CC'), qw(-std=gnu11 -D_GNU_SOURCE -O2), '-I' . MCP::Build::source(),
        MCP::Build::sanitized() ? '-fsanitize=address,undefined' : (),
        '-isystem', MCP::Build::apxs('APR_INCLUDEDIR'),
        '-o', $driver, MCP::Build::source() . '/t/bench.d/search_bench.c', "$built/.libs/libproto.a",
        qw(-lpthread -lm), map { split ' ', MCP::Build::config($_) || q() } qw(JANSSON_CFLAGS JANSSON_LIBS SODIUM_LIBS PCRE2_LIBS APU_LIBS APR_LIBS)
    );
    my ($status, $out) = MCP::Policyd::capture({}, @command);
    die "the driver does not compile: $out\n" if $status != 0;
    return bless {
        root   => $root,
        driver => $driver,
        words  => MCP::Build::source() . '/conf',
        sets   => MCP::Json::decode(MCP::Root::slurp(data() . '/sets.json'))
    }, $class;
}

sub run {
    my ($what, @command) = @_;
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1 }, @command);
    die "$what: $err\n" if $status != 0;
    return $out;
}

sub catalogs { my (@names) = @_; return join ',', map { m{/} ? $_ : data() . "/catalogs/$_.jsonl" } @names }
sub queries  { my ($self, $set) = @_; return data() . "/queries/$self->{sets}{$set}{queries}.jsonl" }
sub sets     { my ($self) = @_; return sort keys %{ $self->{sets} } }
sub catalog_names { my ($self, $set) = @_; return @{ $self->{sets}{$set}{catalogs} } }

# What the driver prints: options, the query file, catalogs.
sub found {
    my ($self, $options, $queries, @catalogs) = @_;
    return run('search_bench', $self->{driver}, @{$options}, $self->{words}, catalogs(@catalogs), $queries);
}

# The figures of a run.
sub score {
    my ($self, $out, $queries) = @_;
    my $file = $self->{root}->path('run.tsv');
    MCP::Root::write_file($file, $out);
    return MCP::Json::decode(run('score.py', 'python3', data() . '/score.py', '--json', $queries, $file));
}

sub measure {
    my ($self, $set, @options) = @_;
    return $self->score($self->found(\@options, $self->queries($set), $self->catalog_names($set)), $self->queries($set));
}

# The same by one of the benchmark's own rankers.
sub reference {
    my ($self, $set, $ranker) = @_;
    my $out = run('baselines.py', 'python3', data() . '/baselines.py', $ranker, '--limit', 10, catalogs($self->catalog_names($set)), $self->queries($set));
    return $self->score($out, $self->queries($set));
}

# Times of the index and of searches over catalogs: {tools, build_ms, p50_ms, p99_ms, index_bytes}.
sub times {
    my ($self, $set, @catalogs) = @_;
    return { map { split /\t/ } split /\n/, $self->found(['--time'], $self->queries($set), @catalogs) };
}

1;
