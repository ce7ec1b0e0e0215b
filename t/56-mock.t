# What the gateway sends, judged by the vendors' own descriptions: a mock made of each document (Prism) validates every request that an imported
# connector makes of it. Arguments are made of the tools' schemas, as a model would make them.

use strict;
use warnings;
use Test::More;
use Time::HiRes ();
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Net;
use MCP::Node;
use MCP::Process;
use MCP::Root;
use MCP::Stack;
use MCP::Verdict qw(result verdict);

my $corpus = ($ENV{MCP_TEST_DATA} || MCP::Build::source() . '/../shared') . '/openapi-corpus';
plan skip_all => "the documents are not there ($corpus): name them by MCP_TEST_DATA" if !-d $corpus;
my $missing = MCP::Node::missing();
plan skip_all => $missing if $missing;

my $CALLS = 10;
my @documents = qw(notion.json box-2025.json slack-web.json spotify.yml netlify.yml gotify.json twilio-taskrouter-v1.json
    clerk-platform.yml zoom-v2.json qdrant-1.19.json apideck-crm.json meilisearch.json);

my $stack = MCP::Stack->new(webdav => 0);
my $root = $stack->root;

# --- values for schemas ---------------------------------------------------------------------

my %formats = (
    'date' => '2026-01-02', 'date-time' => '2026-01-02T03:04:05Z', 'time' => '03:04:05Z', 'uuid' => '123e4567-e89b-42d3-a456-426614174000',
    'email' => 'ada@example.org', 'uri' => 'https://example.org/a', 'url' => 'https://example.org/a', 'ipv4' => '192.0.2.1', 'hostname' => 'example.org',
    'byte' => 'aGVsbG8=', 'binary' => 'hello'
);
my @guesses = (
    qw(a A 1 ab abc Ab1 12 123 1234 abcdef ABC ABCDEF 2026-01-02 2026-01-02T03:04:05Z en en-US US USD 10.00 1.0 0.1 I-1 P-1 +4712345678
    https://example.org/a ada@example.org a-b a_b a.b), '#ffffff', map { ('a' x $_, 'A' x $_, '1' x $_) } 6 .. 40);

sub pick { my ($schema, $root) = @_; while (defined $schema->{'$ref'}) { my ($name) = $schema->{'$ref'} =~ m{^#/\$defs/(.+)$} or return {}; $schema = $root->{'$defs'}{$name} || return {} } return $schema }

# A value that a schema takes; undef where none is thought of.
sub value {
    my ($schema, $root, $depth) = @_;
    $schema = pick($schema, $root);
    return $schema->{const} if exists $schema->{const};
    return (grep { defined } @{ $schema->{enum} })[0] if $schema->{enum};
    for my $choice (qw(oneOf anyOf)) {
        next if !$schema->{$choice};
        my ($first) = grep { my $one = pick($_, $root); ($one->{type} || q()) ne 'null' } @{ $schema->{$choice} };
        my $chosen = value($first, $root, $depth + 1);
        return $chosen if ref $chosen ne 'HASH' || !$schema->{properties};
        my $own = value({ %$schema, $choice => undef, map { $_ => $schema->{$_} } () }, $root, $depth + 1);
        return { %{ ref $own eq 'HASH' ? $own : {} }, %$chosen };
    }
    if ($schema->{allOf}) {
        my @parts = map { value($_, $root, $depth + 1) } @{ $schema->{allOf} };
        return $parts[0] if !@parts || ref $parts[0] ne 'HASH';
        return { map { ref $_ eq 'HASH' ? %$_ : () } @parts };
    }
    my ($type) = ref $schema->{type} ? grep({ $_ ne 'null' } @{ $schema->{type} }) : ($schema->{type} || ($schema->{properties} ? 'object' : 'string'));
    return undef if $depth > 8;
    return object($schema, $root, $depth) if $type eq 'object';
    if ($type eq 'array') {
        my $count = $schema->{minItems} || 1;
        my @items = map { value($schema->{items} || {}, $root, $depth + 1) } 1 .. $count;
        return grep({ !defined } @items) ? undef : \@items;
    }
    return number($schema, $type) if $type eq 'integer' || $type eq 'number';
    return MCP::Json::true() if $type eq 'boolean';
    return text($schema);
}

sub number {
    my ($schema, $type) = @_;
    my $least = defined $schema->{minimum} ? $schema->{minimum} : defined $schema->{exclusiveMinimum} ? $schema->{exclusiveMinimum} + 1 : 1;
    my $most = defined $schema->{maximum} ? $schema->{maximum} : $least;
    my $chosen = $least <= 1 && $most >= 1 ? 1 : $least <= $most ? $least : $most;
    $chosen = $schema->{multipleOf} * int(($chosen + $schema->{multipleOf} - 1) / $schema->{multipleOf}) if $schema->{multipleOf} && $schema->{multipleOf} >= 1;
    return 0 + $chosen;
}

# A text for a pattern of literals and counted classes: ^WS[0-9a-f]{32}$.
sub spell {
    my ($pattern) = @_;
    return () if !defined $pattern || $pattern !~ /^\^?((?:\[[^\]]+\]|\\d|\w|-)(?:\{\d+(?:,\d*)?\})?)+\$?$/;
    my $text = q();
    while ($pattern =~ /(\[([^\]])[^\]]*\]|\\d|\w|-)(?:\{(\d+)(?:,\d*)?\})?/g) {
        my $one = $1 eq '\\d' ? '0' : defined $2 ? $2 : $1;
        $text .= $one x (defined $3 ? $3 : 1);
    }
    return $text;
}

sub text {
    my ($schema) = @_;
    my $fits = sub {
        my ($text) = @_;
        return 0 if defined $schema->{minLength} && length $text < $schema->{minLength};
        return 0 if defined $schema->{maxLength} && length $text > $schema->{maxLength};
        my $matches = defined $schema->{pattern} ? eval { $text =~ /$schema->{pattern}/ } : 1;
        return $matches;
    };
    my $known = $formats{ $schema->{format} || q() };
    for my $guess (spell($schema->{pattern}), defined $known ? $known : (), defined $schema->{default} && !ref $schema->{default} ? "$schema->{default}" : (), 'text', @guesses) {
        return $guess if $fits->($guess);
    }
    return undef;
}

sub object {
    my ($schema, $root, $depth) = @_;
    my %value;
    for my $name (@{ $schema->{required} || [] }) {
        my $part = value(($schema->{properties} || {})->{$name} || {}, $root, $depth + 1);
        return undef if !defined $part;
        $value{$name} = $part;
    }
    return \%value;
}

# What is required, and of the rest up to three, lists and objects first: they are what styles are about.
sub arguments {
    my ($schema) = @_;
    my $made = object($schema, $schema, 0);
    return undef if !defined $made;
    my %rest = map { $_ => pick($schema->{properties}{$_}, $schema) } grep { !exists $made->{$_} } keys %{ $schema->{properties} };
    my $rank = sub { my $type = $rest{ $_[0] }{type} || q(); return ref $type ? 2 : { array => 0, object => 1 }->{$type} // 2 };
    for my $name ((sort { $rank->($a) <=> $rank->($b) || $a cmp $b } keys %rest)[ 0 .. 2 ]) {
        next if !defined $name || $name =~ /page_?token|cursor|offset/i;
        my $part = value($rest{$name}, $schema, 1);
        $made->{$name} = $part if defined $part && (!ref $part || ref $part eq 'ARRAY' && @$part || ref $part eq 'HASH' && %$part || ref $part eq ref MCP::Json::true());
    }
    # what has to stand beside something that is there, and beside that
    my @needs = map { @{ ($schema->{dependentRequired} || {})->{$_} || [] } } keys %$made;
    while (defined(my $name = shift @needs)) {
        next if exists $made->{$name};
        $made->{$name} = value($schema->{properties}{$name} || {}, $schema, 1);
        return undef if !defined $made->{$name};
        push @needs, @{ ($schema->{dependentRequired} || {})->{$name} || [] };
    }
    return $made;
}

# --- a mock ------------------------------------------------------------------------------------

my %credential = (bearer => { token => 't0ken' }, basic => { username => 'ada', password => 'lovelace' }, api_key => { value => 'k3y' }, oauth2 => undef);

sub lines { my ($file) = @_; return split /\n/, MCP::Root::slurp($file) || q() }

sub mock {
    my ($document) = @_;
    my $port = MCP::Net::free_port();
    my $log = $root->path("$document.log");
    my $process = MCP::Process->start(command => [ MCP::Build::node(), MCP::Build::node_modules() . '/@stoplight/prism-cli/dist/index.js', 'mock', "$corpus/$document", '-p', $port, '-h', '127.0.0.1', '--errors' ], log => $log, env => { MCP::Node::env() });
    MCP::Net::wait_for(sub { grep { /Prism is listening/ } lines($log) }, 60) or BAIL_OUT("the mock of $document does not start: " . join "\n", lines($log));
    return ($process, "http://127.0.0.1:$port", $log);
}

for my $document (@documents) {
    my ($process, $origin, $log) = mock($document);
    (my $slug = $document) =~ s/[^a-z0-9]+/-/g;
    $slug = substr $slug, 0, 24;
    $slug =~ s/-$//;
    $stack->reconfigure(allow => [$origin]);
    $stack->gateway->graceful;
    my $imported = $stack->ctl(qw(connectors import), "$corpus/$document", '--slug', $slug, '--base-url', $origin);
    my $connector = $stack->ctl(qw(connectors get), $slug);
    my $auth = $connector->{auth}{type};
    $stack->ctl(qw(connections create), { connector => $slug, label => $slug, shared => MCP::Json::true(), $auth ne 'none' ? (credential => $credential{$auth}) : () });
    my $member = $stack->client;
    my %operation = map { $_->{id} => $_ } @{ $connector->{operations} };
    my @tools = grep { $_->{name} =~ /^\Q$slug\E__/ } @{ result($member->list)->{tools} };
    my %group;    # varied: by method, and by whether there is a body
    push @{ $group{ join q( ), $_->{annotations}{readOnlyHint} ? 'read' : 'write', scalar keys %{ $_->{inputSchema}{properties} } > 3 ? 'many' : 'few' } }, $_ for @tools;
    my @queue;
    while (grep { @$_ } values %group) { push @queue, map { my $list = $group{$_}; @$list ? splice(@$list, @$list / 2, 1) : () } sort keys %group }
    my ($valid, @wrong) = (0);
    for my $tool (@queue) {
        last if $valid + @wrong >= $CALLS;
        my $arguments = arguments($tool->{inputSchema});
        next if !defined $arguments;
        my $before = lines($log);
        my $answer = $member->call($tool->{name}, $arguments);
        MCP::Net::wait_for(sub { scalar(my @now = lines($log)) > $before }, 5);
        select undef, undef, undef, 0.02;
        my @said = (lines($log))[ $before .. scalar(my @all = lines($log)) - 1 ];
        my @bad = grep { /Violation: request|ROUTE_NOT_RESOLVED|NO_PATH_MATCHED|NO_METHOD|Did not find any|unauthor/i } @said;
        if (!@bad && @said) { $valid++ }
        else { push @wrong, "$tool->{name} " . MCP::Json::encode($arguments) . ": @bad " . substr($answer->{body}, 0, 300) }
    }
    is_deeply(\@wrong, [], "$document: what is sent is valid");
    is($valid, $CALLS, "$document: $CALLS calls over varied operations");
    $process->stop('TERM', 5);
    $stack->ctl(qw(connections delete), $slug);
}

$stack->end(expected => [qw(MCP0301)]);
done_testing;
