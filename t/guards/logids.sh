#!/bin/sh
# Log messages. Each message of debug and above has a number, MCPnnnn in the module and PDnnnn in the daemon: one
# site one number, which stays when the wording changes and is never used again. doc/messages.md registers them all;
# a message that is gone stands there under "Retired".
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

my (%site, @unnumbered, @doubled, %level);

sub note {
    my ($id, $place, @levels) = @_;
    push @doubled, "$id stands at $site{$id} and at $place" if $site{$id};
    $site{$id}  = $place;
    $level{$id} = [@levels];
}

# Calls of a function in a C text: [line, arguments]. Parentheses are counted outside of strings.
sub calls {
    my ($code, $name) = @_;
    my @found;
    while ($code =~ /\b$name\s*\(/g) {
        my $from  = pos $code;
        my $depth = 1;
        my $line  = 1 + (substr($code, 0, $from) =~ tr/\n//);
        while ($depth > 0 && $code =~ /\G(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|([()])|[^()"']+)/gc) {
            $depth += $1 eq '(' ? 1 : -1 if defined $1;
        }
        push @found, [ $line, substr($code, $from, pos($code) - $from - 1) ];
    }
    return @found;
}

# --- the module -------------------------------------------------------------------

my @severe = qw(EMERG ALERT CRIT ERR WARNING NOTICE INFO DEBUG);
for my $file (files('mod_mcp', qr/\.[ch]$/)) {
    my $code = uncomment(slurp($file));
    for my $call (calls($code, 'ap_log_[a-z]*error_?')) {
        my ($line, $arguments) = @$call;
        my $place = "$file:$line";
        my ($level) = $arguments =~ /^\s*APLOG_MARK\s*,\s*([^,]+?)\s*,/;
        if (!defined $level) { push @unnumbered, "$place does not begin with APLOG_MARK and a level"; next }
        my @levels = $level =~ /APLOG_([A-Z]+\d?)/g;
        if (!@levels) {
            # a variable: the levels that it is given in this file
            @levels = map { /APLOG_([A-Z]+\d?)/g } $code =~ /\b\Q$level\E\s*=\s*([^;]+);/g;
        }
        @levels or push(@unnumbered, "$place: the level $level can't be told"), next;
        next if !grep { my $one = $_; grep { $_ eq $one } @severe } @levels;
        my ($text) = $arguments =~ /"((?:\\.|[^"\\])*)"/;
        if (defined $text && $text =~ /^(MCP\d{4}): /) { note($1, $place, map { lc } @levels) }
        else { push @unnumbered, "$place has no MCPnnnn" }
    }
}

# --- the daemon -------------------------------------------------------------------

for my $file (files('policyd', qr/\.[ch]$/)) {
    next if $file =~ m{/pd_log\.[ch]$};    # the function itself
    my $code = uncomment(slurp($file));
    for my $call (calls($code, 'pd_log')) {
        my ($line, $arguments) = @$call;
        my $place = "$file:$line";
        my ($level, $number) = $arguments =~ /^\s*([^,]+?)\s*,\s*(\d{1,4})\s*,\s*"/;
        if (!defined $number || $number == 0) { push @unnumbered, "$place has no number"; next }
        my @levels = map { $_ eq 'ERR' ? 'err' : lc } $level =~ /PD_LOG_([A-Z]+)/g;
        note(sprintf('PD%04d', $number), $place, @levels);
    }
    push @unnumbered, "$file writes to syslog past pd_log()" if $code =~ /\bv?syslog\s*\(/;
}

# --- the register -----------------------------------------------------------------

my $doc = slurp('doc/messages.md');
my ($current, $retired) = split /^## Retired$/m, $doc, 2;
defined $retired or bail('doc/messages.md has no section "## Retired"');
my (%listed, %gone, @levels, @gaps, @texts);
my ($from, $to, $last, %section);
for my $line (split /\n/, $current) {
    if ($line =~ /^### .*\((MCP|PD)(\d{4})-\1(\d{4})\)$/) {
        ($from, $to) = ("$1$2", "$1$3");
        next;
    }
    $from = undef if $line =~ /^##/;
    next if $line !~ /^\|\s*((?:MCP|PD)\d{4})\s*\|/;
    my $id = $1;
    my ($cells) = table("|-|\n$line");
    my (undef, $level, $meaning, $remedy) = @$cells;
    $listed{$id}++;
    push @texts, "$id needs level, meaning and what to do" if grep { !defined $_ || $_ eq '' } $level, $meaning, $remedy;
    push @gaps, "$id stands outside of its section's range" if !defined $from || $id lt $from || $id gt $to;
    $section{$from}{$id} = 1 if defined $from;
    if ($level{$id}) {
        my $code = join ', ', sort map { { err => 'error', emerg => 'emerg' }->{$_} // $_ } @{ $level{$id} };
        my $told = join ', ', sort split /,\s*/, $level // '';
        push @levels, "$id is $code in $site{$id}, $told in the register" if $code ne $told;
    }
}
$gone{$_}++ for $retired =~ /\b((?:MCP|PD)\d{4})\b/g;

# A number below the highest of its section is in use or retired: none vanishes unseen.
for my $start (sort keys %section) {
    my ($kind, $number) = $start =~ /^([A-Z]+)(\d+)$/;
    my ($highest) = reverse sort(keys %{ $section{$start} }, grep { /^$kind/ && $_ ge $start && $_ le $start } keys %gone);
    for (; sprintf("$kind%04d", $number) lt $highest; $number++) {
        my $id = sprintf "$kind%04d", $number;
        push @gaps, "$id is neither used nor retired" if !$section{$start}{$id} && !$gone{$id};
    }
}

%site or bail('no log message was found');
ok('every message of debug and above has a number', @unnumbered);
ok('no number stands at two sites',                 @doubled);
ok('doc/messages.md registers what the sources have', same([ sort keys %site ], [ map { ($_) x $listed{$_} } keys %listed ],
        'the sources', 'doc/messages.md'));
ok('the register tells the level of the sources', @levels);
ok('each entry is whole',                         @texts);
ok('each number is in its range, and none has vanished', @gaps);
ok('no retired number is in use', map { "$_ is retired and stands at $site{$_}" } grep { $site{$_} } sort keys %gone);
done();
