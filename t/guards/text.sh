#!/bin/sh
# The text of the tree speaks of the project alone: no paths of the machine that it was written on, no package
# registries, nothing left to do, no documents that a reader does not have, and relative links that lead somewhere.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use File::Find;
use MCP::Guard;

# Everything but what git, autotools and npm make.
my @texts;
my $root = root();
find(
    {   no_chdir => 1,
        wanted   => sub {
            return if $File::Find::name eq $root;
            my $path = substr $File::Find::name, length($root) + 1;
            if (-d $File::Find::name
                && $path =~ m{^(?:\.git|autom4te\.cache|build-aux|m4|build|_build|_inst|run|bench|fuzz)$|(?:^|/)(?:node_modules|\.deps|\.libs)$|^t/fuzz/corpus$|^proto/vectors$})
            {
                $File::Find::prune = 1;
                return;
            }
            return if !-f $File::Find::name || -l $File::Find::name || !-T $File::Find::name;
            return if $path =~ m{^(?:configure~?|aclocal\.m4|(?:.*/)?Makefile(?:\.in)?|config\.\w+|libtool|stamp-h1|LICENSE)$};
            return if $path =~ m{\.(?:log|trs|lo|la|o)$|package-lock\.json$};
            push @texts, $path;
        },
    },
    $root
);
@texts > 100 or bail('the tree has only ' . @texts . ' texts');
my %text = map { $_ => -z "$root/$_" ? '' : slurp($_) } @texts;

# A pattern and the files that it does not concern. Brackets keep the patterns from matching this file.
my @rules = (
    [ 'no path of one machine', qr{(?<![\w./])(?:/[w]ork/|/[r]oot/|/[h]ome/\w|/tmp/[b](?:/|\b-))} ],
    [ 'no host of a package registry',
        qr{\b(?:registry\.npm[j]s\.org|pypi\.or[g]|files\.pythonhosted\.or[g]|crates\.i[o]|proxy\.golang\.or[g]|deb\.debian\.or[g]|rubygems\.or[g]|repo1?\.maven)\b}i,
        qr/package-lock\.json$/ ],
    [ 'nothing is left to do', qr{\b(?:[T]ODO|[F]IXME|[X]XX|[H]ACK)\b|\b[p]laceholder (?:for|until|implementation|code)\b|\bnot (?:yet )?[i]mplemented\b}i,
        qr{^t/js/|^t/.*\.mjs$|^conf/words\.txt$} ],
    [ 'no document is cited that is not here', qr{\b(?:(?:[c]ontract|[d]ecisions?|[a]nchors|[d]igest|[l]essons) [A-C]?\d+(?:\.\d+)*|[t]rap C\d+)\b} ],
    [ 'no merge was left half done', qr{^(?:<{7}|>{7}) }m ],
    [ 'lines end without blanks and carriage returns', qr{[ \t\r]$}m, qr{\.md$|^t/.*(?:vectors|data)/} ],
);
for my $rule (@rules) {
    my ($name, $pattern, $except) = @$rule;
    my @found;
    for my $path (sort @texts) {
        next if defined $except && $path =~ $except;
        my $number = 0;
        # a citation may stand over a line's end
        my $whole = $text{$path} =~ s/\b([a-z]+)\n( \*)? +([A-C]?\d+(?:\.\d+)*)/$1 $3\n/gr;
        for my $line (split /\n/, $whole) {
            $number++;
            push @found, "$path:$number: " . substr($line =~ s/^\s+//r, 0, 100) if $line =~ $pattern;
        }
    }
    ok($name, @found);
}

# Links of the documents, and file names that they quote.
my @broken;
for my $path (grep { /\.md$/ } sort @texts) {
    (my $folder = $path) =~ s{[^/]*$}{};
    while ($text{$path} =~ /\]\(([^)\s]+)\)/g) {
        my $link = $1;
        next if $link =~ /^(?:https?:|mailto:|#)/;
        $link =~ s/#.*//;
        push @broken, "$path links to $link, which is not there" if !-e "$root/$folder$link";
    }
    while ($text{$path} =~ /`((?:t|proto|mod_mcp|policyd|conf|doc)\/[\w.\/-]+\.\w+)`/g) {
        push @broken, "$path names $1, which is not there" if !-e "$root/$1";
    }
}
ok('documents lead to what is there', @broken);

# Tests that the threat model and README name by their sentence.
my %sentence;
for my $path (grep { m{^t/unit/test_.*\.c$} } keys %text) {
    $sentence{$_} = 1 for $text{$path} =~ /^(?:static )?void (\w+)\(void \*\*/mg;
}
my (@unproven, $named);
for my $path ('doc/threat-model.md', 'README.md') {
    while ($text{$path} =~ /`([a-z0-9]+(?:_[a-z0-9]+){2,})`/g) {
        my $name = $1;
        next if $text{'proto/mcp_proto.h'} =~ /"$name"/;    # an error code
        $named++;
        push @unproven, "$path names $name, which is no unit test" if !$sentence{$name};
    }
}
$named or bail('doc/threat-model.md names no test');
ok('the tests that documents name are there', @unproven);
done();
