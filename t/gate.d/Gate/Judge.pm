package Gate::Judge;

# What a run should have been and was, checks around the runs, and the report. A run is judged by what reached the upstream and the trail, not by
# what the host says of itself.

use strict;
use warnings;
use MCP::Client;
use MCP::Json;

sub bool { return $_[0] ? MCP::Json::true() : MCP::Json::false() }

# The tools that were run, by the trail: a row names what was called, whatever the spelling.
sub called { my ($seen) = @_; return map { $_->{tool} } grep { $_->{tool} ne 'search_tools' } @{ $seen->{rows} } }

# A list may be narrowed as the host sees fit.
sub without_query { my ($request) = @_; $request =~ s/^(GET [^?]*)\?.*/$1/s; return $request }

sub run {
    my ($condition, $prompt, $expected, $repetition, $seen) = @_;
    my @called = called($seen);
    my $searches = grep { $_->{tool} eq 'search_tools' } @{ $seen->{rows} };
    my $wanted = $condition eq 'collapsed' ? $expected->{searches} : 0;
    my @upstream = @{ $seen->{upstream} };
    my $only = 'nothing else was called';
    my @checks = (
        [ 'the right tool', defined $expected->{tool} ? grep({ $_ eq $expected->{tool} } @called) > 0 : !@called ],
        [ 'the right request upstream', defined $expected->{upstream} ? @upstream == 1 && without_query($upstream[0]) eq $expected->{upstream} : !@upstream ],
        [ $wanted ? 'exactly one search' : 'no search', $searches == $wanted ],
        [ $only, !grep { !defined $expected->{tool} || $_ ne $expected->{tool} } @called ],
        [ 'every attempt is on record', @{ $seen->{rows} } == @{ $seen->{calls} } ],
        [ 'the answer', !$expected->{answer} || $seen->{text} =~ $expected->{answer} ]
    );
    # Of a run that was broken off only this can be said: what it did until then was nothing that it should not have done.
    my @missing = map { $_->[0] } grep { !$_->[1] && (!$seen->{skipped} || $_->[0] eq $only) } @checks;
    return {
        prompt     => $prompt->{name},
        condition  => $condition,
        repetition => $repetition,
        expected   => { tool => $expected->{tool}, searches => $wanted, upstream => $expected->{upstream} },
        observed   => { tools => \@called, via => [ map { $_->{via} } @{ $seen->{rows} } ], searches => $searches, upstream => \@upstream, listed => $seen->{listed}, turns => $seen->{turns} },
        missing    => \@missing,
        skipped    => $seen->{skipped},
        tokens     => { definitions => $seen->{definitions}, initial => $seen->{initial}, total => $seen->{total}, provider => $seen->{usage} },
        ms         => $seen->{ms},
        list_ms    => $seen->{listMs}
    };
}

# Safety and recovery in a condition, by calls of our own.
sub around {
    my ($registry, $condition) = @_;
    my $client = $registry->client;
    my $before = $client->list(id => 1)->{body};
    my %listed = map { $_ => 1 } MCP::Client::names($client->list);
    my @checks = (safety($registry, $client, \%listed), recovery($registry, $client, \%listed));
    push @checks, [ 'recovery: search and execute are listed', $listed{search_tools} && $listed{execute_tool} ] if $condition eq 'collapsed';
    push @checks, [ 'the list has the same bytes after all that', $client->list(id => 1)->{body} eq $before ];
    return map { { name => $_->[0], ok => bool($_->[1]) } } @checks;
}

sub safety {
    my ($registry, $client, $listed) = @_;
    my $sent = $registry->requests;
    my %arguments = (id => 'C-1');
    my ($denied, $unknown) = map { $client->call($_, {%arguments}, id => 1) } map { "people__${_}_contract" } qw(cancel frobnicate);
    my ($row) = last_row($registry, 'people__cancel_contract');
    my ($through, $not) = map { $client->call('execute_tool', { name => $_, arguments => {%arguments} }, id => 1) } map { "people__${_}_contract" } qw(cancel frobnicate);
    my ($other) = last_row($registry, 'people__cancel_contract');
    return (
        [ 'safety: a withheld tool is not listed', !$listed->{people__cancel_contract} ],
        [ 'safety: a withheld tool answers as one that never was', same_but_name($denied, $unknown) ],
        [ 'safety: and its row says why', is_restricted($row) ],
        [ 'safety: through execute_tool it answers as one that never was, too', same_but_name($through, $not) ],
        [ 'safety: and that has a row of its own, which says why', is_restricted($other) && $other->{seq} > $row->{seq} ],
        [ 'safety: nothing was sent for it', $registry->requests == $sent ]
    );
}

