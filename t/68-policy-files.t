# Policy as files, through policyctl: what is exported and applied changes nothing and no revision; a document and a directory say the
# same; an empty policyd becomes an equal one; the plan is shown, asked about, and what was looked at is what happens.

use strict;
use warnings;
use Test::More;
use MCP::Build;
use MCP::Json;
use MCP::Log;
use MCP::Policyd;
use MCP::Root;

my $root = MCP::Root->new;
my $policyd = MCP::Policyd->new(root => $root)->start;
my $program = MCP::Build::policyctl();
my $dir = $root->path('policy');
my $file = $root->path('policy.json');

# (status, out, err) of policyctl; text for its input as {in => ...} in front, another policyd as {at => ...}.
sub ctl {
    my %how = ref $_[0] eq 'HASH' ? %{ shift @_ } : ();
    my $at = delete $how{at} || $policyd;
    return MCP::Policyd::capture({ apart => 1, %how }, $program, '--socket', $at->socket, @_);
}

# Standard output of what has to work.
sub done {
    my ($status, $out, $err) = ctl(@_);
    die "policyctl: exit $status: $err" if $status != 0;
    return $out;
}

# Of the policy, as the row of a read just made has it.
sub revision {
    $policyd->ctl(qw(roles list));
    my ($row) = grep { $_->{operation} eq 'roles__list' } @{ $policyd->ctl(qw(audit list --limit 5))->{items} };
    return $row->{revision} || die "a row without revision\n";
}

sub write_json { my ($path, $value) = @_; return MCP::Root::write_file($path, MCP::Json::encode($value)) }

sub files { my ($of) = @_; opendir my $open, $of or die "$of: $!"; return sort grep { !/^\./ } readdir $open }

my $true = MCP::Json::true();
my $shop = {
    slug => 'shop', label => 'Shop', base_url => 'https://shop.example.com', auth => { type => 'none' },
    operations => [
        { id => 'list', method => 'GET',    path => '/items', description => 'Lists.',
          parameters => [{ name => 'region', in => 'query', schema => { type => 'string' } }] },
        { id => 'wipe', method => 'DELETE', path => '/items', description => 'Wipes.' }
    ]
};
my %mail = (%$shop, slug => 'mail', label => 'Mail', base_url => 'https://mail.example.com');

sub people {
    my ($at) = @_;
    $at->ctl(qw(members create), { email => 'owner@example.org', roles => ['Owner'] });
    $at->ctl(qw(members create), { email => "$_\@example.org" }) for qw(ada bob);
    return;
}

people($policyd);
$policyd->ctl(qw(roles create), { name => 'Ops', permissions => ['tool:execute'] });
$policyd->ctl(qw(connectors create), $_) for $shop, \%mail;
$policyd->ctl(qw(connections create), { connector => 'shop', label => 'shop', shared => $true });
$policyd->ctl(qw(connections create), { connector => 'mail', label => 'mail', shared => $true, toolbox_only => $true });
$policyd->ctl(qw(connections create), { connector => 'shop', label => 'mine', owner => 'ada@example.org' });
$policyd->ctl(qw(settings set), { key => 'collapse.threshold', value => 12 });
$policyd->ctl(qw(recipes create), { name => 'greet', text => 'Say hello to {{who}}.', arguments => [{ name => 'who' }] });
$policyd->ctl(qw(toolboxes create), {
    name => 'kit', roles => ['Member'], members => ['bob@example.org'],
    entries => [{ connector => 'mail', operation => 'list', connections => ['mail'], frozen => { region => 'eu' } }]
});
$policyd->ctl(qw(restrictions create), { name => 'no-wipe', effect => 'block', target => { role => 'Member' }, items => [{ tool => 'shop__wipe' }] });
$policyd->ctl(qw(restrictions create), { effect => 'allow', target => { member => 'ada@example.org' }, items => [{ connector => 'shop' }] });

