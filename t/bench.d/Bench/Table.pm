package Bench::Table;

# The result as text: Markdown, so that it can stand in the README as it is.

use strict;
use warnings;

sub table {
    my ($heads, @rows) = @_;
    my @all = ($heads, [map { $_ eq $heads->[0] ? '---' : '---:' } @$heads], @rows);
    return join(q(), map { '| ' . join(' | ', @$_) . " |\n" } @all) . "\n";
}

sub grouped {
    my ($number) = @_;
    my $text = sprintf '%.0f', $number;
    1 while $text =~ s/^(-?\d+)(\d{3})/$1,$2/;
    return $text;
}

sub mib { return sprintf '%.1f', $_[0] / 1024 }

sub text {
    my ($result) = @_;
    my $machine = $result->{machine};
    my $text = sprintf "%d cores, %s, %d connections, %d rounds of %d s each side, medians\n\n",
        @{$machine}{qw(cores cflags connections rounds seconds)};
    my @programs = qw(gateway policyd plain upstream wrk);
    $text .= table(
        ['', 'gateway /s', 'other /s', 'ratio', 'goal', 'ratio by CPU', 'p50 ms', 'other p50'],
        map {
            my $row = $_;
            [
                "$row->{name} against $row->{against}",
                (map { grouped($row->{$_}{per_second}) } qw(ours other)),
                sprintf('%.2f', $row->{ratio}),
                defined $row->{budget} ? sprintf('%.1f', $row->{budget}) : '',
                sprintf('%.2f', $row->{cpu_ratio}),
                map { sprintf '%.2f', $row->{$_}{p50_us} / 1000 } qw(ours other)
            ]
        } @{ $result->{rows} }
    ) if @{ $result->{rows} };
    $text .= "CPU time of one request, microseconds:\n\n" if @{ $result->{rows} };
    $text .= table(
        ['', @programs, 'all', 'other programs of the machine'],
        map {
            my $row = $_;
            map {
                my ($side, $name) = @$_;
                my $cpu = $row->{$side}{cpu_us};
                my $sum = 0;
                $sum += $_ for values %$cpu;
                [
                    $name,
                    (map { defined $cpu->{$_} ? grouped($cpu->{$_}) : '' } @programs),
                    grouped($sum),
                    sprintf('%.0f %%', 100 * ($row->{$side}{foreign} > 0 ? $row->{$side}{foreign} : 0))
                ]
            } (['ours', $row->{name}], ['other', $row->{against}])
        } @{ $result->{rows} }
    ) if @{ $result->{rows} };
    my $link = $result->{link};
    $text .= table(
        ['link to policyd', 'round trips /s', 'p50 us', 'p99 us', 'policyd CPU us a round trip'],
        map { [$_->[1], map { grouped($_) } @{ $link->{ $_->[0] } }{qw(per_second p50_us p99_us policyd_us)}] }
            (['resolve', 'resolve'], ['call', 'call.begin and call.end (times of the pair)'])
    ) if %$link;
    my $policy = $result->{policy};
    if ($policy) {
        my $size = $policy->{size};
        $text .= table(
            [
                sprintf('policy: %s members, %s roles, %s rule items, %s operations',
                    map { grouped($_) } @{$size}{qw(members roles items)}, $size->{connectors} * $size->{operations}),
                'p50 us', 'p99 us', 'policyd CPU us'
            ],
            (map { [$_->[1], map { grouped($_) } @{ $policy->{ $_->[0] } }{qw(p50_us p99_us cpu_us)}] }
                ([
                    'cold', sprintf 'resolve, a view made for the first time (%s views; goal: p50 below 1,000)', grouped($policy->{views})
                ], ['warm', 'resolve, a view that is there'], ['empty', 'the same of a policyd with one member and one tool'])),
            [
                'ratio of the last two (goal: at most 1.3)',
                sprintf('%.2f', $policy->{ratio}{p50_us}),
                q(), sprintf('%.2f', $policy->{ratio}{cpu_us})
            ],
            ['one rule written, from begin to effect', grouped($policy->{rule_us}), q(), q()]
        );
        $text .= table(
            ['policyd with it', q()],
            ['start, s', sprintf('%.1f', $policy->{start_s})],
            map { [$_->[1], mib($policy->{kib}{ $_->[0] })] } (
                ['empty', 'resident with one member and one tool, MiB'],
                ['loaded', 'resident when started, MiB'],
                ['used', 'resident after all, MiB']
            )
        );
    }
    $text .= table(map { [ map { !defined $_ ? q() : /^\d{4,}\z/ ? grouped($_) : $_ } @$_ ] } Bench::Footprint::rows($result->{footprint})) if $result->{footprint};
    $text .= search($result->{search}) if $result->{search};
    $text .= ranking($result->{ranking}) if $result->{ranking};
    $text .= imported($result->{import}) if $result->{import};
    $text .= table(['peak memory', 'MiB'], map { [$_, mib($result->{peaks}{$_})] } sort keys %{ $result->{peaks} });
    my @stops = @{ $result->{memory} };
    return $text . busy($result) if !@stops;
    my @names = sort keys %{ $stops[0]{kib} };
    $text .= table(['resident after calls, MiB', @names],
        map { my $stop = $_; [grouped($stop->{calls}), map { mib($stop->{kib}{$_}) } @names] } @stops);
    if (@stops > 1) {
        $text =~ s/\n\n\z/\n/;
        $text .= table(['', @names], ['growth, KiB', map { grouped($stops[-1]{kib}{$_} - $stops[0]{kib}{$_}) } @names])
            =~ s/\A.*\n.*\n//r;
    }
    return $text . busy($result);
}

