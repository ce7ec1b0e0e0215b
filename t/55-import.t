# API descriptions on their way into the catalog through policyctl: what vendors publish is taken whole, counted as it should be, compared when it comes
# again, held back where somebody has to look, and fetched only on request and under the rules of outbound calls.

use strict;
use warnings;
use Test::More;
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(result verdict);

my $stack = MCP::Stack->new(webdav => 0);
my $root = $stack->root;

# policyctl as people call it: (exit status, standard output, standard error)
sub ctl {
    my (@words) = @_;
    return MCP::Policyd::capture({ apart => 1 }, MCP::Build::policyctl(), '--socket', $stack->policyd->socket, @words);
}

sub imported { my ($status, $out, $err) = ctl(qw(connectors import), @_, qw(-o json)); return ($status, scalar(eval { MCP::Json::decode($out) }), $err) }

my %petshop = (
    openapi => '3.0.3', info => { title => 'Pet shop', version => '1' }, servers => [ { url => 'https://pets.example/v1' } ],
    components => { securitySchemes => { key => { type => 'http', scheme => 'bearer' } } }, security => [ { key => [] } ],
    paths => {
        '/pets' => {
            get  => { operationId => 'listPets', summary => 'List the pets of the shop', parameters => [ { name => 'tags', in => 'query', schema => { type => 'array', items => { type => 'string' } } } ] },
            post => { operationId => 'addPet', summary => 'Add a pet to the shop', requestBody => { content => { 'application/json' => { schema => { '$ref' => '#/components/schemas/Pet' } } } } }
        },
        '/pets/{id}' => { get => { operationId => 'getPet', summary => 'Show one pet with its keeper', parameters => [ { name => 'id', in => 'path', required => MCP::Json::true(), schema => { type => 'string' } } ] } }
    }
);
$petshop{components}{schemas} = { Pet => { type => 'object', required => ['name'], properties => { id => { type => 'string', readOnly => MCP::Json::true() }, name => { type => 'string' }, keeper => { '$ref' => '#/components/schemas/Pet' } } } };

sub petshop { my (%paths) = @_; return MCP::Json::encode({ %petshop, paths => { %{ $petshop{paths} }, %paths } }) }

subtest 'a document becomes a connector, and its operations tools that can be called' => sub {
    my $upstream = MCP::Upstream->start(root => $root, serve => sub { return MCP::Upstream::json(200, { ok => 1 }) });
    $stack->reconfigure(allow => [ $upstream->origin ]);
    $stack->gateway->graceful;
    my $file = $root->write('pets.json', petshop());
    my ($status, $out, $err) = ctl(qw(connectors import), $file, '--slug', 'pets', '--base-url', $upstream->origin . '/v1', '--classify', 'addPet=destructive');
    is($status, 0, 'is imported') or diag $err;
    like($out, qr/^Pet shop 1 \(OpenAPI 3\.0\.3\): 3 operations, 2 read, 1 destructive$/m, 'the report says what');
    like($out, qr/^sign-in: bearer \(key\)$/m, 'how it is signed in');
    like($out, qr/^pets: created, 3 operations in force/m, 'and what is in force');
    $stack->ctl(qw(connections create), { connector => 'pets', label => 'pets', shared => MCP::Json::true(), credential => { token => 't0k' } });
    my $member = $stack->client;
    my ($add) = grep { $_->{name} eq 'pets__addPet' } @{ result($member->list)->{tools} };
    is_deeply([ sort keys %{ $add->{inputSchema}{properties} } ], [qw(keeper name)], 'members of the body are arguments, without those that are only read');
    ok($add->{annotations}{destructiveHint}, 'classified as was said');
    is(verdict($member->call('pets__listPets', { tags => [qw(a b)] })), '200/result', 'called');
    is(verdict($member->call('pets__addPet', { name => 'Rex', keeper => { name => 'Ada' } })), '200/result', 'and again');
    my @asked = $upstream->requests;
    is("$asked[0]{method} $asked[0]{target}", 'GET /v1/pets?tags=a&tags=b', 'a list in the query');
    is_deeply(MCP::Json::decode($asked[1]{body}), { name => 'Rex', keeper => { name => 'Ada' } }, 'a body');
    $upstream->stop;
    $stack->ctl(qw(connections delete), 'pets');
    $stack->ctl(qw(connectors delete), 'pets');
};

