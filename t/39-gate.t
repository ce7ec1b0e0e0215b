# t/gate itself: what it records, that it fails when something is not as expected, and that its hosts which ask a model speak the providers' formats:
# against stand-ins that answer as the providers do, with a model that is a few rules.

use strict;
use warnings;
use Test::More;
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
        is_deeply([ sort keys %$run ], [qw(condition expected missing ms observed prompt repetition skipped tokens)], "$run->{condition} $run->{prompt} $run->{repetition}: its record");
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
    ok($names{$_}, $_) for 'safety: a withheld tool answers as one that never was', 'recovery: a refused call names what helps', 'recovery: search and execute are listed';
};

subtest 'an expectation that is not met fails the gate, and is named' => sub {
    my ($status, undef, $out) = gate({ GATE_EXPECT => 'long_tail=facilities__cancel_repair' }, qw(--repetitions 1));
    is($status, 1, 'exit status');
    like($out, qr/^missing: flat, long_tail, 1: the right tool; .*called facilities__cancel_parking_permit$/m, 'flat');
    like($out, qr/^missing: collapsed, long_tail, 1: the right tool/m, 'collapsed');
    like($out, qr/NOT as expected$/, 'and the last line says so');
};

subtest 'usage' => sub {
    my ($status, undef, $out) = gate({}, '--help');
    is($status, 0, '--help');
    like($out, qr/^usage: t\/gate /, 'tells how');
    is((gate({}, @$_))[0], 2, "@$_") for ['--repetitions', 0], [ '--host', 'oracle' ], ['--frobnicate'], ['word'];
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

for my $provider ([ anthropic => \&anthropic, 'ANTHROPIC', 1000 ], [ openai => \&openai, 'OPENAI', 900 ]) {
    my ($name, $serve, $prefix, $usage) = @$provider;
    subtest "$name: the loop over its format, once told to wait" => sub {
        my $server = MCP::Upstream->start(root => $root, serve => sub {
            my ($request, $peer) = @_;
            return "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n" if $peer->count == 1;
            return $serve->($request);
        });
        my ($status, $report, $out, $err) = gate({ "${prefix}_API_KEY" => 'stand-in-key', "${prefix}_BASE_URL" => $server->origin }, '--host', $name, qw(--repetitions 1 --json));
        is($status, 0, 'all as expected') or diag $out, $err;
        is_deeply([ map { $_->{skipped} } @{ $report->{runs} } ], [ (undef) x 6 ], 'no run is skipped');
        my ($row) = grep { $_->{prompt} eq 'common' } @{ $report->{prompts} };
        is($row->{flat}{provider_tokens}, 2 * $usage, 'what the provider says of tokens stands beside ours');
        unlike($out . $err, qr/stand-in-key/, 'the key is not printed');
        $server->stop;
    };
    subtest "$name: what can't be done is skipped with its reason, and fails the gate" => sub {
        my $server = MCP::Upstream->start(root => $root, serve => sub { return "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nnot json" });
        my ($status, $report) = gate({ "${prefix}_API_KEY" => 'stand-in-key', "${prefix}_BASE_URL" => $server->origin }, '--host', $name, qw(--repetitions 1 --json));
        is($status, 1, 'exit status');
        is_deeply([ map { $_->{skipped} } @{ $report->{runs} } ], [ ('the provider answers what is no JSON') x 6 ], 'a malformed answer');
        $server->stop;
        return if $name ne 'openai';    # the same for both
        ($status, $report) = gate({}, '--host', $name, qw(--repetitions 1 --json));
        is_deeply([ map { $_->{skipped} } @{ $report->{runs} } ], [ ("${prefix}_API_KEY is not in the environment") x 6 ], 'no key');
    };
}

done_testing;
