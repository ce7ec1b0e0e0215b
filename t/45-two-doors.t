# The same view asked the same question gives the same answer at every door: a worker searches its own copy, policyd its own. And whatever the
# locale of the programs is: equal scores stand in the order of code points.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;
use MCP::Verdict qw(result);

my $yes = MCP::Json::true();
my @verbs = qw(list get create update delete archive);
my @things = qw(invoice customer refund ticket contract shipment campaign folder calendar employee);

sub application {
    my ($slug, $label) = @_;
    my @operations = map {
        my ($verb, $thing) = ($verbs[ $_ % 6 ], $things[ $_ / 6 ]);
        { id => "${verb}_$thing", method => $verb =~ /list|get/ ? 'GET' : 'POST', path => "/$thing/$verb", description => "\u$verb the $thing of $label, with everything that belongs to it.",
            parameters => [ { name => 'state', in => 'query', description => "State of the $thing", schema => { type => 'string' } } ] }
    } 0 .. 59;
    return { slug => $slug, label => $label, base_url => 'http://127.0.0.1:1', operations => \@operations };
}

# Names that only code points put into an order that all locales share.
my @mixed = qw(Zeta alpha Beta beta _x B2 b10 b2 a-b a_b aB AB ab a1 A1 Z z zz);

sub ties { return { slug => 'ties', label => 'Ties', base_url => 'http://127.0.0.1:1', operations => [ map { { id => $_, method => 'GET', path => "/$_", description => 'Turns the gadget by one notch.' } } @mixed ] } }

# What an answer says: the names in their order; of an empty one the words that no tool has, and what is suggested. (What is found, policyd tells more
# of than a model is told.)
sub told {
    my ($answer) = @_;
    my @unmatched = @{ $answer->{items} } ? () : @{ $answer->{unmatched} || [] };
    return join ' ', (map { $_->{name} } @{ $answer->{items} }), '|', @unmatched, '|', defined $answer->{suggest} ? $answer->{suggest} : ();
}

subtest 'a worker and policyd, over MCP, REST and the admin socket' => sub {
    my $stack = MCP::Stack->new(webdav => 0, collapse => 1);
    my $resource = $stack->url;
    $stack->reconfigure(server => "<Location \"/api/v1\">\nMCPApi On\nMCPResource $resource\n</Location>\n");
    $stack->gateway->graceful;
    $stack->connector(application($_, "\u$_ register")) for qw(north south east west central);
    $stack->connector(ties());
    $stack->ctl(qw(toolboxes create), { name => 'desk', roles => ['Member'], entries => [ { connector => 'north', operation => 'get_ticket', connections => [qw(north)], name => 'look_up', frozen => { state => 'open' } } ] });
    my $member = $stack->client(keep => 1);
    my $owner = $stack->client(member => 'owner@example.org', keep => 1);
    my @queries = (
        (map { my $thing = $_; map { "$_ $thing" } @verbs[ 0 .. 3 ] } @things),
        (map { "$_ register" } @things), (map { my $slug = $_; map { "$slug $_" } @things[ 0 .. 4 ] } qw(north south east west central)),
        (map { my $verb = $_; map { "${verb}_$_" } @things } @verbs[ 2 .. 5 ]), (map { "please $_ something for me quickly" } @verbs),
        (map { "north__get_$_" } @things), (map { "GetCustomer $_" } 1 .. 5), (map { "frobnicate $_ zzqx" } @things), 'turn the gadget', 'salesforce leads', 'cal.com booking', 'look up', q(), 'the of and', 'connection', 'state of refund'
    );
    cmp_ok(scalar @queries, '>=', 150, scalar(@queries) . ' queries');
    my (@differ, $hits);
    for my $query (@queries) {
        my $by_worker = result($member->call('search_tools', { query => $query, limit => 20, detail => 'summary' }))->{structuredContent};
        my $by_policyd = $stack->ctl(qw(tools search), { member => 'member@example.org', query => $query, limit => 20 });
        my $over_mcp = result($owner->call('elaichi__tools__search', { member => 'member@example.org', query => $query, limit => 20 }))->{structuredContent};
        my @told = map { told($_) } $by_worker, $by_policyd, $over_mcp;
        push @differ, join "\n", $query, @told if grep { $_ ne $told[0] } @told;
        $hits += @{ $by_worker->{items} };
    }
    is_deeply(\@differ, [], 'names in order, unmatched words and suggestions are equal everywhere');
    cmp_ok($hits, '>', 500, 'and there is something to compare');
    my $rest = $owner->request('GET', '/api/v1/tools/search?member=member%40example.org&query=list%20invoice&limit=20', [ Authorization => 'Bearer ' . $owner->token ]);
    is_deeply([ map { $_->{name} } @{ MCP::Json::decode($rest->{body})->{items} } ], [ map { $_->{name} } @{ result($member->call('search_tools', { query => 'list invoice', limit => 20 }))->{structuredContent}{items} } ], 'over REST too');
    $stack->end;
};

# What lists and searches answer under a locale.
sub under {
    my ($locale, %env) = @_;
    local @ENV{ 'LC_ALL', keys %env } = ($locale, values %env);
    my $stack = MCP::Stack->new(webdav => 0, collapse => 1);
    $stack->connector(ties());
    my $member = $stack->client;
    my $found = result($member->call('search_tools', { query => 'turn the gadget', limit => 20, detail => 'summary' }))->{structuredContent};
    my $told = $stack->ctl(qw(tools search), { member => 'member@example.org', query => 'turn the gadget', limit => 20 });
    $stack->ctl(qw(settings set), { key => 'collapse.mode', value => 'never' });
    my $list = [ MCP::Client::connected($member->list) ];
    $stack->end;
    return { search => [ map { $_->{name} } @{ $found->{items} } ], policyctl => [ map { $_->{name} } @{ $told->{items} } ], list => $list };
}

subtest 'ties stand in the order of code points under any locale' => sub {
    my $root = MCP::Root->new;
    my $folder = $root->make('locales');
    my ($status, $out) = MCP::Policyd::capture({}, qw(localedef -i sv_SE -f UTF-8), "$folder/sv_SE.UTF-8");
    plan skip_all => "there is no Swedish locale here, nor what one is made of: $out" if !-d "$folder/sv_SE.UTF-8";
    my %env = (LOCPATH => $folder);
    my $lines = $root->write('lines', "B\na\n");
    my (undef, $sorted) = MCP::Policyd::capture({ env => { %env, LC_ALL => 'sv_SE.UTF-8' } }, 'sort', $lines);
    is($sorted, "a\nB\n", 'the locale is one, and orders otherwise');
    my $swedish = under('sv_SE.UTF-8', %env);
    my $plain = under('C');
    is_deeply($swedish, $plain, 'lists and searches are the same');
    my $names = [ sort map { "ties__$_" } @mixed ];
    is_deeply($plain->{$_}, $names, "$_: in the order of code points") for qw(search policyctl list);
};

done_testing;
