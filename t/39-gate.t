# t/gate itself: what it records, that it fails when something is not as expected, and that its hosts which ask a model speak the providers' formats:
# against stand-ins that answer as the providers do, with a model that is a few rules.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/gate.d";
use Test::More;
use Gate::Registry;
use MCP::Build;
use MCP::Json;
use MCP::Node;
use MCP::Policyd;
use MCP::Root;
use MCP::Upstream;

my $missing = MCP::Node::missing();
plan skip_all => $missing if $missing;
plan skip_all => 'policyd\'s first people are made by root' if $> != 0;

my $gate = MCP::Build::source() . '/t/gate';
my $root = MCP::Root->new;
my @keys = qw(ANTHROPIC_API_KEY ANTHROPIC_BASE_URL OPENAI_API_KEY OPENAI_BASE_URL GATE_MODEL GATE_EXPECT);
delete @ENV{@keys};
$ENV{NODE_COMPILE_CACHE} = $root->path('compiled'); # the host is started some fifty times

sub gate {
    my ($env, @words) = @_;
    local @ENV{ keys %$env } = values %$env;
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1, env => { MCP_BUILD_DIR => MCP::Build::dir(), %$env } }, $^X, $gate, @words);
    return ($status, scalar(eval { MCP::Json::decode($out) }), $out, $err);
}

subtest 'the scripted host does every prompt in both conditions, and all is recorded' => sub {
    my ($status, $report, $out, $err) = gate({}, qw(--host scripted --repetitions 2 --json));
    is($status, 0, 'all as expected') or diag $out, $err;
    is(scalar @{ $report->{runs} }, 12, 'three prompts, two conditions, two repetitions');
    like($report->{digest}, qr/^[0-9a-f]{64}$/, 'one registry');
    for my $run (@{ $report->{runs} }) {
        is_deeply([ sort keys %$run ], [qw(condition expected list_ms missing ms observed prompt repetition skipped tokens)], "$run->{condition} $run->{prompt} $run->{repetition}: its record");
        is_deeply($run->{missing}, [], 'nothing is missing');
        my $searches = $run->{condition} eq 'collapsed' && $run->{prompt} ne 'no_tool' ? 1 : 0;
        is($run->{observed}{searches}, $searches, "$searches searches");
        cmp_ok($run->{tokens}{total}, '>', 0, 'tokens are counted');
    }
    my %by = map { $_->{prompt} => $_ } @{ $report->{prompts} };
    for my $prompt (sort keys %by) {
        my $row = $by{$prompt};
        cmp_ok($row->{collapsed}{initial_tokens}, '<', $row->{flat}{initial_tokens} / 4, "$prompt: a collapsed list begins cheaper");
        cmp_ok($row->{collapsed_faster} + $row->{collapsed_slower}, '<=', 2, "$prompt: both signs of the difference in time");
    }
    is_deeply([ grep { !$_->{ok} } @{ $report->{checks} } ], [], 'safety and recovery');
    my %names = map { $_->{name} => 1 } @{ $report->{checks} };
    ok($names{$_}, $_) for 'safety: a withheld tool answers as one that never was', 'safety: nothing was sent for it', 'recovery: a refused call names what helps',
        'recovery: after it another search finds', 'recovery: search and execute are listed', 'one digest of definitions, before the runs', 'one digest of definitions, after the runs';
    is($report->{tokenizer}, 'o200k_base', 'the encoding is named');
};

subtest 'an expectation that is not met fails the gate, and is named' => sub {
    my ($status, undef, $out) = gate({ GATE_EXPECT => 'long_tail=facilities__cancel_repair' }, qw(--repetitions 1 --prompts long_tail));
    is($status, 1, 'exit status');
    like($out, qr/^missing: flat, long_tail, 1: the right tool; .*called facilities__cancel_parking_permit$/m, 'flat');
    like($out, qr/^missing: collapsed, long_tail, 1: the right tool/m, 'collapsed');
    like($out, qr/NOT as expected$/, 'and the last line says so');
};

