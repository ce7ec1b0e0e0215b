#!/bin/sh
# Nothing lies around unused: every source file is built and shipped, every unit test is run, every fuzz target has a
# corpus and is named in t/fuzz/README.md, every guard and test is in the distribution. And no file grows past what
# one can read.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

my $makefile = slurp('Makefile.am');
$makefile =~ s/^#.*//mg;
my %named = map { $_ => 1 } $makefile =~ /(?<![\w.\/-])([\w.\/-]+\.(?:c|h|sh|md|pm|t|txt|json|conf|example|service|[158]))(?![\w.])/g;
%named or bail('Makefile.am names no file');

# --- in the build -----------------------------------------------------------------

my @product = map { files($_, qr/\.[ch]$/) } qw(proto mod_mcp policyd);
my @tests   = map { files($_, qr/\.[ch]$/) } qw(t/unit t/fuzz);
ok('every source file is named in Makefile.am', map { "$_ is not" } grep { !$named{$_} } @product, @tests);
ok('Makefile.am names no source file that is not there',
    map { "$_ is not there" } grep { /\.[ch]$/ && !-e root() . "/$_" } sort keys %named);
my @shipped = (files('t/guards', qr/\.(?:sh|txt)$/), files('t/lib/MCP', qr/\.pm$/), files('t/fuzz', qr/\.md$/), files('doc', qr/\.(?:md|[158])$/),
    files('conf', qr/\.(?:conf|json|example|service)$/), grep { !/^t\/lib$/ } glob_of('t', qr/\.t$/));
ok('guards, tests, documents and examples are shipped', map { "$_ is not named in Makefile.am" } grep { !$named{$_} } @shipped);
ok('guards can be run', map { "$_ is not executable" } grep { !-x root() . "/$_" } files('t/guards', qr/\.sh$/));

# Like files(), where there may be none.
sub glob_of {
    my ($folder, $pattern) = @_;
    opendir my $dir, root() . "/$folder" or bail("$folder: $!");
    return map { "$folder/$_" } sort grep { $_ =~ $pattern } readdir $dir;
}

# --- unit tests -------------------------------------------------------------------

my (@unregistered, @silent, @twice);
for my $file (files('t/unit', qr/^test_.*\.c$/)) {
    my $code = uncomment(slurp($file));
    my ($main) = $code =~ /^int main\(.*?\)\n\{\n(.*?)^\}/ms or push(@silent, "$file has no main()"), next;
    push @silent, "$file runs no group of tests" if $main !~ /\bcmocka_run_group_tests(?:_name)?\s*\(/;
    # what the list registers, by whatever macro
    my ($list) = $main =~ /CMUnitTest\s+\w+\[\]\s*=\s*\{(.*?)\};/s or push(@silent, "$file has no list of tests"), next;
    my %times;
    $times{$1}++ while $list =~ /\b\w+\(\s*(\w+)/g;
    push @twice, map { "$file registers $_ twice" } grep { $times{$_} > 1 } sort keys %times;
    # every function of a test's form that nothing else in the file calls, hands on or registers
    for my $name ($code =~ /^(?:static )?void (\w+)\(void \*\*\w+\)\s*\{/mg) {
        push @unregistered, "$file: $name is not registered" if !$times{$name} && (() = $code =~ /\b$name\b/g) < 2;
    }
    push @silent, "$file registers no test" if !%times;
}
ok('every unit test is registered',     @unregistered);
ok('no unit test is registered twice',  @twice);
ok('every file of unit tests runs them', @silent);

# --- fuzz targets -----------------------------------------------------------------

my $readme = slurp('t/fuzz/README.md');
my (@targets, @poor);
for my $file (files('t/fuzz', qr/^fuzz_.*\.c$/)) {
    my ($name) = $file =~ m{fuzz_(.*)\.c$};
    push @targets, $name;
    push @poor, "$file defines no LLVMFuzzerTestOneInput()" if slurp($file) !~ /^int LLVMFuzzerTestOneInput\(/m;
    my @seeds = -d root() . "/t/fuzz/corpus/$name" ? glob_of("t/fuzz/corpus/$name", qr/^[^.]/) : ();
    push @poor, "t/fuzz/corpus/$name has no seed" if !@seeds;
    push @poor, "$_ is empty" for grep { -z root() . "/$_" } @seeds;
    push @poor, "t/fuzz/README.md does not speak of `$name`" if $readme !~ /`$name`/;
}
for my $folder (map { m{([^/]+)$} } glob_of('t/fuzz/corpus', qr/^[^.]/)) {
    push @poor, "t/fuzz/corpus/$folder belongs to no target"
        if !(grep { $_ eq $folder } @targets) && glob_of("t/fuzz/corpus/$folder", qr/^[^.]/);
}
ok('every fuzz target has a corpus and is documented', @poor);

# --- size -------------------------------------------------------------------------

my $limit = 1000;
my @long;
for my $file (@product) {
    next if slurp($file) =~ m{\A/\*.*made by .*do not edit}s;    # generated
    my $lines = () = slurp($file) =~ /\n/g;
    push @long, "$file has $lines lines" if $lines > $limit;
}
ok("no file of the product has more than $limit lines", @long);
done();
