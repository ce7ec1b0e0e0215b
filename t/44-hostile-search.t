# Searches that mean no good: long, strange, full of marks and of characters that break things elsewhere. Each is answered in bounded time, has one
# row, and no word of it stands anywhere afterwards.

use strict;
use warnings;
use utf8;
use Test::More;
use Time::HiRes ();
use MCP::Client;
use MCP::Json;
use MCP::Log;
use MCP::Stack;
use MCP::Verdict qw(attempts result verdict);

my $LONGEST_S = 5;    # generous: what is looked for is what grows without end

my $stack = MCP::Stack->new(webdav => 0, collapse => 1);
my @things = qw(invoice customer refund ticket contract shipment campaign folder calendar employee);
for my $slug (qw(shop store)) {
    $stack->connector({
        slug => $slug, label => "\u$slug", base_url => 'http://127.0.0.1:1',
        operations => [ map { my $thing = $things[ $_ % 10 ]; { id => "get_${thing}_$_", method => 'GET', path => "/$thing/$_", description => "Shows the $thing, number $_, with its fields." } } 0 .. 199 ]
    });
}
my $member = $stack->client(keep => 1);
my $mark = 'xyzzymarkedword';    # stands in every query

# Children that are there no longer; httpd may have started more.
sub missing { my (@before) = @_; my %now = map { $_ => 1 } $stack->gateway->children; return [ grep { !$now{$_} } @before ] }

my $family = "\x{1F468}\x{200D}\x{1F469}\x{200D}\x{1F467}\x{200D}\x{1F466}";
my @queries = (
    [ '64 KiB of one word',           'a' x 65_536 ],
    [ '64 KiB of words',              'invoice ' x 8192 ],
    [ 'beyond 64 KiB',                'invoice ' x 20_000 ],
    [ '10,000 distinct words',        join q( ), map { "word$_" } 1 .. 10_000 ],
    [ '10,000 distinct letters only', join q( ), map { my $n = $_; join q(), map { chr(97 + ($n >> (3 * $_)) % 8) } 0 .. 4 } 1 .. 10_000 ],
    [ 'emoji',                        "\x{1F600}\x{1F4A9} invoice \x{1F1F8}\x{1F1EA} $family" ],
    [ 'only emoji, many',             $family x 2000 ],
    [ 'right to left',                "\x{5D7}\x{5E9}\x{5D1}\x{5D5}\x{5E0}\x{5D9}\x{5EA} invoice \x{641}\x{627}\x{62A}\x{648}\x{631}\x{629}" ],
    [ 'marks that turn the line',     "\x{202E}eciovni\x{202C} \x{2066}get\x{2069} \x{200F}" ],
    [ 'control characters',           join q(), map { chr } 1 .. 31, 127 ],
    [ 'combining marks, 20,000',      'e' . "\x{301}" x 20_000 ],
    [ 'Han, 20,000',                  "\x{8ACB}\x{6C42}\x{66F8}\x{767A}\x{884C}" x 4000 ],
    [ 'Thai, 10,000',                 "\x{E43}\x{E1A}\x{E41}\x{E08}\x{E49}\x{E07}" x 1700 ],
    [ 'quotes that never close',      '"' x 60_000 ],
    [ 'quotes of both kinds',         q("'`) x 20_000 ],
    [ 'function words alone',         'the of and to a in is you that it ' x 300 ],
    [ 'numbers alone',                '1 2 3 4 5 6 7 8 9 0 ' x 300 ],
    [ 'expressions',                  '(a+)+$ [^] .* \\ ^(?:x*)*$ {1,99999}' x 100 ],
    [ 'formats',                      '%s%n%d%p' x 1000 ],
    [ 'statements',                   q('; DROP TABLE tools; -- " OR 1=1) x 100 ],
    [ 'markup',                       '<script>alert(1)</script>&amp;' x 100 ],
    [ 'addresses',                    'https://evil.example/?q=1 a@b.example ' x 500 ],
    [ 'dots and slashes',             '../' x 20_000 ],
    [ 'the highest code point',       "\x{10FFFF}" x 1000 ],
    [ 'white space of all kinds',     "\x{A0}\x{2003}\x{3000}\t\n\x{85}\x{2028}" x 1000 ],
    [ 'borders everywhere',           'aB1cD2' x 8000 ],
    [ 'nothing',                      q() ]
);

my @children = $stack->gateway->children;
for my $case (@queries) {
    my ($what, $query) = @$case;
    my $answer;
    my $began = Time::HiRes::time();
    my @rows = attempts($stack, sub {
        $began = Time::HiRes::time();
        $answer = $member->call('search_tools', { query => "$query $mark", limit => 20 });
        $began = Time::HiRes::time() - $began;
    });
    my $found = (result($answer) || {})->{structuredContent};
    is($answer->{status}, 200, "$what: is answered");
    cmp_ok($began, '<', $LONGEST_S, "$what: soon");
    is(scalar @rows, 1, "$what: has one row");
    ok(ref $found eq 'HASH' && (ref $found->{items} eq 'ARRAY' && @{ $found->{items} } <= 20 || ref $found->{error} eq 'HASH'), "$what: by a list, or by what is wrong with it");
}
is_deeply(missing(@children), [], 'no child died of it');

subtest 'text that is no text' => sub {
    for my $case ([ 'a NUL', '"get\\u0000invoice"' ], [ 'a lone surrogate', '"get \\ud800 invoice"' ], [ 'surrogates the wrong way round', '"\\udc00\\ud800"' ], [ 'bytes that are no UTF-8', qq("get \xff\xfe") ], [ 'an overlong slash', qq("\xc0\xaf") ]) {
        my ($what, $text) = @$case;
        my $body = sprintf '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":%s}}}', $text;
        my $answer = $member->post($body, version => '2025-06-18', headers => [ 'MCP-Protocol-Version' => '2025-06-18' ]);
        is($answer->{status}, 400, $what);
    }
    is_deeply(missing(@children), [], 'no child died of it');
};

subtest 'an account that means no good' => sub {
    for my $account ('../shop', "shop\x{0}", 'shop%00', 'a' x 65_536, q(' or 1=1), "\x{1F600}") {
        my $answer = $member->call('search_tools', { query => "invoice $mark", account => $account });
        my $found = (result($answer) || {})->{structuredContent} || {};
        is($answer->{status}, $account =~ /\0/ ? 400 : 200, 'is answered');
        is_deeply($found->{items} || [], [], 'and finds nothing');
    }
};

subtest 'no word of a query is kept' => sub {
    my $root = $stack->root->path;
    my @files = grep { -f && -r } map { glob "$root/$_" } qw(*.log */*.log *.db* */*.db* */*/*.db* */*/*.db);
    cmp_ok(scalar @files, '>', 4, 'stores and logs are looked into');
    is_deeply([ grep { MCP::Root::slurp($_) =~ /\Q$mark\E/ } @files ], [], 'and hold none');
};

$stack->end(expected => [qw(MCP0301)]);
done_testing;