subtest 'usage' => sub {
    my ($status, undef, $out) = gate({}, '--help');
    is($status, 0, '--help');
    like($out, qr/^usage: t\/gate /, 'tells how');
    is((gate({}, @$_))[0], 2, "@$_") for ['--repetitions', 0], [ '--host', 'oracle' ], [ '--prompts', 'rare' ], ['--frobnicate'], ['word'];
};

# --- stand-ins for providers -------------------------------------------------------------------------------

my %plan = (
    'List the support tickets of the desk, please.' => [ 'desk__list_tickets', {}, 'list support tickets desk' ],
    'Cancel the parking permit P-7712.' => [ 'facilities__cancel_parking_permit', { id => 'P-7712' }, 'cancel parking permit' ]
);

# The next step of the model: {call => [name, arguments]} or {text}. done: how many results it has had.
sub step {
    my ($prompt, $done, $names) = @_;
    my $plan = $plan{$prompt} or return { text => '42' };
    my ($tool, $arguments, $query) = @$plan;
    my $is_listed = grep { $_ eq $tool } @$names;
    return { call => [ $tool, $arguments ] } if $is_listed && $done == 0;
    return { text => 'Done.' } if $is_listed;
    return { call => [ 'search_tools', { query => $query } ] } if $done == 0;
    return { call => [ 'execute_tool', { name => $tool, arguments => $arguments } ] } if $done == 1;
    return { text => 'Done.' };
}

sub header { my ($request, $name) = @_; return (map { $_->[1] } grep { lc $_->[0] eq $name } @{ $request->{headers} })[0] }

sub anthropic {
    my ($request) = @_;
    return MCP::Upstream::json(401, { error => {} }) if (header($request, 'x-api-key') || q()) ne 'stand-in-key' || !header($request, 'anthropic-version');
    return MCP::Upstream::json(404, {}) if $request->{target} ne '/v1/messages';
    my $body = MCP::Json::decode($request->{body});
    return MCP::Upstream::json(400, {}) if grep { !$_->{input_schema} || !$_->{name} } @{ $body->{tools} };
    my $done = grep { ref $_->{content} } grep { $_->{role} eq 'user' } @{ $body->{messages} };
    my $step = step($body->{messages}[0]{content}, $done, [ map { $_->{name} } @{ $body->{tools} } ]);
    my $content = $step->{call} ? { type => 'tool_use', id => "use_$done", name => $step->{call}[0], input => $step->{call}[1] } : { type => 'text', text => $step->{text} };
    return MCP::Upstream::json(200, { content => [$content], usage => { input_tokens => 1000, output_tokens => 10 } });
}

sub openai {
    my ($request) = @_;
    return MCP::Upstream::json(401, {}) if (header($request, 'authorization') || q()) ne 'Bearer stand-in-key';
    return MCP::Upstream::json(404, {}) if $request->{target} ne '/chat/completions';
    my $body = MCP::Json::decode($request->{body});
    my @messages = @{ $body->{messages} };
    my ($prompt) = map { $_->{content} } grep { $_->{role} eq 'user' } @messages;
    my $done = grep { $_->{role} eq 'tool' } @messages;
    my $step = step($prompt, $done, [ map { $_->{function}{name} } @{ $body->{tools} } ]);
    my $message = $step->{call}
        ? { role => 'assistant', tool_calls => [ { id => "call_$done", type => 'function', function => { name => $step->{call}[0], arguments => MCP::Json::encode($step->{call}[1]) } } ] }
        : { role => 'assistant', content => $step->{text} };
    return MCP::Upstream::json(200, { choices => [ { message => $message } ], usage => { prompt_tokens => 900, completion_tokens => 9 } });
}

my @providers = ([ anthropic => \&anthropic, 'ANTHROPIC', 1000, 'common,long_tail,no_tool' ], [ openai => \&openai, 'OPENAI', 900, 'common,long_tail' ]);
my $wait = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";

