#!/bin/sh
# The directives of mod_mcp stand in four places: the table of mod_mcp/mcp_config.c, the member list
# mod_mcp/mcp_members.h, doc/directives.md and conf/mod_mcp.conf. This guard compares names, contexts and defaults.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

# --- the sources ------------------------------------------------------------------

my $code = uncomment(slurp('mod_mcp/mcp_config.c'));
my (%setter, %takes, %place, @table);
while ($code =~ /AP_INIT_(\w+)\(\s*"(\w+)"\s*,\s*(\w+)\s*,\s*(?:NULL|\w+)\s*,\s*(\w+)\s*,/g) {
    push @table, $2;
    ($takes{$2}, $setter{$2}, $place{$2}) = ($1, $3, $4);
}
@table or bail('mcp_config.c has no table of directives');

my (%member, %is_main, %in_list);
for my $line (lines('mod_mcp/mcp_members.h')) {
    next if $line !~ /^\s*X\(\s*[^,]+,\s*(\w+)\s*,\s*[^,]+,\s*"(\w+)"\s*\)(.*)/;
    my ($name, $directive, $mark) = ($1, $2, $3);
    $member{$name}       = $directive;
    $in_list{$directive} = 1;
    $is_main{$directive} = 1 if $mark =~ m{/\* main \*/};
}
ok('each directive has a member, and each member a directive', same(\@table, [ keys %in_list ], 'mcp_config.c', 'mcp_members.h'));

# Contexts, from the table's place, the member's mark and the setter's own check.
my %context;
my @contexts;
for my $name (@table) {
    my ($body) = $code =~ /^static const char \*$setter{$name}\(.*?\n\{(.*?)\n\}/ms or bail("no setter of $name");
    my $asks_main = $body =~ /\bmain_only\(/;
    $context{$name} = $place{$name} eq 'ACCESS_CONF' ? 'location' : $asks_main ? 'server config' : 'server config, virtual host';
    push @contexts, "$name: the setter and the mark /* main */ of mcp_members.h contradict each other"
        if $asks_main xor $is_main{$name};
    push @contexts, "$name: $place{$name} allows it in .htaccess" if $place{$name} !~ /^(?:RSRC_CONF|ACCESS_CONF)$/;
}
ok('contexts are checked and marked alike', @contexts);

# Defaults of the getters, as numbers: `conf->MEMBER >= 0 ? conf->MEMBER : VALUE`, or a flag that is not 0.
my %value;
for my $name (keys %member) {
    if ($code =~ /return conf->$name (?:>=?) 0 \? conf->$name : ([^;]+);/) {
        (my $expression = $1) =~ s/SECONDS\((\d+)\)/($1 * 1000000)/g;
        $expression =~ /^[\s0-9()*]+$/ or bail("the default of $name is no number: $expression");
        $value{ $member{$name} } = eval $expression;    ## no critic: digits and operators only
    }
    elsif ($code =~ /return conf->$name != 0;/) { $value{ $member{$name} } = 1 }
}
keys %value or bail('mcp_config.c has no getters with defaults');

# The number that a directive's value means, in microseconds or bytes.
sub meaning {
    my ($text) = @_;
    my %unit = (ms => 1000, s => 1000000, m => 60000000, h => 3600000000, B => 1, K => 1024, M => 1048576, G => 1073741824);
    return 1 if $text eq 'On';
    return 0 if $text eq 'Off';
    return $1 * $unit{$2} if $text =~ /^(\d+)([a-zA-Z]+)$/ && $unit{$2};
    return $text =~ /^\d+$/ ? $text : undef;
}

# --- the reference ----------------------------------------------------------------

my $doc = slurp('doc/directives.md');
my (%told, @order, @form);
for my $part (split /^(?=###? )/m, $doc) {
    next if $part !~ /^### (\w+)\n/;
    my $name = $1;
    push @order, $name;
    my ($syntax, $default, $where, $since, $rest) =
        $part =~ /\A### \w+\n\n- Syntax: `([^`\n]+)`\n- Default: ([^\n]+)\n- Context: ([^\n]+)\n- Since: (\S+)\n\n(.*)\z/s
        or push(@form, "$name has not the fixed headings"), next;
    $told{$name} = { default => $default, context => $where };
    push @form, "$name: the syntax begins with another name" if $syntax !~ /^$name /;
    push @form, "$name: no meaning" if $rest !~ /\A\w/;
    my ($example) = $rest =~ /\n\n((?:    \S?[^\n]*\n?)+)\s*\z/;
    push @form, "$name: no example at the end" if !defined $example || $example !~ /\b$name\b/;
    my $is_list = ($takes{$name} // '') eq 'ITERATE';
    push @form, "$name: takes " . ($is_list ? 'a list' : 'one value') if $is_list xor $syntax =~ /…/;
}
ok('doc/directives.md has an entry for each directive', same(\@table, \@order, 'mcp_config.c', 'doc/directives.md'));
ok('each entry has its fixed headings, meaning and example', @form);
ok('contexts are documented as they are', map { "$_ is for $context{$_}" }
    grep { $told{$_} && $told{$_}{context} ne $context{$_} } @table);

my @defaults;
for my $name (grep { $told{$_} } @table) {
    my $default = $told{$name}{default};
    if ($default =~ /^`$name (\S+)`$/) {
        my ($text, $number) = ($1, meaning($1));
        if (defined $value{$name}) {
            push @defaults, "$name: the sources have $value{$name}, the reference says $text"
                if !defined $number || $number != $value{$name};
        }
        elsif ($text ne 'none' && $text ne 'Off') { push @defaults, "$name: the sources have no default $text" }
    }
    elsif ($default !~ /^none; \S/) { push @defaults, "$name: write the default as a directive, or none and what then holds" }
    elsif (defined $value{$name})   { push @defaults, "$name has a default in the sources" }
}
ok('defaults are documented as they are', @defaults);

# --- the configuration ------------------------------------------------------------

my (@in_conf, @odd, $in_location);
for my $line (lines('conf/mod_mcp.conf')) {
    $in_location = 1 if $line =~ /^\s*<Location /;
    $in_location = 0 if $line =~ m{^\s*</Location>};
    next if $line !~ /^\s*(#?)(MCP\w+)\s+(\S.*)$/;
    my ($off, $name, $text) = ($1, $2, $3);
    push @in_conf, $name;
    next if !$told{$name} || !$context{$name};
    push @odd, "$name belongs " . ($in_location ? 'out of' : 'into') . ' <Location>'
        if ($context{$name} eq 'location') != ($in_location ? 1 : 0);
    my ($default) = $told{$name}{default} =~ /^`$name (\S+)`$/;
    push @odd, "$name is commented out as $text; its default is $default" if $off && defined $default && $text ne $default;
}
ok('conf/mod_mcp.conf has each directive once', same(\@table, \@in_conf, 'mcp_config.c', 'conf/mod_mcp.conf'));
ok('what is commented out shows the default, in its context', @odd);
done();
