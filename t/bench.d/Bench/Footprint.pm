package Bench::Footprint;

# What the list of tools takes of a prompt, by a real tokenizer: of a Member who has the application of 142 tools
# (MCP::Fixture142), listed flat and collapsed, operations of the control plane included. Nothing is timed.

use strict;
use warnings;
use MCP::Fixture142;
use MCP::Json;
use MCP::Node;
use MCP::Root;

our @ENCODINGS = qw(o200k_base cl100k_base);

# {characters, o200k_base, cl100k_base} of each text, as arrays.
sub count {
    my ($root, @texts) = @_;
    my $file = $root->write('texts.json', MCP::Json::encode([@texts]));
    my ($status, $counts, $said) = MCP::Node::script('tokens.mjs', $file);
    die "tokens.mjs: $said\n" if $status != 0;
    return $counts;
}

sub sum { my ($sum, @more) = (0, @_); $sum += $_ for @more; return $sum }

# The definitions of a list as they are sent, without what stands around them.
sub definitions {
    my ($answer) = @_;
    my ($text) = $answer->{body} =~ /"tools":(\[.*\])/s;
    die "no list: $answer->{body}\n" if !defined $text || ref MCP::Json::decode($text) ne 'ARRAY';
    return $text;
}

sub instructions { my ($client) = @_; return $client->discover->{json}{result}{instructions} }

# Measures with a stack that collapses by default and has no connection yet; the fixture stays connected.
sub measure {
    my ($stack) = @_;
    my $client = $stack->client;
    my (%texts, %seen);
    $stack->connector(MCP::Fixture142::connector('http://127.0.0.1:9'));
    for my $mode (qw(never auto)) {
        $stack->ctl(qw(settings set), { key => 'collapse.mode', value => $mode });
        my $list = $mode eq 'never' ? 'flat' : 'collapsed';
        $texts{$list} = definitions($client->list);
        $texts{"$list instructions"} = instructions($client);
    }
    $texts{fixture} = MCP::Json::encode([ MCP::Fixture142::tools() ]);
    $texts{'fixture instructions'} = MCP::Fixture142::instructions();
    my @names = sort keys %texts;
    my $counts = count($stack->root, @texts{@names});
    for my $i (0 .. $#names) {
        $seen{ $names[$i] } = { map { $_ => $counts->{$_}[$i] } 'characters', @ENCODINGS };
    }
    $seen{$_}{tools} = scalar @{ MCP::Json::decode($texts{$_}) } for qw(flat collapsed fixture);
    $seen{saved} = { map { $_ => saved($seen{flat}{$_}, $seen{collapsed}{$_}) } 'characters', @ENCODINGS };
    # the same against what the server itself would have a host read at first, its instructions too
    $seen{saved_whole} = {
        map { $_ => saved($seen{fixture}{$_} + $seen{'fixture instructions'}{$_}, $seen{collapsed}{$_} + $seen{'collapsed instructions'}{$_}) } @ENCODINGS
    };
    # and against its definitions alone, without our annotations and operations
    $seen{saved_bare} = { map { $_ => saved($seen{fixture}{$_}, $seen{collapsed}{$_}) } @ENCODINGS };
    return \%seen;
}

sub saved { my ($before, $after) = @_; return 100 * (1 - $after / $before) }

# Rows of t/bench: a heading, then columns for each encoding.
sub rows {
    my ($seen) = @_;
    my @lists = (
        [ 'definitions of the 142 tools as such a server sends them', 'fixture' ],
        [ 'definitions listed flat, operations included',             'flat' ],
        [ 'definitions collapsed, operations included',               'collapsed' ],
        [ 'instructions of such a server',                            'fixture instructions' ],
        [ 'our instructions, flat',                                   'flat instructions' ],
        [ 'our instructions, collapsed',                              'collapsed instructions' ]
    );
    return (
        [ q(footprint: a Member's list of tools), 'tools', 'characters', map { "tokens, $_" } @ENCODINGS ],
        (map { [ $_->[0], @{ $seen->{ $_->[1] } }{qw(tools characters)}, @{ $seen->{ $_->[1] } }{@ENCODINGS} ] } @lists),
        [ 'saved of definitions, % (goal: at least 97.7)', q(), map { sprintf '%.2f', $seen->{saved}{$_} } 'characters', @ENCODINGS ],
        [ 'saved against such a server itself, definitions, %', q(), q(), map { sprintf '%.2f', $seen->{saved_bare}{$_} } @ENCODINGS ],
        [ 'saved against such a server itself, with instructions, %', q(), q(), map { sprintf '%.2f', $seen->{saved_whole}{$_} } @ENCODINGS ]
    );
}

1;
