package MCP::Verdict;

# What an answer of the endpoint says, in the few words that the protocol's tests compare.

use strict;
use warnings;
use Exporter qw(import);
use MCP::Client;

our @EXPORT_OK = qw(attempts challenge rpc_code raw_id result verdict);

# "400/-32600" for a JSON-RPC error, "200/result", "200/isError"; the status alone for any other body.
sub verdict {
    my ($answer) = @_;
    return 'no answer' if !defined $answer;
    my $json = ref $answer->{json} eq 'HASH' ? $answer->{json} : {};
    return "$answer->{status}/$json->{error}{code}" if ref $json->{error} eq 'HASH';
    return $answer->{status} if ref $json->{result} ne 'HASH';
    return "$answer->{status}/" . ($json->{result}{isError} ? 'isError' : 'result');
}

sub rpc_code {
    my ($answer) = @_;
    my $json = defined $answer ? $answer->{json} : undef;
    return ref $json eq 'HASH' && ref $json->{error} eq 'HASH' ? $json->{error}{code} : undef;
}

sub result { return ref $_[0]{json} eq 'HASH' ? $_[0]{json}{result} : undef }

# The id as its bytes stand in the body; undef where the body has none. A decoder would make 1 of "1" and lose
# the end of long numbers.
sub raw_id {
    my ($answer) = @_;
    return $answer->{body} =~ /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|[^,"]+),"(?:result|error)":/ ? $1 : undef;
}

# The challenge, read by the grammar: {scheme => 'Bearer', NAME => [values]}; undef where it breaks the grammar,
# is missing or is there twice.
sub challenge {
    my ($answer) = @_;
    my @values = @{ $answer->{headers}{'www-authenticate'} || [] };
    return undef if @values != 1 || $values[0] !~ /^([A-Za-z]+)(?: +|\z)/;
    my %found = (scheme => $1);
    my $rest = substr $values[0], $+[0];
    while (length $rest) {
        return undef if $rest !~ /^([a-z_]+)="((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*)"(?:, (?=.)|\z)/;
        push @{ $found{$1} }, $2;
        $rest = substr $rest, $+[0];
    }
    return \%found;
}

# What the audit got while the code ran: its rows of surface mcp, oldest first. Whatever the code returns is lost.
sub attempts {
    my ($stack, $code) = @_;
    my $newest = $stack->ctl(qw(audit list --limit 1))->{items}[0]{audit_id};
    $code->();
    my $later = $stack->ctl(qw(audit list --all --after), $newest);
    return grep { $_->{surface} eq 'mcp' } @{ $later->{items} };
}

1;
