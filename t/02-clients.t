# Official clients of every revision list the tools and call them through httpd; the file on the disk is really
# read, written and deleted. One subtest a client.

use strict;
use warnings;
use Test::More;
use MCP::Json;
use MCP::Node;
use MCP::Stack;

my $missing = MCP::Node::missing();
plan skip_all => $missing if defined $missing;

my $stack = MCP::Stack->new;
my $token = $stack->client->token;
my @tools = sort map { "webdav__$_" }
    qw(copy_file delete_file file_info list_files list_root make_folder move_file read_file write_file);

# Reads, writes and deletes below a name of the client's own, by an array of calls; then looks at the disk.
sub plan_of_calls {
    my ($name) = @_;
    $stack->file("$name-read.txt",   "for $name\n");
    $stack->file("$name-delete.txt", 'to be deleted');
    return (
        { name => 'webdav__read_file',   arguments => { path => "$name-read.txt" } },
        { name => 'webdav__write_file',  arguments => { path => "$name-write.txt", content => "by $name" } },
        { name => 'webdav__delete_file', arguments => { path => "$name-delete.txt" } },
        { name => 'webdav__read_file',   arguments => { path => "$name-gone.txt" } },
    );
}

sub judge {
    my ($name, @results) = @_;
    is $results[0]{content}[0]{text}, "for $name\n", 'it reads a file';
    ok !$results[0]{isError}, '... without an error';
    ok !$results[1]{isError} && !$results[1]{error}, 'it writes one';
    is $stack->file("$name-write.txt"), "by $name", '... which is on the disk';
    ok !$results[2]{isError} && !$results[2]{error}, 'it deletes one';
    is $stack->file("$name-delete.txt"), undef, '... which is gone';
    ok $results[3]{isError}, 'reading what is not there is an in-band error';
    my @seen = grep { /$name/ } $stack->upstream_log;
    is_deeply \@seen,
        [
        "GET /$name-read.txt 200", "PUT /$name-write.txt 201", "DELETE /$name-delete.txt 204",
        "GET /$name-gone.txt 404"
        ],
        'the server has seen these requests, each once';
    return;
}

sub judge_script {
    my ($name, $protocol, $has_session, @words) = @_;
    my @calls = plan_of_calls($name);
    my ($status, $data, $err) =
        MCP::Node::script(@words, $stack->url, '--token', $token, '--calls', MCP::Json::encode(\@calls));
    is $status, 0, 'the client is content' or diag $err;
    return if !$data;
    is $data->{protocol}, $protocol, "it speaks $protocol";
    is_deeply [grep { !/^elaichi__/ } sort @{ $data->{tools} }], \@tools, 'it lists the tools';
    is !!$data->{session}, !!$has_session, $has_session ? 'it has a session' : 'it has no session';
    is $data->{server}{name}, 'mod_mcp', 'it knows the server';
    judge($name, @{ $data->{results} });
    return;
}

subtest 'TypeScript SDK v1 at 2025-11-25' => sub {
    judge_script('sdk1', '2025-11-25', 1, 'client-sdk1.mjs');
};
subtest 'TypeScript SDK v1 of its time at 2025-06-18' => sub {
    judge_script('sdk1-june', '2025-06-18', 1, 'client-sdk1.mjs', '--package', 'sdk-2025-06-18');
};
subtest 'TypeScript SDK v1 of its time at 2025-03-26' => sub {
    judge_script('sdk1-march', '2025-03-26', 1, 'client-sdk1.mjs', '--package', 'sdk-2025-03-26');
};
subtest 'TypeScript SDK v2 at 2026-07-28' => sub {
    judge_script('sdk2', '2026-07-28', 0, 'client-sdk2.mjs', '--mode', '2026-07-28');
};
subtest 'TypeScript SDK v2, finding out by itself' => sub {
    judge_script('sdk2-auto', '2026-07-28', 0, 'client-sdk2.mjs', '--mode', 'auto');
};
subtest 'TypeScript SDK v2 in its legacy mode' => sub {
    judge_script('sdk2-legacy', '2025-11-25', 1, 'client-sdk2.mjs', '--mode', 'legacy');
};

# The Inspector makes one request a run: (exit status, its result, what it said)
sub inspect {
    my ($era, @words) = @_;
    my ($status, $out, $err) = MCP::Node::program(
        'mcp-inspector', '--cli', '--server-url', $stack->url, '--transport', 'http',
        '--header', "Authorization: Bearer $token", '--protocol-era', $era, '--format', 'json', '-q',
        '--stored-auth-only', @words
    );
    return ($status, scalar(eval { MCP::Json::decode($out) }), "$out$err");
}

for my $era (qw(legacy modern)) {
    subtest "MCP Inspector's CLI, $era" => sub {
        my $name = "inspector-$era";
        my ($status, $list, $said) = inspect($era, '--method', 'tools/list');
        is $status, 0, 'it lists' or diag $said;
        my $tools = $list->{tools} || $list->{result}{tools} || [];
        is_deeply [grep { !/^elaichi__/ } sort map { $_->{name} } @$tools], \@tools, '... the tools';
        my @results;
        for my $call (plan_of_calls($name)) {
            ($status, my $result, $said) = inspect(
                $era, '--method', 'tools/call', '--tool-name', $call->{name},
                '--tool-args-json', MCP::Json::encode($call->{arguments})
            );
            is $status, $call->{arguments}{path} =~ /gone/ ? 5 : 0, "exit status of $call->{name}" or diag $said;
            push @results, $result->{result} || $result || {};
        }
        judge($name, @results);
    };
}

subtest 'the record has one entry for each attempt' => sub {
    my @rows = $stack->calls;
    is scalar(@rows), 4 * 8, 'as many rows as calls';
    my %outcome;
    $outcome{ $_->{outcome} }++ for @rows;
    is_deeply \%outcome, { ok => 3 * 8, error => 8 }, 'with their outcomes';
};

$stack->end;
done_testing;
