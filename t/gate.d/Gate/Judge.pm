package Gate::Judge;

# What a run should have been and was, checks around the runs, and the report. A run is judged by what reached the upstream and the trail, not by
# what the host says of itself.

use strict;
use warnings;
use List::Util qw(sum0);
use MCP::Client;
use MCP::Json;

sub bool { return $_[0] ? MCP::Json::true() : MCP::Json::false() }

# The tools that were run, by the trail: a row names what was called, whatever the spelling.
sub called { my ($seen) = @_; return map { $_->{tool} } grep { $_->{tool} ne 'search_tools' } @{ $seen->{rows} } }

sub run {
    my ($condition, $prompt, $expected, $repetition, $seen) = @_;
    my @called = called($seen);
    my $searches = grep { $_->{tool} eq 'search_tools' } @{ $seen->{rows} };
    my $wanted = $condition eq 'collapsed' ? $expected->{searches} : 0;
    my @upstream = @{ $seen->{upstream} };
    my @checks = (
        [ 'the right tool', defined $expected->{tool} ? grep({ $_ eq $expected->{tool} } @called) > 0 : !@called ],
        [ 'the right request upstream', defined $expected->{upstream} ? "@upstream" eq $expected->{upstream} : !@upstream ],
        [ $wanted ? 'exactly one search' : 'no search', $searches == $wanted ],
        [ 'nothing else was called', !grep { !defined $expected->{tool} || $_ ne $expected->{tool} } @called ],
        [ 'every attempt is on record', @{ $seen->{rows} } == @{ $seen->{calls} } ],
        [ 'the answer', !$expected->{answer} || $seen->{text} =~ $expected->{answer} ]
    );
    my @missing = $seen->{skipped} ? () : map { $_->[0] } grep { !$_->[1] } @checks;
    return {
        prompt     => $prompt->{name},
        condition  => $condition,
        repetition => $repetition,
        expected   => { tool => $expected->{tool}, searches => $wanted, upstream => $expected->{upstream} },
        observed   => { tools => \@called, searches => $searches, upstream => \@upstream, listed => $seen->{listed}, turns => $seen->{turns} },
        missing    => \@missing,
        skipped    => $seen->{skipped},
        tokens     => { definitions => $seen->{definitions}, initial => $seen->{initial}, total => $seen->{total}, provider => $seen->{usage} },
        ms         => $seen->{ms}
    };
}

# Safety and recovery in a condition, by calls of our own.
sub around {
    my ($registry, $condition) = @_;
    my $client = $registry->client;
    my $stack = $registry->stack;
    my %listed = map { $_ => 1 } MCP::Client::names($client->list);
    my $before = $client->list(id => 1)->{body};
    my $sent = $registry->requests;
    my $denied = $client->call('people__cancel_contract', { id => 'C-1' }, id => 1);
    my $unknown = $client->call('people__frobnicate_contract', { id => 'C-1' }, id => 1);
    my ($row) = reverse grep { $_->{tool} eq 'people__cancel_contract' } @{ $stack->ctl(qw(audit list --limit 10))->{items} };
    my $incomplete = $client->call('desk__get_ticket', {});
    my $hint = ($incomplete->{json}{result}{structuredContent}{error} || {})->{hint} || q();
    my $nothing = $client->call('search_tools', { query => 'submarine periscope' })->{json}{result}{structuredContent} || {};
    my @checks = (
        [ 'safety: a withheld tool is not listed', !$listed{people__cancel_contract} ],
        [ 'safety: a withheld tool answers as one that never was', same_but_name($denied, $unknown) ],
        [ 'safety: and its row says why', $row && $row->{outcome} eq 'denied' && $row->{error_code} eq 'restricted' ],
        [ 'safety: nothing was sent for it', $registry->requests == $sent ],
        [ 'recovery: whoami, connections and definitions are listed', !grep { !$listed{$_} } map { "elaichi__$_" } qw(whoami__get connections__list tools__get) ],
        [ 'recovery: a refused call names what helps', $hint =~ /elaichi__tools__get/ ],
        [ 'recovery: a search without an answer says so', ref $nothing->{items} eq 'ARRAY' && !@{ $nothing->{items} } && @{ $nothing->{unmatched} || [] } > 0 ],
        [ 'the list has the same bytes after all that', $client->list(id => 1)->{body} eq $before ]
    );
    push @checks, [ 'recovery: search and execute are listed', $listed{search_tools} && $listed{execute_tool} ] if $condition eq 'collapsed';
    return map { { name => $_->[0], ok => bool($_->[1]) } } @checks;
}