for my $provider (@providers) {
    my ($name, $serve, $prefix, $usage, $prompts) = @$provider;
    subtest "$name: the loop over its format, once told to wait" => sub {
        my $server = MCP::Upstream->start(root => $root, serve => sub { my ($request, $peer) = @_; return $peer->count == 1 ? $wait : $serve->($request) });
        my ($status, $report, $out, $err) = gate({ "${prefix}_API_KEY" => 'stand-in-key', "${prefix}_BASE_URL" => $server->origin }, '--host', $name, '--prompts', $prompts, qw(--repetitions 1 --json));
        is($status, 0, 'all as expected') or diag $out, $err;
        is_deeply([ map { $_->{skipped} } @{ $report->{runs} } ], [ (undef) x (2 * split /,/, $prompts) ], 'no run is skipped');
        my ($row) = grep { $_->{prompt} eq 'common' } @{ $report->{prompts} };
        is($row->{flat}{provider_initial_tokens}, $usage, 'what the provider says of tokens stands beside ours');
        is($row->{flat}{provider_tokens}, 2 * $usage, 'of all turns');
        cmp_ok($row->{collapsed}{total_tokens}, '>', 3 * $row->{collapsed}{initial_tokens} + 300, 'results count as input of the turns after them');
        unlike($out . $err, qr/stand-in-key/, 'the key is not printed');
        $server->stop;
    };
}

subtest 'what can\'t be done is skipped with its reason, and fails the gate' => sub {
    my ($status, $report) = gate({}, qw(--host openai --repetitions 1 --prompts common --json));
    is($status, 1, 'exit status');
    is_deeply([ map { $_->{skipped} } @{ $report->{runs} } ], [ ('OPENAI_API_KEY is not in the environment') x 2 ], 'no key');
    is_deeply([ map { $_->{flat}{skipped} + $_->{collapsed}{skipped} } @{ $report->{prompts} } ], [2], 'and counted');
};

# --- one run of the host by itself, against providers that misbehave ---------------------------------------

my $registry = Gate::Registry->start;
$registry->condition('collapsed');
my ($common, $long_tail) = map { $_->{text} } $registry->prompts;

sub host {
    my ($name, $env, $prompt, @words) = @_;
    local @ENV{ keys %$env } = values %$env;
    my ($status, $run, $said) = MCP::Node::script('gate-host.mjs', $registry->stack->url, '--token', $registry->token, '--host', $name, '--prompt', $prompt, @words);
    is($status, 0, 'the host comes to its end') or diag $said;
    unlike($said . MCP::Json::encode($run), qr/stand-in-key/, 'and prints no key');
    return $run || {};
}

# What a model says, in the format of either: a call with raw arguments, or something else.
sub says {
    my ($name, $tool, $arguments) = @_;
    return $name eq 'anthropic'
        ? { content => [ { type => 'tool_use', id => 'use_1', name => $tool, input => $arguments } ] }
        : { choices => [ { message => { role => 'assistant', tool_calls => [ { id => 'call_1', type => 'function', function => { name => $tool, arguments => $arguments } } ] } } ] };
}

