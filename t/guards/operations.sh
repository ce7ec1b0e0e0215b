#!/bin/sh
# doc/operations.md, and the tables of doc/roles.md and doc/settings.md, follow from the sources. Their bytes are
# compared by t/unit/test_reference, which links the registry. This guard needs nothing built: it compares the rows of
# policyd/pd_ops.c with the entries of doc/operations.md. `operations.sh --write` makes the pages anew, by the
# test_reference of the build tree that it is started in (or of $top_builddir).
root=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
if [ "${1:-}" = --write ]; then
    program=${top_builddir:-.}/t/unit/test_reference
    if [ ! -x "$program" ]; then
        echo "there is no $program: make $program first, in the build tree" >&2
        exit 1
    fi
    top_srcdir=$root exec "$program" --write
fi
exec perl -I"$root/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

# --- the registry -----------------------------------------------------------------

my $source = slurp('policyd/pd_ops.c');
my ($table) = $source =~ /^static const pd_op_t rows\[\] = \{\n(.*?)^\};/ms or bail('pd_ops.c has no table of rows');
my (@names, %row);
for my $text (split /\n\s*(?=\{\.resource)/, $table) {
    next if $text !~ /\{\.resource\s*=\s*"(\w+)"\s*,\s*\.verb\s*=\s*"(\w+)"/;
    my $name = "$1__$2";
    push @names, $name;
    $row{$name} = {
        permission => $text =~ /\.permission\s*=\s*"([\w:]+)"/ ? "`$1`" : 'none; any active member',
        class      => lc($text =~ /\.klass\s*=\s*MCP_CLASS_(\w+)/ ? $1 : ''),
        rest       => $text =~ /\.rest_method\s*=\s*"(\w+)"\s*,\s*\.rest_path\s*=\s*"([^"]+)"/ ? "`$1 /api/v1$2`" : '',
        secret     => $text =~ /\.secret\s*=\s*PD_SECRET_(?!NO\b)/ ? 1 : 0,
    };
}
my $rows = () = $table =~ /\.handler\s*=/g;
@names or bail('pd_ops.c has no rows');
ok('every row is understood', @names == $rows ? () : "$rows rows have a handler, " . @names . ' have a name');

# --- the page ---------------------------------------------------------------------

my (@entries, %told);
for my $part (split /^(?=### )/m, slurp('doc/operations.md')) {
    next if $part !~ /^### (\w+) (\w+)\n/;
    my $name = "$1__$2";
    push @entries, $name;
    my %line = map { lc($_->[0]) => $_->[1] } map { [ /^- (\w+): (.*)$/ ] } grep { /^- \w+: / } split /\n/, $part;
    $told{$name} = \%line;
}
ok('every operation has its entry', same(\@names, \@entries, 'pd_ops.c', 'doc/operations.md'));
ok('the entries stand in the order of the rows', "@names" eq "@entries" ? () : 'another order; run t/guards/operations.sh --write');
my @differ;
for my $name (grep { $told{$_} } @names) {
    for my $what (qw(permission class rest)) {
        push @differ, "$name: $what is $row{$name}{$what}" if ($told{$name}{$what} // '') ne $row{$name}{$what};
    }
    push @differ, "$name: the secret is not told" if $row{$name}{secret} && !$told{$name}{secret};
    push @differ, "$name: the entry has another name" if ($told{$name}{name} // '') ne "`$name`";
}
ok('permission, class, REST path and secrets are told as they are', @differ);
done();