sub same_but_name {
    my ($one, $other) = map { my $body = $_->{body}; $body =~ s/people__\w+/NAME/g; $body =~ s/\b\d+-\d+\b/AUDIT/g; "$_->{status} $body" } @_;
    return $one eq $other;
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return undef if !@sorted;
    return @sorted % 2 ? $sorted[ $#sorted / 2 ] : ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2;
}

sub report {
    my (%given) = @_;
    my @prompts;
    for my $prompt (@{ $given{prompts} }) {
        my %row = (prompt => $prompt->{name}, text => $prompt->{text});
        my %ms;
        for my $condition (qw(flat collapsed)) {
            my @all = grep { $_->{prompt} eq $prompt->{name} && $_->{condition} eq $condition } @{ $given{runs} };
            my @done = grep { !$_->{skipped} } @all;
            $ms{ $_->{repetition} }{$condition} = $_->{ms} for @done;
            $row{$condition} = {
                runs    => scalar @all,
                skipped => @all - @done,
                right   => scalar(grep { !@{ $_->{missing} } } @done),
                initial_tokens => median(map { $_->{tokens}{initial} } @done),
                total_tokens   => median(map { $_->{tokens}{total} } @done),
                provider_tokens => median(map { $_->{tokens}{provider} ? $_->{tokens}{provider}{input} : () } @done),
                ms => median(map { $_->{ms} } @done)
            };
        }
        my @pairs = grep { defined $_->{flat} && defined $_->{collapsed} } values %ms;
        $row{collapsed_faster} = grep { $_->{collapsed} < $_->{flat} } @pairs;
        $row{collapsed_slower} = grep { $_->{collapsed} > $_->{flat} } @pairs;
        push @prompts, \%row;
    }
    my $bad = grep { $_->{skipped} || @{ $_->{missing} } } @{ $given{runs} };
    my $failed = grep { !$_->{ok} } @{ $given{checks} };
    return {
        host    => $given{host},
        digest  => $given{digest},
        tokenizer => 'o200k_base',
        prompts => \@prompts,
        runs    => $given{runs},
        checks  => $given{checks},
        ok      => bool(!$bad && !$failed)
    };
}

sub number { my ($value, $form) = @_; return defined $value ? sprintf($form || '%.0f', $value) : '-' }

sub text {
    my ($report) = @_;
    my $text = "host $report->{host}; definitions $report->{digest}; tokens by $report->{tokenizer}\n";
    for my $row (@{ $report->{prompts} }) {
        $text .= "\n$row->{prompt}: $row->{text}\n";
        $text .= sprintf "  %-10s %5s %5s %7s %14s %13s %14s %9s\n", q(), qw(runs right skipped), 'initial tokens', 'total tokens', 'provider says', 'median ms';
        for my $condition (qw(flat collapsed)) {
            my $c = $row->{$condition};
            $text .= sprintf "  %-10s %5d %5d %7d %14s %13s %14s %9s\n", $condition, @{$c}{qw(runs right skipped)},
                number($c->{initial_tokens}), number($c->{total_tokens}), number($c->{provider_tokens}), number($c->{ms}, '%.1f');
        }
        $text .= "  collapsed was faster in $row->{collapsed_faster} pairs of runs, slower in $row->{collapsed_slower}\n";
    }
    $text .= "\n";
    for my $run (grep { $_->{skipped} } @{ $report->{runs} }) {
        $text .= "skipped: $run->{condition}, $run->{prompt}, $run->{repetition}: $run->{skipped}\n";
    }
    for my $run (@{ $report->{runs} }) {
        next if !@{ $run->{missing} };
        $text .= "missing: $run->{condition}, $run->{prompt}, $run->{repetition}: " . join('; ', @{ $run->{missing} })
            . '; called ' . (join(', ', @{ $run->{observed}{tools} }) || 'nothing') . "\n";
    }
    my @failed = grep { !$_->{ok} } @{ $report->{checks} };
    $text .= "failed: $_->{condition}: $_->{name}\n" for @failed;
    return $text . sprintf "%d runs, %d checks around them: %s\n", scalar @{ $report->{runs} }, scalar @{ $report->{checks} },
        $report->{ok} ? 'all as expected' : 'NOT as expected';
}

1;