sub last_row { my ($registry, $tool) = @_; return grep { $_->{tool} eq $tool } @{ $registry->stack->ctl(qw(audit list --limit 10))->{items} } }
sub is_restricted { my ($row) = @_; return $row && $row->{outcome} eq 'denied' && ($row->{error_code} || q()) eq 'restricted' }

sub recovery {
    my ($registry, $client, $listed) = @_;
    my @operations = map { "elaichi__$_" } qw(whoami__get connections__list tools__get);
    my $hint = (content($client->call('desk__get_ticket', {}))->{error} || {})->{hint} || q();
    my $nothing = content($client->call('search_tools', { query => 'submarine periscope' }));
    my $found = content($client->call('search_tools', { query => 'cancel parking permit' }));
    my $sent = $registry->requests;
    my $ran = $client->call('execute_tool', { name => 'desk__list_tickets', arguments => {} })->{json}{result};
    my $first = ref $found->{items} eq 'ARRAY' && @{ $found->{items} } ? $found->{items}[0]{name} : q();
    my %arguments = (elaichi__tools__get => { names => ['facilities__cancel_parking_permit'] });
    my @refused = grep { my $result = $client->call($_, $arguments{$_} || {})->{json}{result}; !$result || $result->{isError} } @operations;
    return (
        [ 'recovery: whoami, connections and definitions are listed', !grep { !$listed->{$_} } @operations ],
        [ 'recovery: and answer', !@refused ],
        [ 'recovery: a refused call names what helps', $hint =~ /elaichi__tools__get/ && $listed->{elaichi__tools__get} ],
        [ 'recovery: a search without an answer says so', ref $nothing->{items} eq 'ARRAY' && !@{ $nothing->{items} } && @{ $nothing->{unmatched} || [] } > 0 ],
        [ 'recovery: after it another search finds', $first eq 'facilities__cancel_parking_permit' ],
        [ 'recovery: and a call is served', $ran && !$ran->{isError} && $registry->requests == $sent + 1 ]
    );
}

sub content { my ($answer) = @_; return ($answer->{json}{result} || {})->{structuredContent} || {} }

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
                provider_initial_tokens => median(map { $_->{tokens}{provider} ? $_->{tokens}{provider}{initial} : () } @done),
                provider_tokens => median(map { $_->{tokens}{provider} ? $_->{tokens}{provider}{input} : () } @done),
                ms => median(map { $_->{ms} } @done),
                list_ms => median(map { $_->{list_ms} } @done)
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
    my $text = "host $report->{host}; definitions $report->{digest}; tokens by $report->{tokenizer}; medians of runs\n";
    for my $row (@{ $report->{prompts} }) {
        $text .= "\n$row->{prompt}: $row->{text}\n";
        $text .= sprintf "  %-10s %5s %5s %7s %14s %13s %17s %9s %9s\n", q(), qw(runs right skipped), 'initial tokens', 'total tokens', 'provider says', 'ms', 'list ms';
        for my $condition (qw(flat collapsed)) {
            my $c = $row->{$condition};
            my $said = defined $c->{provider_tokens} ? number($c->{provider_initial_tokens}) . ', ' . number($c->{provider_tokens}) : '-';
            $text .= sprintf "  %-10s %5d %5d %7d %14s %13s %17s %9s %9s\n", $condition, @{$c}{qw(runs right skipped)},
                number($c->{initial_tokens}), number($c->{total_tokens}), $said, number($c->{ms}, '%.1f'), number($c->{list_ms}, '%.1f');
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