subtest 'what comes again is compared; what widens or destroys waits' => sub {
    my $file = $root->write('shop.json', petshop());
    my (undef, $first) = imported($file, qw(--slug shop));
    is($first->{import}{connectors}[0]{action}, 'created', 'first');
    my (undef, $same) = imported($file, qw(--slug shop));
    is($same->{import}{connectors}[0]{action}, 'unchanged', 'again');
    $root->write('shop.json', petshop('/pets' => { get => $petshop{paths}{'/pets'}{get}, delete => { operationId => 'sellAll', summary => 'Sell every pet of the shop' } }, '/food' => { get => { operationId => 'listFood', summary => 'List the food that there is' } }));
    my ($status, $out) = ctl(qw(connectors import), $file, qw(--slug shop));
    is($status, 0, 'another form');
    like($out, qr/^  added 2: listFood, sellAll$/m, 'what is added');
    like($out, qr/^  removed 1: addPet$/m, 'what is gone');
    like($out, qr/^    sellAll: new and destructive$/m, 'what is held back');
    like($out, qr/^  policyctl connectors accept shop /m, 'and how it is accepted');
    my %now = map { $_->{id} => 1 } @{ $stack->ctl(qw(connectors get shop))->{operations} };
    ok($now{listFood} && !$now{sellAll} && !$now{addPet}, 'the rest is in force');
    is($stack->ctl(qw(connectors review shop))->{held}[0]{operation}, 'sellAll', 'it waits');
    $stack->ctl(qw(connectors accept shop));
    ok(grep({ $_->{id} eq 'sellAll' } @{ $stack->ctl(qw(connectors get shop))->{operations} }), 'until it is accepted');
    $root->write('shop.json', petshop());
    my (undef, $dry) = imported($file, qw(--slug shop --dry-run));
    is_deeply($dry->{import}{connectors}[0]{removed}, [ sort qw(listFood sellAll) ], 'a dry run tells');
    ok(grep({ $_->{id} eq 'sellAll' } @{ $stack->ctl(qw(connectors get shop))->{operations} }), 'and changes nothing');
    my (undef, $accepted) = imported($root->write('shop2.json', petshop('/pets' => { delete => { operationId => 'sellEach', summary => 'Sell each pet of the shop' } })), qw(--slug shop --accept sellEach));
    is_deeply($accepted->{import}{connectors}[0]{held}, [], 'accepted beforehand');
};

subtest 'what can not be taken says what to change, and changes nothing' => sub {
    my @bad = (
        [ 'no description at all', '{"a":1}',                                    qr/neither OpenAPI 3 nor Swagger 2\.0/ ],
        [ 'no JSON, no YAML',      "a: [\n",                                     qr/line \d+/ ],
        [ 'an empty file',         q(),                                          qr/empty/ ],
        [ 'nothing but a list',    '[]',                                         qr/root is no object/ ],
        [ 'too deep',              '[' x 5000 . ']' x 5000,                      qr/nested too deeply/ ],
        [ 'many levels of aliases', "a: &a [x,x,x,x,x,x,x,x,x,x]\n" . join(q(), map { my $n = chr(ord('a') + $_); my $b = chr(ord('a') + $_ - 1); "$n: &$n [*$b,*$b,*$b,*$b,*$b,*$b,*$b,*$b,*$b,*$b]\n" } 1 .. 12) . "openapi: 3.0.0\n", qr/too many values/ ]
    );
    my $before = $stack->ctl(qw(connectors list));
    for my $case (@bad) {
        my ($what, $text, $why) = @$case;
        my ($status, $out, $err) = ctl(qw(connectors import), $root->write('bad.yaml', $text));
        is($status, 1, "$what: refused");
        like($err, $why, "$what: and why");
    }
    for my $words ([], ['https://pets.example/openapi.json'], [ $root->write('x.json', petshop()), '--frobnicate' ], [ $root->path('x.json'), '--classify', 'addPet=harmless' ], [ '--dir', $root->path, '--slug', 'x' ]) {
        is((ctl(qw(connectors import), @$words))[0], 2, "usage: @$words");
    }
    is_deeply($stack->ctl(qw(connectors list)), $before, 'the catalog is as it was');
};