subtest 'export and apply change nothing' => sub {
    my $was = revision();
    my $text = done('export');
    is(done('export'), $text, 'the same bytes twice');
    my $document = MCP::Json::decode($text);
    is_deeply([sort keys %$document], [qw(connections connectors recipes restrictions roles settings toolboxes version)], 'all sections');
    unlike($text, qr/\b(?:con|cxn|mem|rst|tbx|rol|rcp|set)_/, 'no id in it');
    unlike($text, qr/"mine"|owner\@example/, 'nor what a member owns');
    is($document->{toolboxes}[0]{entries}[0]{frozen}{region}, 'eu', 'frozen values are in it');
    like(done({ in => $text }, qw(apply -f -)), qr/^Nothing to change; 10 unchanged$/m, 'piped back in');
    like(done({ in => $text }, qw(apply --prune -f -)), qr/^Nothing to change/m, 'with --prune too');
    my $plan = MCP::Json::decode(done({ in => $text }, qw(apply -f - -o json)));
    is_deeply([@{$plan}{qw(created updated deleted unchanged)}], [0, 0, 0, 10], 'and says so as JSON');
    is(revision(), $was, 'the revision stayed');
};

subtest 'a directory' => sub {
    done('export', '-o', "$dir/");
    is_deeply([files($dir)], [qw(connections.json connector-mail.json connector-shop.json connectors.json recipes.json restrictions.json roles.json settings.json toolboxes.json)], 'one file a section and connector');
    is((stat "$dir/toolboxes.json")[2] & 0777, 0600, 'readable for the owner alone');
    is((stat $dir)[2] & 0777, 0700, 'and so is the directory');
    my $was = revision();
    like(done('apply', '-f', $dir, '--prune'), qr/^Nothing to change/m, 'says what the document says');
    is(revision(), $was, 'and changes nothing');
    $policyd->ctl(qw(connectors create), { %mail, slug => 'third', label => 'Third' });
    done('export', '-o', $dir);
    ok(-e "$dir/connector-third.json", 'a new connector is a new file');
    $policyd->ctl(qw(connectors delete third));
    done('export', '-o', $dir);
    ok(!-e "$dir/connector-third.json", 'one that is gone has none any more');
    MCP::Root::write_file("$dir/extra.json", '{"version":1}');
    my ($status, undef, $err) = ctl('export', '-o', $dir);
    is($status, 1, 'a directory with another document in it');
    like($err, qr/extra\.json/, 'is refused, naming it');
    unlink "$dir/extra.json";
};

subtest 'an empty policyd becomes an equal one' => sub {
    my $other = MCP::Policyd->new(root => $root, name => 'other')->start;
    people($other);
    like(done({ at => $other }, 'apply', '-f', $dir), qr/^10 created, 0 updated, 0 deleted; 0 unchanged$/m, 'everything is created');
    is(done({ at => $other }, 'export'), done('export'), 'and exported the same, byte by byte');
    like(done({ at => $other }, 'apply', '-f', $dir), qr/^Nothing to change/m, 'once is enough');
    $other->stop;
    is_deeply([MCP::Log::unexpected([$other->log])], [], 'its log has nothing unexpected');
};

subtest 'the plan is shown, and a dry run changes nothing' => sub {
    my $was = revision();
    my $document = {
        version => 1,
        roles => [{ name => 'Ops', permissions => [] }, { name => 'Desk', permissions => [] }],
        restrictions => [{ name => 'no-list', effect => 'block', target => { role => 'Member' }, items => [{ connector => 'shop', operation => 'list' }] }]
    };
    write_json($file, $document);
    my $out = done(qw(apply --dry-run -f), $file);
    like($out, qr/^update\s+roles\s+Ops$/m, 'what is updated');
    like($out, qr/^create\s+roles\s+Desk$/m, 'what is created');
    like($out, qr/^create\s+restrictions\s+no-list$/m, 'and so on');
    like($out, qr/^2 to create, 1 to update, 0 to delete; 0 unchanged$/m, 'the counts');
    like($out, qr/^Members touched: 1; 0 gain tools, 1 lose tools$/m, 'whom it touches: ada has rules of her own');
    like($out, qr/bob\@example\.org.*shop__list/s, 'who loses what');
    is(revision(), $was, 'nothing was changed');
    like(done(qw(apply --dry-run --prune -f), $file), qr/^delete\s+restrictions\s+no-wipe$/m, 'with --prune also what goes');
    is(revision(), $was, 'still nothing');
    $out = done(qw(apply -f), $file);
    like($out, qr/to create.*^2 created, 1 updated, 0 deleted; 0 unchanged$/ms, 'the plan first, then what was done');
    is($policyd->ctl(qw(roles get Ops))->{permissions}[0], undef, 'it is done');
    isnt(revision(), $was, 'at a new revision');
    is(MCP::Json::decode(done(qw(apply -o json -f), $file))->{unchanged}, 3, 'and done again is nothing');
};

