# What the guards of t/guards share: finding the tree, reading files, TAP. A guard that can't find its input fails:
# every reader here ends the test when there is nothing to read.
package MCP::Guard;

use strict;
use warnings;

use Exporter 'import';
our @EXPORT = qw(root slurp lines files ok done bail uncomment table same numbers);

my $root;
my $count  = 0;
my $failed = 0;

# The source tree: $top_srcdir, or where the guard lies.
sub root {
    if (!defined $root) {
        $root = $ENV{top_srcdir};
        if (!defined $root || $root eq '') {
            ($root = $0) =~ s{[^/]*$}{../..};
        }
        -e "$root/proto/mcp_proto.h" or bail("there is no source tree at $root");
    }
    return $root;
}

# The end of a guard that can't go on: a failure of its own, not of all tests.
sub bail {
    $count++;
    print "not ok $count - the guard finds what it compares\n# @_\n1..$count\n";
    exit 1;
}

# The whole of a file below the tree.
sub slurp {
    my ($path) = @_;
    open my $in, '<', root() . "/$path" or bail("$path: $!");
    local $/;
    my $text = <$in>;
    close $in;
    defined $text && length $text or bail("$path is empty");
    return $text;
}

sub lines { return split /\n/, slurp($_[0]) }

# Files of a folder whose names match, sorted, as paths below the tree.
sub files {
    my ($folder, $pattern) = @_;
    opendir my $dir, root() . "/$folder" or bail("$folder: $!");
    my @found = map { "$folder/$_" } sort grep { $_ =~ $pattern } readdir $dir;
    closedir $dir;
    @found or bail("there are no files in $folder");
    return @found;
}

# One test; what is wrong goes into @why, one line each.
sub ok {
    my ($name, @why) = @_;
    $count++;
    print @why ? 'not ' : '', "ok $count - $name\n";
    print "# $_\n" for @why;
    $failed++ if @why;
    return !@why;
}

sub done {
    $count or bail('nothing was tested');
    print "1..$count\n";
    exit($failed ? 1 : 0);
}

# C without comments; strings and the count of lines stay.
sub uncomment {
    my ($text) = @_;
    $text =~ s{("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(/\*.*?\*/|//[^\n]*)}
              {defined $1 ? $1 : do { (my $gone = $2) =~ s/[^\n]+/ /g; $gone }}gse;
    return $text;
}

# Rows of the Markdown tables in a text, each an array of cells, without heads and rulers.
sub table {
    my ($text) = @_;
    my @rows;
    my $head = 1;
    for my $line (split /\n/, $text) {
        if ($line !~ /^\|/) { $head = 1; next }
        if ($line =~ /^\|[\s:|-]+\|?\s*$/) { $head = 0; next }
        next if $head;
        my @cells = map { s/\\\|/|/g; s/^\s+|\s+$//g; $_ } split /(?<!\\)\|/, substr($line, 1), -1;
        pop @cells if @cells && $cells[-1] eq '';
        push @rows, \@cells;
    }
    return @rows;
}

# What two lists of names don't share, as sentences; nothing when they are equal as sets without repetitions.
sub same {
    my ($here, $there, $here_name, $there_name) = @_;
    my (%here, %there, @why);
    $here{$_}++  for @$here;
    $there{$_}++ for @$there;
    push @why, map { "$_ is missing in $there_name" } grep { !$there{$_} } sort keys %here;
    push @why, map { "$_ is missing in $here_name" } grep { !$here{$_} } sort keys %there;
    push @why, map { "$_ stands twice in $here_name" } grep { $here{$_} > 1 } sort keys %here;
    push @why, map { "$_ stands twice in $there_name" } grep { $there{$_} > 1 } sort keys %there;
    return @why;
}

# #define NAME NUMBER of a header, as a hash; products like (4u * 1024) are worked out.
sub numbers {
    my ($text) = @_;
    my %value;
    for (split /\n/, uncomment($text)) {
        next if !/^#define\s+(\w+)\s+(\S.*?)\s*$/;
        my ($name, $expression) = ($1, $2);
        $expression =~ s/\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b/$1/g;
        next if $expression !~ /^[\s0-9xa-fA-F*()+-]+$/ || $expression !~ /^\(?\s*\d/;
        my $number = eval $expression;    ## no critic: digits and operators only
        $value{$name} = $number if defined $number;
    }
    return %value;
}

1;