sub search {
    my ($search) = @_;
    my ($driver, $worker) = @{$search}{qw(driver worker)};
    my $text = defined $driver->{skipped} ? "search, the rooms: skipped: $driver->{skipped}\n\n" : table(
        ['search: the rooms, ' . grouped($driver->{tools}) . ' real tools, CPU time', q()],
        ['index built, ms (goal: below 150)', sprintf '%.0f', $driver->{build_ms}],
        ['a search, p50 ms (goal: below 1)',  sprintf '%.3f', $driver->{p50_ms}],
        ['a search, p99 ms',                  sprintf '%.3f', $driver->{p99_ms}],
        ['index, MiB',                        mib($driver->{index_bytes} / 1024)]
    );
    return $text . table(
        ['search_tools through a worker, ' . grouped($worker->{tools}) . ' tools, wall time of the request', q()],
        ['the first: view fetched, index built, ms', sprintf '%.0f', $worker->{first_ms}],
        ['p50 ms',                                   sprintf '%.2f', $worker->{p50_ms}],
        ['p99 ms',                                   sprintf '%.2f', $worker->{p99_ms}],
        ['p50 ms of an empty query (the same without searching)', sprintf '%.2f', $worker->{empty_p50_ms}],
        ['resident, MiB',                            mib($worker->{kib})]
    );
}

sub imported {
    my ($import) = @_;
    my $catalog = $import->{catalog};
    return table(
        ["API descriptions: all of $Bench::Import::PACKAGE", q()],
        ['documents', grouped($import->{documents})],
        ['converted and taken', sprintf '%s (%.1f %%; goal: 99 %%)', grouped($import->{converted}), 100 * $import->{converted} / $import->{documents}],
        ['operations', grouped($import->{operations})],
        ['seconds', sprintf '%.0f', $import->{seconds}],
        ['memory of the converter at most, MiB', mib($import->{kib})]
    ) . join(q(), map { "Refused: $_->{document}: $_->{why}.\n" } @{ $import->{refused} }) . (@{ $import->{refused} } ? "\n" : q()) . table(
        [ sprintf('a catalog of %s connectors with %s operations', grouped($catalog->{connectors}), grouped($catalog->{operations})), q() ],
        ['imported by policyctl, s', sprintf '%.0f', $catalog->{import_s}],
        ['connectors list, p50 ms within policyd (goal: below 5)', sprintf '%.1f', $catalog->{list_us} / 1000],
        ['policyd after the import, MiB (goal: below 300)', mib($catalog->{kib})],
        ['policyd when started again, MiB', mib($catalog->{started_kib})],
        ['start, s (goal: below 2)', sprintf '%.1f', $catalog->{start_s}]
    );
}

sub ranking {
    my ($ranking) = @_;
    return "ranking: skipped: $ranking->{skipped}\n\n" if defined $ranking->{skipped};
    my $share = sub { my ($value, $empty) = @_; return sprintf('%.2f', $value) . ($empty ? sprintf ' / %.0f %%', 100 * $empty : q()) };
    return table(
        ['recall@5 of public queries (share of empty answers)', 'n', 'product', 'after a retry', 'off', 'refined', 'bm25', 'bm25-args'],
        map {
            [
                $_->{set}, $_->{n}, $share->($_->{product}, $_->{empty}{product}), $share->($_->{retried}), $share->($_->{off}),
                $share->($_->{refined}, $_->{empty}{refined}), $share->($_->{bm25}), $share->($_->{'bm25-args'})
            ]
        } @{ $ranking->{rows} }
    ) . sprintf "livemcp-route asked of arcade-core: %.0f %% empty.\n\n", 100 * $ranking->{elsewhere_empty};
}

# Other programs take from the side that waits for the disk what they cannot take from the one that never waits.
sub busy {
    my ($result) = @_;
    my ($most) = sort { $b <=> $a } map { ($_->{ours}{foreign}, $_->{other}{foreign}) } @{ $result->{rows} };
    return q() if !defined $most || $most < 0.1;
    return sprintf "The machine was busy: other programs took up to %.0f %% of its CPU time. Trust the ratio by CPU.\n",
        100 * $most;
}

1;