subtest 'from standard input, and without policyd' => sub {
    my ($status, $out) = MCP::Policyd::capture({ apart => 1, in => petshop() }, MCP::Build::policyctl(), '--socket', $stack->policyd->socket, qw(connectors import - --slug piped));
    is($status, 0, 'standard input');
    my ($converted, $text) = MCP::Policyd::capture({ apart => 1 }, MCP::Build::policyctl(), qw(--socket /nowhere connectors convert), $root->write('c.json', petshop()));
    is($converted, 0, 'convert asks nobody');
    my $file = MCP::Json::decode($text);
    is($file->{slug}, 'pet-shop', 'and writes a connector file');
    $file->{slug} = 'edited';
    my ($again, undef, $err) = imported($root->write('edited.json', MCP::Json::encode($file)));
    is($again, 0, 'which import takes') or diag $err;
};

subtest 'references lead into the document\'s folder, and nowhere else' => sub {
    my $folder = $root->make('api');
    $root->make('api/common');
    MCP::Root::write_file("$folder/common/pet.yaml", "Pet:\n  type: object\n  properties:\n    name: {type: string}\n");
    MCP::Root::write_file("$folder/.secret.json", '{"Pet":{"type":"object","properties":{"leaked":{"type":"string"}}}}');
    MCP::Root::write_file($root->path('outside.json'), '{"Pet":{"type":"object","properties":{"leaked":{"type":"string"}}}}');
    my $with = sub { my ($ref) = @_; my $doc = MCP::Json::decode(petshop()); $doc->{paths}{'/pets'}{post}{requestBody}{content}{'application/json'}{schema} = { '$ref' => $ref }; MCP::Root::write_file("$folder/doc.json", MCP::Json::encode($doc)); my (undef, $text) = MCP::Policyd::capture({ apart => 1 }, MCP::Build::policyctl(), qw(connectors convert), "$folder/doc.json", '--ref-root', $folder); return $text };
    like($with->('common/pet.yaml#/Pet'), qr/"name"/, 'a file beside it');
    unlike($with->($_), qr/leaked/, $_) for '.secret.json#/Pet', '../outside.json#/Pet', $root->path('outside.json') . '#/Pet', 'https://evil.example/x.json#/Pet', 'file:///etc/passwd';
};

subtest 'fetched on request alone, and not from private addresses' => sub {
    my $server = MCP::Upstream->start(root => $root, serve => sub {
        my ($request) = @_;
        return MCP::Upstream::json(200, MCP::Json::decode(petshop())) if $request->{target} eq '/openapi.json';
        return "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n" if $request->{target} eq '/away';
        return MCP::Upstream::json(404, {});
    });
    my $origin = $server->origin;
    my ($refused, undef, $why) = ctl(qw(connectors import --fetch), "$origin/openapi.json", qw(--slug fetched));
    is($refused, 1, 'a private address');
    is(scalar(my @none = $server->requests), 0, 'is not asked');
    is((ctl(qw(connectors import --fetch), "$origin/openapi.json", '--slug', 'fetched', '--allow-origin', $origin))[0], 0, 'unless its origin is allowed');
    my ($away, undef, $err) = ctl(qw(connectors import --fetch), "$origin/away", '--slug', 'away', '--allow-origin', $origin);
    is($away, 1, 'a redirect elsewhere');
    like($err, qr/only https is fetched/, 'is judged too');
    is((ctl(qw(connectors import --fetch), "$origin/missing", '--slug', 'missing', '--allow-origin', $origin))[0], 1, 'what is not there');
    $server->stop;
};

