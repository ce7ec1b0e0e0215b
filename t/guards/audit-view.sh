#!/bin/sh
# doc/auditors.md promises the columns of the view audit_trail. This guard compares them with the view that
# policyd/pd_migrate.c makes, and with the columns that `audit list` answers. Where the sqlite3 program is there, it
# makes the schema anew and runs the page's questions.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

my $doc  = slurp('doc/auditors.md');
my $code = uncomment(slurp('policyd/pd_migrate.c'));
my ($steps) = $code =~ /\baudit_steps\[\] = \{(.*?)\n\};/s or bail('pd_migrate.c has no audit_steps');
my $schema = join '', map { s/\\"/"/gr } $steps =~ /"((?:\\.|[^"\\])*)"/g;
my ($view) = $schema =~ /CREATE VIEW audit_trail AS SELECT\s+(.*?)\s+FROM\b/s or bail('pd_migrate.c makes no view audit_trail');

my @columns;
my $depth = 0;
my $item  = '';
for my $part (split /([(),])/, "$view,") {
    $depth += $part eq '(' ? 1 : $part eq ')' ? -1 : 0;
    if ($part eq ',' && $depth == 0) {
        push @columns, $item =~ /(\w+)\s*$/;
        $item = '';
    }
    else { $item .= $part }
}
my ($section) = $doc =~ /^## The view `audit_trail`\n(.*?)(?=^## )/ms or bail('doc/auditors.md does not describe the view');
my @told = map { $_->[0] =~ /^`(\w+)`$/ } table($section =~ s/^###.*//msr);
ok('the page describes the columns of the view', same(\@columns, \@told, 'pd_migrate.c', 'doc/auditors.md'));
ok('in their order', "@columns" eq "@told" ? () : "the view has @columns");

# Types, from the tables below the view.
my %type;
$type{$1} = lc $2 while $schema =~ /\b(\w+) (INTEGER|TEXT)\b/g;
$type{member} = $type{member_name} = 'text';
my %says = map { ($_->[0] =~ s/`//gr) => $_->[1] } table($section =~ s/^###.*//msr);
ok('types are told as they are', map { "$_ is " . ($type{$_} // 'not there') } grep { $says{$_} && $says{$_} ne ($type{$_} // '') } @columns);

my $query = slurp('policyd/pd_audit_query.c');
my ($list) = $query =~ /^#define COLUMNS\s*\\?\n?(.*?)(?<!\\)\n/ms or bail('pd_audit_query.c has no COLUMNS');
my @asked = map { /(\w+)/ } split /,/, join '', $list =~ /"([^"]*)"/g;
ok('`audit list` answers the columns of the view', same(\@columns, \@asked, 'pd_migrate.c', 'pd_audit_query.c'));

my @questions = $doc =~ /^```sql\n(.*?)^```/msg;
@questions or bail('doc/auditors.md has no questions');
my ($sqlite3) = grep { -x } map { "$_/sqlite3" } split /:/, $ENV{PATH};
if (defined $sqlite3) {
    my @wrong;
    for my $question (@questions) {
        open my $old, '>&', \*STDERR or bail("stderr: $!");
        open STDERR, '>&', \*STDOUT or bail("stderr: $!");
        open my $run, '-|', $sqlite3, '-bail', ':memory:', "$schema\n;$question" or bail("$sqlite3: $!");
        my @said = map { chomp; $_ } <$run>;
        close $run or push @wrong, "@said in: " . $question =~ s/\s+/ /gr;
        open STDERR, '>&', $old or bail("stderr: $!");
    }
    ok('the questions of the page are sound', @wrong);
}
else { ok('the questions of the page are sound # SKIP no sqlite3 program') }
done();
