#!/bin/sh
# The shipped catalog: conf/connectors/index.tsv is sound, agrees with the connector files beside it, and the table of doc/connectors.md is made of
# those files. `connectors.sh --write` makes the table anew. What the files themselves hold is judged by t/unit/test_catalog_shipped.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;
use MCP::Json;

my $LEAST = 450;    # applications in the index
my ($begin, $end) = ("<!-- made by t/guards/connectors.sh --write -->\n", "<!-- to here -->\n");

# --- the index ----------------------------------------------------------------------

my %category = map { (split /\t/)[1] => 1 } grep { !/^#/ && /\t/ } lines('conf/applications.txt');
my @lines = grep { !/^#/ } lines('conf/connectors/index.tsv');
my (@rows, @form, %slug, %name, %file, %document);
for my $line (@lines) {
    my @row = split /\t/, $line, -1;
    push @form, "\"$line\" has " . @row . ' columns' and next if @row != 6;
    my ($slug, $name, $category, $document, $file, $home) = @row;
    push @rows, \@row;
    push @form, "$slug: no slug" if $slug !~ /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
    push @form, "$slug stands twice" if $slug{$slug}++;
    push @form, "$slug: the name $name stands twice" if $name{lc $name}++;
    push @form, "$slug: its name is no line of text" if $name !~ /^[^\x00-\x20\x7f](?:[^\x00-\x1f\x7f]{0,98}[^\x00-\x20\x7f])?$/;
    push @form, "$slug: the category $category is not one of conf/applications.txt" if !$category{$category};
    push @form, "$slug: $home is no host" if $home !~ /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/;
    push @form, "$slug: needs either a document or a file" if !($document eq q() xor $file eq q());
    push @form, "$slug: the document $document stands twice" if $document ne q() && $document{$document}++;
    push @form, "$slug: $document is no https URL"
        if $document ne q() && $document !~ m{^https://(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}/[A-Za-z0-9._~%+/-]+$};
    push @form, "$slug: its file is not $slug.json" if $file ne q() && $file ne "$slug.json";
    $file{$file} = $row[1] if $file ne q();
}
ok('every line of the index is sound', @form);
ok("the index has at least $LEAST applications", @rows >= $LEAST ? () : 'it has ' . @rows);
ok('it is sorted by slug', "@{[ map { $_->[0] } @rows ]}" eq "@{[ sort map { $_->[0] } @rows ]}" ? () : 'sort its lines');

# --- and the files ---------------------------------------------------------------------

my @paths = files('conf/connectors', qr/\.json$/);
ok('the index names every file that ships, and no other', same([map { s{.*/}{}r } @paths], [sort keys %file], 'conf/connectors', 'the index'));
my %connector = map { s{.*/}{}r => MCP::Json::decode(slurp($_)) } @paths;
ok('names are those of the files',
    map { "$_ is $file{$_} in the index and $connector{$_}{label} in the file" } grep { $connector{$_} && $connector{$_}{label} ne $file{$_} } sort keys %file);

# --- the page ----------------------------------------------------------------------------

my %default = (GET => 'read', HEAD => 'read', PROPFIND => 'read', POST => 'write', PUT => 'write', PATCH => 'write');

sub credential {
    my ($auth) = @_;
    my %word = (none => 'nothing', basic => 'user and password', bearer => 'token', oauth2 => 'OAuth 2');
    return $word{ $auth->{type} } || ($auth->{in} eq 'header' ? "header `$auth->{name}`" : "parameter `$auth->{name}`");
}

# An address that the organisation gives: its own server, its part of the vendor's cloud, or nothing.
sub place {
    my ($connector) = @_;
    my $variables = $connector->{variables} || {};
    return defined $variables->{host}{default} ? 'the vendor\'s or an own server' : 'own server'
        if $variables->{host} && $variables->{host}{pattern};
    return 'region' if $variables->{host};
    my ($name) = grep { $connector->{base_url} =~ m{^https?://[^/]*\{\Q$_\E\}} } sort keys %$variables;
    return $name ? "`{$name}` of the address" : 'one for all';
}

sub page {
    my ($operations, @table) = (0);
    for my $file (sort { lc $connector{$a}{label} cmp lc $connector{$b}{label} } keys %connector) {
        my $connector = $connector{$file};
        my %count;
        $count{ $_->{classification} || $default{ $_->{method} } || 'destructive' }++ for @{ $connector->{operations} };
        $operations += @{ $connector->{operations} };
        my $from = $connector->{auth}{description} // 'A server that asks for a user and a password works with `basic` in the file.';
        $from =~ s/\|/\\|/g;
        push @table, join q( ), "| $connector->{label} | `$file` |", scalar @{ $connector->{operations} }, '|',
            join(q(, ), map { "$count{$_} $_" } grep { $count{$_} } qw(read write destructive forbidden)), '|', place($connector), '|',
            credential($connector->{auth}), "| $from |\n";
    }
    my $shipped = keys %connector;
    return "$shipped connectors ship, with $operations operations; the index names " . @rows . " applications.\n\n"
        . "| application | file | operations | of these | where it is | credential | where that comes from |\n"
        . "| --- | --- | --: | --- | --- | --- | --- |\n"
        . join q(), @table;
}

my $page = slurp('doc/connectors.md');
my $made = $begin . page() . $end;
utf8::encode($made);
if (($ARGV[0] // q()) eq '--write') {
    (my $new = $page) =~ s/\Q$begin\E.*?\Q$end\E/$made/s or bail('doc/connectors.md has no place for the table');
    open my $out, '>', root() . '/doc/connectors.md' or bail("doc/connectors.md: $!");
    print {$out} $new;
    close $out or bail("doc/connectors.md: $!");
    $page = $new;
}
ok('doc/connectors.md tells what ships', index($page, $made) >= 0 ? () : 'run t/guards/connectors.sh --write');
done();