subtest 'at a terminal it asks' => sub {
    my ($script) = grep { -x } map { "$_/script" } split /:/, $ENV{PATH};
    plan skip_all => 'there is no script(1) to make a terminal' if !defined $script;
    my $was = revision();
    write_json($file, { version => 1, roles => [{ name => 'Asked', permissions => [] }] });
    my $command = join q( ), $program, '--socket', $policyd->socket, 'apply', '-f', $file;
    my ($status, $out) = MCP::Policyd::capture({ in => "n\n" }, $script, '-qec', $command, '/dev/null');
    like($out, qr/create\s+roles\s+Asked.*Apply this\? \[y\/N\]/s, 'after the plan');
    isnt($status, 0, 'no');
    is(revision(), $was, 'means no');
    (undef, $out) = MCP::Policyd::capture({ in => "yes\n" }, $script, '-qec', $command, '/dev/null');
    like($out, qr/1 created/, 'yes means yes');
    write_json($file, { version => 1, roles => [{ name => 'Unasked', permissions => [] }] });
    (undef, $out) = MCP::Policyd::capture({}, $script, '-qec', "$command --yes", '/dev/null');
    unlike($out, qr/Apply this/, '--yes does not ask');
    like($out, qr/1 created/, 'and does it');
};

subtest 'what is refused' => sub {
    my $was = revision();
    my ($status, $out, $err) = ctl({ in => '{"version":1,"roles":[{"name":"A","permissions":["no:such"]}]}' }, qw(apply -f -));
    is($status, 1, 'a fault of the document');
    like($err, qr/^policyctl: invalid_request: roles\[0\] \(A\): /, 'names its place');
    my $twice = $root->path('twice');
    mkdir $twice;
    write_json("$twice/a.json", { version => 1, roles => [{ name => 'Twin', permissions => [] }] });
    write_json("$twice/b.json", { version => 1, roles => [{ name => 'Twin', permissions => ['tool:read'] }] });
    ($status, undef, $err) = ctl('apply', '-f', $twice);
    is($status, 2, 'the same object in two files');
    like($err, qr/a\.json and b\.json/, 'names both');
    write_json("$twice/b.json", { version => 1, roles => [{ name => 'Single', permissions => [] }] });
    like(done(qw(apply --dry-run -f), $twice), qr/^2 to create/m, 'two objects of a section in two files are joined');
    for my $words ([], [qw(-f)], ['-f', "$twice/none.json"], ['-f', $twice, '--no-plan', '--dry-run'], ['-f', $twice, 'more']) {
        ($status) = ctl('apply', @$words);
        is($status, 2, "apply @$words: wrong usage");
    }
    ($status, undef, $err) = ctl({ in => '{"version":1,"members":[]}' }, qw(apply -f -));
    is($status, 1, 'a section that there is not');
    is(revision(), $was, 'nothing of all that was done');
};

subtest 'help and completion' => sub {
    for my $command (qw(export apply)) {
        my ($status, $out) = ctl($command, '--help');
        is($status, 0, "$command --help");
        is(done('help', $command), $out, "help $command is the same");
        my @flags = $out =~ /^  (-\S+)/mg;
        my $words = done(qw(completion words --), $command);
        is_deeply([grep { $words !~ /^\Q$_\E$/m } @flags], [], "$command: every flag completes");
    }
    like(done(qw(completion words --)), qr/^export$/m, 'the commands complete');
};

$policyd->stop;
is_deeply([MCP::Log::unexpected([$policyd->log])], [], 'the log has nothing unexpected');

done_testing();