for my $provider (@providers) {
    my ($name, $serve, $prefix) = @$provider;
    my $loops = MCP::Upstream::json(200, says($name, 'elaichi__whoami__get', $name eq 'anthropic' ? {} : '{}'));
    my %faults = (
        'no JSON'             => [ MCP::Upstream::answer(200, 'not json'), 1, qr/^the provider answers what is no JSON$/ ],
        'no answer in it'     => [ MCP::Upstream::json(200, {}), 1, qr/^the provider answers without (?:content|a message)$/ ],
        'null'                => [ MCP::Upstream::answer(200, 'null'), 1, qr/^the provider answers without (?:content|a message)$/ ],
        'too many for ever'   => [ $wait, 4, qr/^the provider answers 429$/ ],
        'a refusal in words'  => [ MCP::Upstream::json(400, { error => { type => 'invalid_request_error', message => 'about stand-in-key' } }), 1, qr/^the provider answers 400 \(invalid_request_error\)$/ ],
        'a way elsewhere'     => [ MCP::Upstream::answer(307, q(), Location => 'http://127.0.0.1:1/'), 1, qr/^the provider can't be asked: TypeError$/ ],
        'hung up'             => [ undef, undef, qr/^the provider can't be asked: TypeError$/ ],
        'calls without end'   => [ $loops, 3, qr/^the model still calls tools after 3 turns$/ ]
    );
    # The way to a provider is one for both: what is wrong with it is tried once.
    delete @faults{ 'too many for ever', 'a refusal in words', 'a way elsewhere', 'hung up', 'null' } if $name eq 'openai';
    for my $what (sort keys %faults) {
        my ($bytes, $asked, $why) = @{ $faults{$what} };
        subtest "$name: $what" => sub {
            my $server = MCP::Upstream->start(root => $root, serve => sub { return $bytes });
            my $sent = $registry->requests;
            my $run = host($name, { "${prefix}_API_KEY" => 'stand-in-key', "${prefix}_BASE_URL" => $server->origin }, $common, qw(--turns 3));
            like($run->{skipped}, $why, 'skipped, and why');
            is(scalar(my @all = $server->requests), $asked, 'asked so often') if defined $asked;
            is($registry->requests, $sent, 'nothing was sent upstream');
            $server->stop;
        };
    }
    subtest "$name: no key" => sub {
        is(host($name, {}, $common)->{skipped}, "${prefix}_API_KEY is not in the environment", 'is said');
    };
    $name eq 'anthropic' && subtest "$name: an answer that does not come" => sub {
        my $server = MCP::Upstream->start(root => $root, serve => sub { $_[1]->linger; return undef });
        like(host($name, { "${prefix}_API_KEY" => 'stand-in-key', "${prefix}_BASE_URL" => $server->origin }, $common, qw(--seconds 1))->{skipped}, qr/^the provider can't be asked: TimeoutError$/, 'is not waited for');
        $server->stop;
    };
    subtest "$name: arguments that are no object are told to the model, which goes on" => sub {
        my $bad = MCP::Upstream::json(200, says($name, 'execute_tool', 'not an object'));
        my $server = MCP::Upstream->start(root => $root, serve => sub { my ($request, $peer) = @_; return $peer->count == 1 ? $bad : $serve->($request) });
        my $run = host($name, { "${prefix}_API_KEY" => 'stand-in-key', "${prefix}_BASE_URL" => $server->origin }, $long_tail);
        is($run->{skipped}, undef, 'the run comes to its end');
        is_deeply([ grep { ref $_->{arguments} ne 'HASH' } @{ $run->{calls} } ], [], 'and no such call is made');
        $server->stop;
    };
}

subtest 'openai: more tools than it takes in a request' => sub {
    my $stack = $registry->stack;
    my @more = map { { id => "spare_$_", method => 'GET', path => "/spare/$_", description => "Spare part $_." } } 1 .. 20;
    $stack->connector({ slug => 'spare', label => 'Spare parts', base_url => "http://127.0.0.1:1", operations => \@more });
    $registry->condition('flat');
    like(host('openai', { OPENAI_API_KEY => 'stand-in-key', OPENAI_BASE_URL => 'http://127.0.0.1:1' }, $common)->{skipped}, qr/^\d+ tools are listed, and chat completions take 128$/, 'is said before it is asked');
    $stack->ctl(qw(connections delete), { connection => 'spare' });
    $registry->condition('collapsed');
};

subtest 'the scripted host needs no search for what is pinned' => sub {
    my $entry = { connector => 'desk', operation => 'list_tickets', connections => ['desk'], name => 'tickets', always_visible => MCP::Json::true() };
    $registry->stack->ctl(qw(toolboxes create), { name => 'pins', roles => ['Member'], entries => [$entry] });
    my $run = host('scripted', {}, $common);
    is_deeply([ map { $_->{name} } @{ $run->{calls} } ], ['pins__tickets'], 'it calls it');
    my $other = host('scripted', {}, $long_tail);
    is_deeply([ map { $_->{name} } @{ $other->{calls} } ], [qw(search_tools execute_tool)], 'and searches for the others');
};

$registry->stop;
$registry->stack->end;
done_testing;
