# The tour in README.md, run as it stands there after conf/quickstart: its commands work and show what it says.

use strict;
use warnings;
use Test::More;
use MCP::Build;
use MCP::Log;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;

my $root = MCP::Root->new;
my $source = MCP::Build::source();
my $dir = $root->path('run');

sub run_in_root {
    my (@words) = @_;
    return MCP::Policyd::capture({ apart => 1, env => { MCP_BUILD_DIR => MCP::Build::dir() } },
        'sh', '-c', 'cd "$0" && exec "$@"', $root->path('.'), @words);
}

# A test that fails half-way leaves nothing running.
END { run_in_root("$source/conf/quickstart", '--stop') if defined $dir && -d $dir }

my $readme = MCP::Root::slurp("$source/README.md");
my ($tour) = $readme =~ /<!-- tour:begin -->\n(.*?)<!-- tour:end -->/s;
my ($after) = $readme =~ /<!-- tour:end -->\n(.*?)^## /ms;
my @steps = map { /^```sh\n(.*?)^```/msg } $tour, $after;
is scalar @steps, 12, 'the tour has its steps' or BAIL_OUT('README.md has changed: see t/03-tour.t');

my ($status, $out, $err) = run_in_root("$source/conf/quickstart", '--port', MCP::Net::free_port());
is $status, 0, 'conf/quickstart, without a directory, succeeds' or BAIL_OUT("quickstart fails:\n$err");
ok -d $dir, '... and makes ./run';

$root->write('tour.sh', join '', map { "echo '=== step'\n$_" } @steps);
($status, $out, $err) = run_in_root('bash', 'tour.sh');
is $status, 0, 'the last command of the tour succeeds';
unlike $err, qr/not found|error|usage/i, 'no command complains';
my (undef, @said) = split /=== step\n/, $out;
is scalar @said, scalar @steps, 'every step is reached';

like $said[1], qr/"name":"webdav__read_file".*Welcome\. This file was read through the gateway.*201 Created/s, 'a tool is called';
is MCP::Root::slurp("$dir/webdav/files/hello.txt"), 'hello', '... and wrote its file';
like $said[2], qr/url_restricted, audit \d+-\d+/, 'breaking out is refused, with the audit row';
like $said[3], qr/"text":"hello".*"error":"insufficient_scope".*"scope":"mcp:destructive mcp:tools"/s,
    'an agent with less can read, and is told what it lacks to delete';
like $said[4], qr/suspended.*the member is not active.*active.*"text":"hello"/s, 'a suspension holds on the next call, and ends';
like $said[5], qr/Dry run.*1 lose tools.*- webdav__delete_file.*Unknown tool: webdav__delete_file.*can't have webdav__delete_file.*blocked: block rule no-deletes/s,
    'a restriction: what it would take, what a call answers, why';
is MCP::Root::slurp("$dir/webdav/files/hello.txt"), 'hello', '... and the file is there still';
my ($tool) = $said[6] =~ /("name":"reports__list".*?)"annotations"/s;
like $tool, qr/Some values are frozen/, '... whose tool says that something is frozen';
unlike $tool, qr/"path"|2026"/, '... and neither what nor how';
is scalar(my @lists = $said[6] =~ m{<D:href>/reports/2026/visits\.csv</D:href>}g), 2,
    'the frozen value is sent, whatever the caller passes';
like $said[7], qr/"name":"no-deletes".*restriction:read.*permission_denied.*"name\\":\\"no-deletes/s, 'other doors: the same, by permission';
like $said[8], qr/Nothing to change.*delete\s+restrictions\s+no-deletes.*0 created, 0 updated, 2 deleted/s, 'policy in files';
like $said[9], qr/webdav__delete_file.*url_restricted.*webdav__read_file\|ok\|/s, 'the trail tells it all, by policyctl and by SQL';
like $said[9], qr/webdav__delete_file\|denied\|restricted/, '... what was withheld, too';
like $said[10], qr/"slug": "webdav".*webdav\s+\S*\s*.*ready/s, 'connector and connection are shown';
like $said[11], qr/"resultType":"complete".*Welcome\. This file/s, 'a client of 2026-07-28 is served';

($status) = run_in_root("$source/conf/quickstart", '--stop');
is $status, 0, 'conf/quickstart --stop ends it';
is_deeply [MCP::Log::unexpected([map { "$dir/log/$_" } qw(policyd.log gateway_error.log)])], [],
    'the logs hold nothing unexpected';
done_testing;
