# What tools take of a prompt: the estimate of characters/4 beside a real tokenizer, a Member's list with an application of 142 tools flat
# and collapsed, and footprint as policyctl shows it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib", "$FindBin::Bin/bench.d";
use Test::More;
use Bench::Footprint;
use MCP::Build;
use MCP::Client;
use MCP::Fixture142;
use MCP::Json;
use MCP::Node;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Verdict qw(result);

my $missing = MCP::Node::missing();
plan skip_all => $missing if defined $missing;

my $data = $ENV{MCP_TEST_DATA} || MCP::Build::source() . '/../shared';
my @encodings = @Bench::Footprint::ENCODINGS;
my $stack = MCP::Stack->new(webdav => 0, collapse => 1);

sub lines { return grep { /\S/ } split /\n/, MCP::Root::slurp($_[0]) }

# Text of a definition as a host would send it on, whatever else stands in the entry.
sub definition {
    my ($tool) = @_;
    return MCP::Json::encode({ map { defined $tool->{$_} ? ($_ => $tool->{$_}) : () } qw(name title description inputSchema annotations) });
}

sub estimate { my ($characters) = @_; return int(($characters + 3) / 4) }

# --- the fixture --------------------------------------------------------------------

subtest 'the fixture has the figures of a large server' => sub {
    my @tools = MCP::Fixture142::tools();
    my %want = %MCP::Fixture142::WANTED;
    my ($descriptions, $parameters, %categories, %names) = (0, 0);
    for my $tool (@tools) {
        $descriptions += length $tool->{description};
        $parameters += length($_->{description} // q()) for values %{ $tool->{inputSchema}{properties} };
        $categories{ ($tool->{name} =~ /^([a-z]+)_/)[0] } = 1;
        $names{ $tool->{name} } = 1;
    }
    is(scalar @tools, $want{tools}, 'tools');
    is(scalar keys %names, $want{tools}, 'each with a name of its own');
    is(scalar keys %categories, $want{categories}, 'categories');
    is(length MCP::Fixture142::instructions(), $want{instructions}, 'characters of instructions');
    is($descriptions, $want{descriptions}, 'characters of tool descriptions');
    is($parameters, $want{parameters}, 'characters of parameter text');
};

# --- flat and collapsed -------------------------------------------------------------

my $seen = Bench::Footprint::measure($stack);
subtest 'collapsed, a Member pays at least 97.7 % fewer tokens of definitions' => sub {
    cmp_ok(abs($seen->{fixture}{o200k_base} - $MCP::Fixture142::WANTED{tokens}), '<', 600, "about 60,000 tokens serialised: $seen->{fixture}{o200k_base}");
    is($seen->{flat}{tools} - $seen->{collapsed}{tools}, 142 - 2, 'all operations are in both lists');
    for my $encoding (@encodings) {
        diag(sprintf '%s: %d tokens flat, %d collapsed: %.2f %% fewer; than such a server\'s own definitions %.2f %%', $encoding, $seen->{flat}{$encoding}, $seen->{collapsed}{$encoding}, $seen->{saved}{$encoding}, $seen->{saved_bare}{$encoding});
        cmp_ok($seen->{saved}{$encoding}, '>=', 97.7, $encoding);
        cmp_ok($seen->{saved_whole}{$encoding}, '>=', 97.0, "$encoding: against what such a server has a host read at first, instructions included on both sides");
    }
};

subtest 'in a collapsed list an operation stands in short, and is complete when asked for' => sub {
    my $client = $stack->client;
    my %tool = map { $_->{name} => $_ } @{ result($client->list)->{tools} };
    my ($full) = @{ result($client->call('elaichi__tools__get', { names => ['elaichi__connections__create'] }))->{structuredContent}{items} };
    my $brief = $tool{elaichi__connections__create};
    is_deeply([ sort keys %{ $brief->{inputSchema}{properties} } ], [qw(connector label)], 'what a call needs');
    is_deeply($brief->{inputSchema}{required}, $full->{inputSchema}{required}, 'is required in both');
    ok($full->{inputSchema}{properties}{variables}, 'the rest when asked for');
    is_deeply($_->{annotations} && [ sort keys %{ $_->{annotations} } ], [qw(destructiveHint idempotentHint openWorldHint readOnlyHint)], "$_->{name} has all hints") for values %tool;
    my $oldest = { map { $_->{name} => $_ } @{ $client->legacy('tools/list', {}, version => '2025-03-26')->{json}{result}{tools} } };
    is_deeply($oldest, \%tool, 'the same for the oldest clients');
    like(Bench::Footprint::instructions($client), qr/elaichi__tools__get shows all arguments/, 'the instructions tell it');
};

# --- the estimate -------------------------------------------------------------------

subtest 'characters/4 beside a real tokenizer' => sub {
    plan skip_all => "the tool dumps are not there ($data): name them by MCP_TEST_DATA" if !-d "$data/tool-dumps";
    my %lists = map { my ($name) = m{([^/]+)\.json\z}; ($name => MCP::Json::decode(MCP::Root::slurp($_))->{tools}) } sort glob "$data/tool-dumps/*.json";
    for my $name (qw(livemcp mcpproxy45 playwright24)) {
        my $file = "$data/search-bench/catalogs/$name.jsonl";
        $lists{"catalog $name"} = [ map { MCP::Json::decode($_) } lines($file) ] if -r $file;
    }
    $lists{'our own, flat'} = do {
        $stack->ctl(qw(settings set --key collapse.mode --value never));
        result($stack->client->list)->{tools};
    };
    my (@texts, @of);
    for my $name (sort keys %lists) {
        push @texts, map { definition($_) } @{ $lists{$name} };
        push @of, ($name) x @{ $lists{$name} };
    }
    my $counts = Bench::Footprint::count($stack->root, @texts);
    for my $encoding (@encodings) {
        my (%real, %estimated, @single);
        for my $i (0 .. $#texts) {
            my ($tokens, $guess) = ($counts->{$encoding}[$i], estimate($counts->{characters}[$i]));
            $real{ $of[$i] } += $tokens;
            $estimated{ $of[$i] } += $guess;
            push @single, 100 * ($guess - $tokens) / $tokens;
        }
        my %error = map { $_ => 100 * ($estimated{$_} - $real{$_}) / $real{$_} } keys %real;
        my @sorted = sort { abs $error{$a} <=> abs $error{$b} } keys %error;
        my $mean = Bench::Footprint::sum(map { abs } values %error) / keys %error;
        my $mean_single = Bench::Footprint::sum(map { abs } @single) / @single;
        my ($low, $high) = (sort { $a <=> $b } @single)[ 0, -1 ];
        diag(sprintf '%s: %d lists of %d tools: mean error of a list %.1f %%, worst %+.1f %% (%s); of a tool %.1f %%, from %+.1f to %+.1f %%', $encoding, scalar keys %error, scalar @single, $mean, $error{ $sorted[-1] }, $sorted[-1], $mean_single, $low, $high);
        cmp_ok($mean, '<', 20, "$encoding: mean error of a list");
        cmp_ok(abs $error{ $sorted[-1] }, '<', 45, "$encoding: its worst ($sorted[-1])");
        cmp_ok($mean_single, '<', 25, "$encoding: mean error of a tool");
    }
    $stack->ctl(qw(settings unset --key collapse.mode));
};

# --- what policyd says ---------------------------------------------------------------

sub footprint { return $stack->ctl('footprint', '--member', 'member@example.org', @_) }

subtest 'footprint counts the very lists that are sent' => sub {
    my $shown = footprint();
    my $own = result($stack->client->call('elaichi__footprint__get', {}))->{structuredContent};
    is($shown->{mode}, 'collapsed', 'collapsed');
    is($shown->{why}, 'threshold', 'by the threshold');
    for my $list (qw(flat collapsed)) {
        is($shown->{$list}{tools}, $seen->{$list}{tools}, "$list: tools");
        # in an array stand its brackets, and a comma between two
        is($shown->{$list}{definitions}{characters}, $seen->{$list}{characters} - $seen->{$list}{tools} - 1, "$list: characters of definitions, exactly");
        is($shown->{$list}{instructions}{characters}, $seen->{"$list instructions"}{characters}, "$list: of instructions");
        is($shown->{$list}{definitions}{tokens}, estimate($shown->{$list}{definitions}{characters}), "$list: tokens as estimated");
        is_deeply($own->{$list}, $shown->{$list}, "$list: the Member is told the same");
    }
    is($shown->{connected}{parameters}{characters}, $MCP::Fixture142::WANTED{parameters}, 'parameter text');
    is($shown->{connected}{descriptions}{characters}, $MCP::Fixture142::WANTED{descriptions}, 'tool descriptions');
    is($shown->{saved_per_mille}, int(1000 * (1 - $shown->{collapsed}{definitions}{characters} / $shown->{flat}{definitions}{characters})), 'what is saved');
    is($shown->{callable}, $seen->{flat}{tools}, 'callable');
    is($shown->{listed}, $seen->{collapsed}{tools}, 'listed');
    cmp_ok($shown->{registered}, '>', $shown->{callable}, 'registered: whatever there is, for who reads all');
    ok(!exists $own->{registered}, 'and not for a Member');
    is($shown->{digest}, $own->{digest}, 'one digest of the definitions');
    like($shown->{note}, qr/rough; not a tokenizer's result, not billing/, 'the method is named');
    is_deeply([ map { $_->{connector} } @{ $shown->{connectors} } ], ['suite'], 'by connector');
    is(scalar @{ $shown->{heaviest} }, 10, 'the ten heaviest');
    $stack->client->call('search_tools', { query => 'invoice export' });
    cmp_ok(footprint()->{results}{search}{mean_bytes}, '>', 100, 'bytes of what a search answers');
    is(footprint('--client', 'narrow')->{client}, 'narrow', 'for a client');
    $stack->ctl(qw(settings set), { key => 'collapse.mode', value => 'never', client => 'narrow' });
    is(footprint('--client', 'narrow')->{mode}, 'flat', 'as its settings have it');
};

subtest 'policyctl footprint: a table, and a chart that holds nothing but a drawing' => sub {
    my @label = (slug => 'odd', label => q(Odd <b>&"'), base_url => 'http://127.0.0.1:9/odd');
    $stack->connector({ @label, operations => [ { id => 'x<y&"', method => 'GET', path => '/x', description => 'Reads & <reads>.' } ] });
    my ($status, $table) = $stack->policyd->run_ctl(qw(footprint --member member@example.org));
    is($status, 0, 'a table');
    for my $line (qr/^Tool list of .*: collapsed \(more tools than collapse\.threshold\)$/m, qr/^  callable +\d+$/m, qr/^parameter text +\d+ +\d+ +\d+ +\d+$/m, qr/^names and types +\d+/m, qr/^Collapsing saves 9\d\.\d % of the characters of definitions\.$/m, qr/^  suite +142 +\d+ +\d+$/m, qr/not a tokenizer's result, not\s+billing/) {
        like($table, $line, "$line");
    }
    my $file = $stack->root->path('chart.svg');
    ($status) = $stack->policyd->run_ctl('footprint', '--member', 'member@example.org', "--svg=$file");
    is($status, 0, 'a chart into a file');
    my $svg = MCP::Root::slurp($file);
    my ($same, $printed) = $stack->policyd->run_ctl(qw(footprint --member member@example.org --svg -));
    is($printed, $svg, 'the same on standard output, and nothing else');
    unlike($svg, qr/<script|<image|<foreignObject|href|url\(|\bon\w+=/i, 'no script and no reference');
    like($svg, qr/role="img"/, 'a picture');
    cmp_ok(length $svg, '<', 32_768, 'bounded');
    my ($code, $said) = MCP::Policyd::capture({}, 'python3', '-c', <<'PYTHON', $file);
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
s = '{http://www.w3.org/2000/svg}'
assert root.tag == s + 'svg' and root.get('role') == 'img'
assert root.find(s + 'title').text and root.find(s + 'desc').text
kinds = {each.tag for each in root.iter()}
assert kinds == {s + name for name in ('svg', 'title', 'desc', 'style', 'rect', 'text')}, kinds
print('|'.join(each.text or '' for each in root.iter(s + 'text')))
PYTHON
    is($code, 0, 'well-formed, with title and description') or diag($said);
    like($said, qr/\|suite\|/, 'a bar of the connector');
    ($status, undef, my $why) = $stack->policyd->run_ctl(qw(footprint --svg));
    is($status, 2, 'a chart needs a place');
    ($status, undef, $why) = $stack->policyd->run_ctl(qw(footprint --svg /nowhere/at/all.svg));
    is($status, 1, 'one that can be written');
};

$stack->end;
done_testing;
