package MCP::Fixture142;

# An application as large as large MCP servers are: 142 tools in 24 categories, 30,741 characters of instructions, 54,818 of
# tool descriptions, 21,917 of parameter text, and about 60,000 tokens when the tools are serialised. Made of word lists by
# counting, the same at every run.
#
#   my $file  = MCP::Fixture142::connector($origin);   # a connector file without `auth`
#   my @tools = MCP::Fixture142::tools();              # {name, description, inputSchema}, as such a server would list them

use strict;
use warnings;
use MCP::Json;

our %WANTED = (tools => 142, categories => 24, instructions => 30_741, descriptions => 54_818, parameters => 21_917, tokens => 60_000);

my @categories = qw(account asset booking budget campaign catalog claim contract course customer delivery event expense forecast
    incident inventory invoice meeting order payroll project shipment survey ticket);
my @verbs = qw(list get create update delete export);
my %class = (list => 'read', get => 'read', export => 'read', create => 'write', update => 'write', delete => 'destructive');
my @people = ('the person in charge', 'a reviewer', 'the whole team', 'somebody of another office', 'the owner', 'a guest');
my @things = ('the record', 'its history', 'every attachment', 'the linked entries', 'its summary', 'the pending changes');
my @moments = ('before the period is closed', 'as soon as it is saved', 'once a day', 'when the limit is reached', 'after a review', 'at the next change');
my @deeds = ('sees', 'confirms', 'moves', 'is told of', 'can restore', 'compares');
my @fields = qw(reference owner_id currency started_on amount);
my @states = qw(draft open waiting approved running blocked finished archived);
my @columns = qw(number title state region currency amount owner created_at updated_at closed_at priority);
my @operators = qw(equals contains begins_with above below between);
my @regions = qw(north south east west);

# Text of exactly so many characters, of sentences that differ by where the counting begins.
sub text {
    my ($begin, $count, $topic) = @_;
    my $text = q();
    for (my $i = $begin; length $text < $count; $i++) {
        my $sentence = join q( ), ucfirst $people[ $i % @people ], $deeds[ ($i / 2) % @deeds ], $things[ ($i / 3) % @things ], "of the $topic",
            $moments[ ($i / 5) % @moments ];
        $text .= "$sentence. ";
    }
    $text = substr $text, 0, $count;
    $text =~ s/[ .]\z/s/;
    $text =~ s/.\z/./;
    return $text;
}

# Share number `i` of so many that add up to the sum.
sub share { my ($sum, $i, $shares) = @_; return int($sum * ($i + 1) / $shares) - int($sum * $i / $shares) }

sub instructions { return text(7, $WANTED{instructions}, 'organisation') }

sub names {
    my @names;
    for my $number (0 .. $#categories) {
        my $count = $number < 22 ? 6 : 5;
        push @names, map { [ $categories[$number], $_ ] } @verbs[ 0 .. $count - 1 ];
    }
    return @names;
}

sub text_field { return { type => 'string', @_ } }

# Five fields with a description each, and structures with none.
sub properties {
    my ($number, $category) = @_;
    my $share = share($WANTED{parameters}, $number, $WANTED{tools});
    my %properties;
    for my $i (0 .. $#fields) {
        $properties{ $fields[$i] } = {
            type => $fields[$i] eq 'amount' ? 'number' : 'string',
            description => text($number + $i, share($share, $i, scalar @fields), $category)
        };
    }
    $properties{filter} = {
        type  => 'array',
        items => {
            type       => 'object',
            required   => [qw(field operator)],
            properties => {
                field    => { type => 'string', enum => [@columns] },
                operator => { type => 'string', enum => [@operators] },
                value    => { type => [qw(string number boolean)] }
            }
        }
    };
    $properties{state} = { type => 'array', items => { type => 'string', enum => [@states] } };
    $properties{place} = {
        type       => 'object',
        properties => { region => { type => 'string', enum => [@regions] }, map { $_ => { type => 'string' } } qw(street city postal_code) }
    };
    $properties{page} = { type => 'object', properties => { size => { type => 'integer', minimum => 1, maximum => 500 }, cursor => { type => 'string' } } };
    $properties{fields} = { type => 'array', items => { type => 'string', enum => [ @columns[ 0 .. 4 + $number % 4 ] ] } };
    return \%properties;
}

sub described {
    my ($number, $category, $verb) = @_;
    my $head = ucfirst "$verb for the $category desk. ";
    return $head . text($number * 3, share($WANTED{descriptions}, $number, $WANTED{tools}) - length $head, $category);
}

sub schema {
    my ($number, $category) = @_;
    return { type => 'object', properties => properties($number, $category), required => ['reference'] };
}

sub tools {
    my @names = names();
    return map { { name => "$names[$_][0]_$names[$_][1]", description => described($_, @{ $names[$_] }), inputSchema => schema($_, $names[$_][0]) } } 0 .. $#names;
}

sub connector {
    my ($origin) = @_;
    my @names = names();
    return {
        slug       => 'suite',
        label      => 'Suite',
        base_url   => "$origin/suite",
        operations => [
            map {
                my ($category, $verb) = @{ $names[$_] };
                {
                    id             => "${category}_$verb",
                    method         => 'POST',
                    path           => "/$category/$verb",
                    description    => described($_, $category, $verb),
                    classification => $class{$verb},
                    tags           => [$category],
                    body           => { content_type => 'application/json', required => MCP::Json::true(), schema => schema($_, $category) }
                }
            } 0 .. $#names
        ]
    };
}

1;
