#!/bin/sh
# proto/PROTOCOL.md is the reference of the link; proto/mcp_proto.h and proto/mcp_fields.h are what is compiled.
# This guard compares kinds, numbers, codes, statuses, outcomes, fields, types and limits. doc/errors.md, which tells
# people the same codes, is compared as well.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

my $doc    = slurp('proto/PROTOCOL.md');
my $proto  = slurp('proto/mcp_proto.h');
my $fields = uncomment(slurp('proto/mcp_fields.h'));
my %number = (numbers($proto));
for my $name (qw(MCP_MAGIC MCP_VERSION MCP_HEADER_BYTES MCP_FRAMES MCP_MAX_BODY_BYTES MCP_MAX_BLOB_PART MCP_MAX_DEPTH
    MCP_MAX_ARG_NAMES MCP_MAX_ARG_NAME MCP_MAX_ID MCP_MAX_TEXT MCP_BEAT_MS MCP_BEATS_MISSED MCP_BLOB_HOLD_S)) {
    defined $number{$name} or bail("mcp_proto.h defines no number $name");
}

sub section {
    my ($head, $level) = @_;
    my $marks = '#' x $level;
    $doc =~ /^\Q$marks\E \Q$head\E[^\n]*\n(.*?)(?=^#{1,$level} |\z)/ms or bail("PROTOCOL.md has no section $head");
    return $1;
}

# Rows X(NAME, ...) of a list macro, as arrays.
sub rows {
    my ($macro) = @_;
    (my $text = uncomment($proto)) =~ s/\\\n/ /g;
    my ($body) = $text =~ /^#define $macro\(X\)(.*)$/m or bail("mcp_proto.h has no $macro");
    my @rows;
    push @rows, [ map { s/^\s+|\s+$//g; s/^"(.*)"$/$1/; $_ } split /,/, $1 ] while $body =~ /\bX\(([^()]*)\)/g;
    @rows or bail("$macro has no rows");
    return @rows;
}

sub plain { my ($cell) = @_; $cell =~ s/`//g; return $cell }

# --- envelope ---------------------------------------------------------------------

my $envelope = section('Envelope', 2);
my @wrong;
my ($offset, %at) = (0);
for my $row (table($envelope)) {
    my ($from, $bytes, $name) = @$row;
    push @wrong, "field $name stands at $from, the ones before end at $offset" if $from != $offset;
    $at{$name} = $row;
    $offset = $from + $bytes;
}
push @wrong, "the header's fields make $offset bytes, MCP_HEADER_BYTES is $number{MCP_HEADER_BYTES}"
    if $offset != $number{MCP_HEADER_BYTES};
my @says = (
    [ $envelope, sprintf('The header has %d bytes', $number{MCP_HEADER_BYTES}) ],
    [ $envelope, 'exactly two frames' ],
    [ $envelope, sprintf('0x%08x', $number{MCP_MAGIC}) ],
    [ $envelope, sprintf('| version | %d |', $number{MCP_VERSION}) ],
    [ $envelope, sprintf('at most %d levels deep and %d MiB long', $number{MCP_MAX_DEPTH}, $number{MCP_MAX_BODY_BYTES} >> 20) ],
    [ section('blob.get', 3), sprintf('at most %d MiB', $number{MCP_MAX_BLOB_PART} >> 20) ],
    [ section('blob.get', 3), sprintf('readable for %d s', $number{MCP_BLOB_HOLD_S}) ],
    [ section('call.begin', 3), sprintf('each at most %d bytes', $number{MCP_MAX_ARG_NAME}) ],
    [ section('child.beat', 3), sprintf('Sent every %d s', $number{MCP_BEAT_MS} / 1000) ],
    [ section('child.beat', 3), ('', 'one', 'two', 'three', 'four')[ $number{MCP_BEATS_MISSED} ] . ' missed' ],
);
for my $say (@says) {
    (my $text = $say->[0]) =~ s/\s+/ /g;
    push @wrong, "PROTOCOL.md does not say: $say->[1]" if index($text, $say->[1]) < 0;
}
for my $flag (qw(ERROR RAW MORE)) {
    my $value = sprintf '0x%x', $number{"MCP_FLAG_$flag"} // bail("no MCP_FLAG_$flag");
    push @wrong, "flag $flag is $value in mcp_proto.h" if $envelope !~ /`$flag` $value\b/;
}
my @flags = $proto =~ /^#define MCP_FLAG_(\w+)\s+0x/mg;
push @wrong, "flag $_ is not in PROTOCOL.md" for grep { $envelope !~ /`$_`/ } @flags;
ok('envelope and limits', @wrong);

# --- kinds ------------------------------------------------------------------------

my @kinds = map { "$_->[2] $_->[1] " . ($_->[3] ? 'yes' : 'reserved') } rows('MCP_KIND_LIST');
my @told  = map { plain("$_->[0] $_->[1] $_->[2]") } table(section('Kinds', 2) =~ s/^###.*//msr);
ok('kinds, numbers, and which are built', same(\@kinds, \@told, 'mcp_proto.h', 'PROTOCOL.md'));
ok('questions are even and stand in order', map { "$_->[2] has $_->[1]" }
    grep { $_->[1] % 2 || $_->[1] == 0 } rows('MCP_KIND_LIST'));
my %built = map { $_->[2] => $_->[1] } grep { $_->[3] } rows('MCP_KIND_LIST');
my @sections = $doc =~ /^### ([a-z.]+ \(\d+, \d+\))$/mg;
ok('each built kind has its section', same([ map { "$_ ($built{$_}, " . ($built{$_} + 1) . ')' } keys %built ],
        \@sections, 'mcp_proto.h', 'PROTOCOL.md'));

# --- codes ------------------------------------------------------------------------

my @codes = map { "$_->[1] $_->[2] " . lc $_->[3] } rows('MCP_CODE_LIST');
my @documented = map { plain("$_->[0] $_->[1] $_->[2]") } table(section('Errors', 2));
ok('codes, statuses and outcomes', same(\@codes, \@documented, 'mcp_proto.h', 'PROTOCOL.md'));
my @for_people = map { plain("$_->[0] $_->[1] $_->[2]") } grep { $_->[0] =~ /^`/ } table(slurp('doc/errors.md'));
ok('codes, statuses and outcomes in doc/errors.md', same(\@codes, \@for_people, 'mcp_proto.h', 'doc/errors.md'));

# --- fields -----------------------------------------------------------------------

# {NAME, TYPE, REQUIRED, MAX} of a table in mcp_fields.h, with the shared parts put in.
my %shared;
(my $joined = $fields) =~ s/\\\n/ /g;
$shared{$1} = $2 while $joined =~ /^#define (FIELDS_\w+)\s+(.*)$/mg;

sub compiled {
    my ($name) = @_;
    my ($body) = $joined =~ /\bfields_$name\[\]\s*=\s*\{(.*?)\};/s or bail("mcp_fields.h has no fields_$name");
    $body =~ s/\b(FIELDS_\w+)\b/$shared{$1} \/\/ bail("mcp_fields.h has no $1")/ge;
    my %row;
    while ($body =~ /\{\s*"(\w+)"\s*,\s*MCP_F_(\w+)\s*,\s*(\d)\s*,\s*(\w+)\s*\}/g) {
        my ($field, $type, $required, $limit) = ($1, $2, $3, $4);
        my $max = $limit =~ /^\d+$/ ? $limit : $number{$limit} // bail("mcp_proto.h has no number $limit");
        $row{$field} and bail("fields_$name has $field twice");
        $row{$field} = { type => $type, required => $required, max => $max };
    }
    %row or bail("fields_$name has no rows");
    return \%row;
}

# `name` * pairs of a text; what stands in parentheses or braces explains and names nothing.
sub names {
    my ($text) = @_;
    my %row;
    1 while $text =~ s/\([^()]*\)//g;
    $text =~ s/\{[^{}]*\}//g;
    $row{$1} = { required => defined $2 ? 1 : 0 } while $text =~ /`([a-z_]+)`\s*(\*)?/g;
    return \%row;
}

# The rows of the field table of a section; a cell may name several, "as in" takes no type.
sub tabled {
    my ($text) = @_;
    my %row;
    for my $cells (table($text)) {
        my $names = names($cells->[0]);
        my ($type, $max) = ($cells->[1] // '') =~ /^([a-z]+(?:64)?)(?: (\d+))?$/;
        $names->{$_}{type} = $type for keys %$names;
        $names->{$_}{limit} = $max for keys %$names;
        @row{ keys %$names } = values %$names;
    }
    return \%row;
}

my %type = (int => 'INT', string => 'STRING', strings => 'STRINGS', object => 'OBJECT', hex64 => 'HEX64', bool => 'BOOL');

sub compare {
    my ($title, $here, $there) = @_;
    my @why = same([ keys %$here ], [ keys %$there ], 'mcp_fields.h', 'PROTOCOL.md');
    for my $name (grep { $there->{$_} } sort keys %$here) {
        my ($have, $told) = ($here->{$name}, $there->{$name});
        push @why, "$name is " . ($have->{required} ? 'required' : 'optional') . ' in mcp_fields.h'
            if $have->{required} != $told->{required};
        my $kind = $told->{type};
        if (defined $kind) {
            my $fits = $kind eq 'array' ? $have->{type} =~ /^(?:ARRAY|STRINGS)$/ : $have->{type} eq ($type{$kind} // '');
            push @why, "$name is $have->{type} in mcp_fields.h, $kind in PROTOCOL.md" if !$fits;
        }
        push @why, "$name may have $have->{max} in mcp_fields.h, $told->{limit} in PROTOCOL.md"
            if defined $told->{limit} && $told->{limit} != $have->{max};
    }
    ok($title, @why);
}

# What stands before the answer, and the first sentence of each answer.
sub parts {
    my ($kind) = @_;
    my $text = section($kind, 3);
    my ($question, $rest) = $text =~ /^(.*?)(?=^Answer\b|(?<=[.] )Answer\b|\z)(.*)/ms;
    my @answers;
    while ($rest =~ /\bAnswer([^:.]*?):\s*(.*?)(?=\.(?:\s|\z)|:\n|\n\n|\z)/gs) { push @answers, $2 }
    return ($question, @answers);
}

for my $kind (sort { $built{$a} <=> $built{$b} } keys %built) {
    my ($question, @answers) = parts($kind);
    my $asked = $question =~ /^\|/m ? tabled($question) : names($question =~ s/\.\s.*//sr);
    if ($kind eq 'call.note') {
        # "The fields of `call.begin` but `deadline_ms`, and ..."
        my ($but, $and) = $question =~ /fields of `call\.begin` but (.*?), and (.*)/s or bail('call.note has another form');
        my ($begin) = parts('call.begin');
        my $gone = names($but);
        my $base = tabled($begin);
        $asked = { (map { $_ => $base->{$_} } grep { !$gone->{$_} } keys %$base), %{ names($and) } };
    }
    (my $name = $kind) =~ s/\./_/g;
    compare("question of $kind", compiled($name), $asked);
    next if $kind eq 'blob.get';    # answered by bytes
    # with several answers, what one of them lacks is optional
    my %answered;
    my %times;
    for my $answer (map { names($_) } @answers) {
        $times{$_}++ for keys %$answer;
        $answered{$_} = { required => $answer->{$_}{required} } for keys %$answer;
    }
    $_->{required} = 0 for map { $answered{$_} } grep { $times{$_} < @answers } keys %answered;
    compare("answer of $kind", compiled("${name}_reply"), \%answered);
}
done();
