#!/usr/bin/perl
# Which names of conf/connectors/index.tsv a search would not take for the name of an application, because conf/applications.txt does not have them
# (nor as another name of the same). One a line, name TAB category; the last line, beginning with '#', is the count.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use MCP::Root;

my $conf = "$FindBin::Bin/../../conf";
my %known;
for my $line (split /\n/, MCP::Root::slurp("$conf/applications.txt")) {
    next if $line =~ /^#/;
    my ($name, undef, $others) = split /\t/, $line;
    $known{ lc $_ } = 1 for grep { length } $name, split /\s*,\s*/, $others // q();
}
my ($all, $missing) = (0, 0);
for my $line (split /\n/, MCP::Root::slurp("$conf/connectors/index.tsv")) {
    next if $line =~ /^#/;
    my ($name, $category) = (split /\t/, $line)[ 1, 2 ];
    $all++;
    next if $known{ lc $name };
    $missing++;
    print "$name\t$category\n";
}
print "# $missing of $all are missing in applications.txt\n";