subtest 'the shipped catalog' => sub {
    my $conf = MCP::Build::source() . '/conf/connectors';
    my ($status, $out) = ctl(qw(connectors catalog --query git --catalog), $conf);
    is($status, 0, 'is listed');
    like($out, qr/^github\s/m, 'by a part of a name');
    is((ctl(qw(connectors add GitHub --catalog), $conf))[0], 0, 'an application is added by its name');
    is($stack->ctl(qw(connectors get github))->{auth}{type}, 'bearer', 'from its file');
    my ($none, undef, $err) = ctl(qw(connectors add Frobnicator --catalog), $conf);
    is($none, 1, 'another is not there');
    like($err, qr/not in the catalog/, 'and said so');
};

my $corpus = ($ENV{MCP_TEST_DATA} || MCP::Build::source() . '/../shared') . '/openapi-corpus';
SKIP: {
    skip "the documents are not there ($corpus): name them by MCP_TEST_DATA", 2 if !-r "$corpus/expectations.tsv";
    my ($head, @lines) = split /\n/, MCP::Root::slurp("$corpus/expectations.tsv");
    my @names = split /\t/, $head;
    subtest 'every document of the corpus is imported, counted and classified as expected' => sub {
        for my $line (@lines) {
            my %row;
            @row{@names} = split /\t/, $line, -1;
            (my $slug = $row{file}) =~ s{^.*/(?=[^/]+/)|[^a-z0-9]+}{-}g;
            $slug = substr $slug, -30;
            $slug =~ s/^-+|-+$//g;
            my ($status, $told, $err) = imported("$corpus/$row{file}", '--slug', $slug);
            is($status, 0, $row{file}) or diag $err;
            my %class = (read => 0, write => 0, destructive => 0);
            for my $connector (@{ $told->{import}{connectors} }) { $class{$_} += $connector->{by_class}{$_} for keys %class }
            is_deeply([ $told->{import}{operations}, @class{qw(read write destructive)} ], [ @row{qw(operations read write destructive)} ], "$row{file}: operations by class");
            is(join(',', map { "$_=$told->{conversion}{methods}{$_}" } sort keys %{ $told->{conversion}{methods} }) || '-', $row{methods}, "$row{file}: methods");
            is_deeply([ @{ $told->{conversion}{ids} }{qw(missing duplicate)} ], [ @row{qw(ids_missing ids_duplicate)} ], "$row{file}: ids that are missing or doubled");
            is(base_url($told->{import}{connectors}[0]{slug}), expected($row{base_url}), "$row{file}: where it is");
        }
    };
    subtest 'a folder at once' => sub {
        my ($status, $out) = ctl(qw(connectors import --dir), "$corpus/matrix-key-backup");
        like($out, qr/^\d+ of \d+ documents imported, 14 operations in force; \d+ refused$/m, 'what is a description is imported, the rest is told');
        is($status, 1, 'and the exit status says that something was refused');
    };
}

# The base URL with its variables at their defaults; what a connection has to set is left out.
sub base_url {
    my ($slug) = @_;
    my $connector = $stack->ctl(qw(connectors get), $slug);
    my $variables = $connector->{variables} || {};
    (my $url = $connector->{base_url}) =~ s/\{([^}]+)\}/defined $variables->{$1}{default} ? $variables->{$1}{default} : "{$1}"/ge;
    $url =~ s{^https:\/\/\{host\}}{};
    return $url;
}

sub expected { my ($url) = @_; $url = q() if $url eq '-'; $url =~ s{/+$}{}; return $url }

$stack->end(expected => [qw(MCP0301)]);
done_testing;
