# Connectors that ship, called through the gateway: what arrives at an upstream is, to the byte, what the vendor's documentation asks for. The
# files are taken as they are; only an address beyond this machine is replaced by the upstream's.

use strict;
use warnings;
use MIME::Base64 ();
use Test::More;
use MCP::Build;
use MCP::Json;
use MCP::Root;
use MCP::Stack;
use MCP::Upstream;

my $root = MCP::Root->new;
my $upstream = MCP::Upstream->start(root => $root, serve => sub { return MCP::Upstream::json(200, { ok => MCP::Json::true() }) });
my $stack = MCP::Stack->new(webdav => 0, allow => [$upstream->origin]);
my $authority = '127.0.0.1:' . $upstream->port;

my %credential = (
    none    => undef,
    bearer  => { token => 'tok-1' },
    basic   => { username => 'ana', password => 'pass-1' },
    api_key => { value => 'key-1' }
);
my %variables = (host => $authority, root => q());

# A shipped file as it is, but for the place of its upstream.
sub shipped {
    my ($slug) = @_;
    my $file = MCP::Json::decode(MCP::Root::slurp(MCP::Build::source() . "/conf/connectors/$slug.json"));
    $file->{base_url} =~ s{^https?://(\{host\})?[^/]*}{'http://' . ($1 && $file->{variables}{host}{pattern} ? '{host}' : $authority)}e;
    for my $name (keys %{ $file->{variables} || {} }) {
        delete $file->{variables}{$name} if $file->{base_url} !~ /\{\Q$name\E\}/;
    }
    delete $file->{variables} if !%{ $file->{variables} || {} };
    return $file;
}

sub connect_to {
    my ($slug) = @_;
    my $file = shipped($slug);
    my $credential = $credential{ $file->{auth}{type} };
    my %given = map { $_ => $variables{$_} } grep { exists $variables{$_} } keys %{ $file->{variables} || {} };
    $stack->connector(
        $file,
        %given      ? (variables  => \%given)     : (),
        $credential ? (credential => $credential) : ()
    );
    return;
}

# --- what is called, and what must arrive ---------------------------------------------

my $basic = 'Basic ' . MIME::Base64::encode_base64('ana:pass-1', q());
my @calls = (
    {
        what   => 'a project by its path is one segment',
        tool   => 'gitlab__get_project',
        args   => { id => 'acme/shop' },
        line   => 'GET /api/v4/projects/acme%2Fshop',
        header => { Authorization => 'Bearer tok-1' }
    },
    {
        what => 'so is a file in a repository',
        tool => 'gitlab__read_file',
        args => { id => '42', file_path => 'src/main c.c', ref => 'release/2' },
        line => 'GET /api/v4/projects/42/repository/files/src%2Fmain%20c.c/raw?ref=release%2F2'
    },
    {
        what => 'a body of objects within objects',
        tool => 'gitlab__create_commit',
        args => {
            id      => 'acme/shop',
            branch  => 'main', commit_message => 'Say hello',
            actions => [{ action => 'create', file_path => 'a.txt', content => 'hello' }]
        },
        line => 'POST /api/v4/projects/acme%2Fshop/repository/commits',
        json => { branch => 'main', commit_message => 'Say hello', actions => [{ action => 'create', file_path => 'a.txt', content => 'hello' }] }
    },
    {
        what   => 'a path over several segments, and a word of its own before the token',
        tool   => 'gitea__get_contents',
        args   => { owner => 'acme', repo => 'shop', filepath => 'src/a b/main.c', ref => 'main' },
        line   => 'GET /api/v1/repos/acme/shop/contents/src/a%20b/main.c?ref=main',
        header => { Authorization => 'token tok-1' }
    },
    {
        what => 'a placeholder within a segment',
        tool => 'gitea__get_pull_request_diff',
        args => { owner => 'acme', repo => 'shop', index => 7 },
        line => 'GET /api/v1/repos/acme/shop/pulls/7.diff'
    },
    {
        what => 'an issue is changed by what is given alone',
        tool => 'gitea__update_issue',
        args => { owner => 'acme', repo => 'shop', index => 7, state => 'closed' },
        line => 'PATCH /api/v1/repos/acme/shop/issues/7',
        json => { state => 'closed' }
    },
    {
        what   => 'versions in headers that are always sent',
        tool   => 'github__search_issues',
        args   => { q => 'repo:acme/shop is:open label:"to do"', per_page => 10 },
        line   => 'GET /search/issues?q=repo%3Aacme%2Fshop%20is%3Aopen%20label%3A%22to%20do%22&per_page=10',
        header => { Accept => 'application/vnd.github+json', 'X-GitHub-Api-Version' => '2022-11-28', Authorization => 'Bearer tok-1' }
    },
    {
        what   => 'a message as a form',
        tool   => 'slack__post_message',
        args   => { channel => 'C024BE91L', text => 'Backup done & checked, 100 %' },
        line   => 'POST /api/chat.postMessage',
        header => { 'Content-Type' => 'application/x-www-form-urlencoded', Authorization => 'Bearer tok-1' },
        body   => qr/\Achannel=C024BE91L&text=Backup(?:%20|\+)done(?:%20|\+)%26(?:%20|\+)checked(?:%2C|,)(?:%20|\+)100(?:%20|\+)%25\z/
    },
    {
        what => 'numbers and truth in a query',
        tool => 'slack__list_channels',
        args => { types => 'public_channel,private_channel', exclude_archived => MCP::Json::true(), limit => 200 },
        line => qr{\AGET /api/conversations[.]list[?]types=public_channel(?:%2C|,)private_channel&exclude_archived=true&limit=200\z}
    },
    {
        what   => 'a body with nothing given',
        tool   => 'notion__search',
        args   => {},
        line   => 'POST /v1/search',
        header => { 'Notion-Version' => '2025-09-03' },
        json   => {}
    },
    {
        what   => 'another version for one operation',
        tool   => 'notion__read_page_as_markdown',
        args   => { page_id => '59833787-2cf9-4fdf-8782-e53db20768a5' },
        line   => 'GET /v1/pages/59833787-2cf9-4fdf-8782-e53db20768a5/markdown',
        header => { 'Notion-Version' => '2026-03-11' }
    },
    {
        what => 'arrays under one name with brackets',
        tool => 'prometheus__list_series',
        args => { 'match[]' => ['up{job="api"}', 'process_start_time_seconds'], limit => 5 },
        line => 'GET /api/v1/series?match%5B%5D=up%7Bjob%3D%22api%22%7D&match%5B%5D=process_start_time_seconds&limit=5',
        header => { Authorization => undef }
    },
    {
        what => 'the whole body is an array',
        tool => 'alertmanager__post_alerts',
        args => { alerts => [{ labels => { alertname => 'DiskFull', host => 'db1' } }] },
        line => 'POST /api/v2/alerts',
        json => [{ labels => { alertname => 'DiskFull', host => 'db1' } }]
    },
    {
        what   => 'states under a name with brackets, and a whole header as the credential',
        tool   => 'pagerduty__list_incidents',
        args   => { 'statuses[]' => ['triggered', 'acknowledged'], limit => 5 },
        line   => 'GET /incidents?statuses%5B%5D=triggered&statuses%5B%5D=acknowledged&limit=5',
        header => { Authorization => 'key-1' }
    },
    {
        what   => 'lists with commas between, and a user with a password',
        tool   => 'jira__search_issues',
        args   => { jql => 'project = OPS', fields => ['summary', 'status'], maxResults => 5 },
        line   => 'GET /rest/api/2/search/jql?jql=project%20%3D%20OPS&fields=summary,status&maxResults=5',
        header => { Authorization => $basic }
    },
    {
        what => 'nobody, as null',
        tool => 'jira__assign_issue',
        args => { issue => 'OPS-1', accountId => undef },
        line => 'PUT /rest/api/2/issue/OPS-1/assignee',
        json => { accountId => undef }
    },
    {
        what   => 'a destination is an address of the same server',
        tool   => 'nextcloud__copy_file',
        args   => { user => 'ana', path => 'a b.md', Destination => 'remote.php/dav/files/ana/Archive/a b.md' },
        line   => 'COPY /remote.php/dav/files/ana/a%20b.md',
        header => {
            Destination      => "http://$authority/remote.php/dav/files/ana/Archive/a%20b.md",
            Overwrite        => 'F',
            'OCS-APIRequest' => 'true',
            Authorization    => $basic
        }
    },
    {
        what   => 'a text as the body',
        tool   => 'nextcloud__write_file',
        args   => { user => 'ana', path => 'Reports/a.md', content => "# Report\n" },
        line   => 'PUT /remote.php/dav/files/ana/Reports/a.md',
        header => { 'Content-Type' => qr{\Atext/plain; ?charset=utf-8\z} },
        body   => qr/\A# Report\n\z/
    },
    {
        what => 'what tells two operations of one path apart',
        tool => 'google-drive__trash_file',
        args => { fileId => '1BxiMVs0', trashed => MCP::Json::true() },
        line => 'PATCH /drive/v3/files/1BxiMVs0?supportsAllDrives=true&fields=id%2Cname%2Ctrashed',
        json => { trashed => MCP::Json::true() }
    },
    {
        what   => 'members that are always chosen, names with a dollar',
        tool   => 'outlook__list_folder_messages',
        args   => { 'mailFolder-id' => 'inbox', '$filter' => 'isRead eq false', '$top' => 5 },
        line   => qr{\AGET /v1[.]0/me/mailFolders/inbox/messages[?](?:%24|\$)select=id%2CconversationId%2C[A-Za-z]+(?:%2C[A-Za-z]+)+&(?:%24|\$)filter=isRead%20eq%20false&(?:%24|\$)top=5\z}
    },
    {
        what => 'names with an at sign in a body',
        tool => 'entra-id__add_group_member',
        args => { 'group-id' => 'g1', '@odata.id' => 'https://graph.microsoft.com/v1.0/directoryObjects/u1' },
        line => 'POST /v1.0/groups/g1/members/$ref',
        json => { '@odata.id' => 'https://graph.microsoft.com/v1.0/directoryObjects/u1' }
    },
    {
        what => 'an argument of a function within a segment',
        tool => 'sharepoint__search_files',
        args => { 'drive-id' => 'b!x1', 'driveItem-id' => 'root', q => 'budget 2026/Q1' },
        line => qr{\AGET /v1[.]0/drives/b(?:!|%21)x1/items/root/search\(q='budget%202026%2FQ1'\)\z}
    },
    {
        what   => 'a word of its own before the token, and a put without a body',
        tool   => 'okta__add_to_group',
        args   => { groupId => '00g1', userId => '00u1' },
        line   => 'PUT /api/v1/groups/00g1/users/00u1',
        header => { Authorization => 'SSWS tok-1' }
    },
    {
        what => 'a value that is always sent, with a delete',
        tool => 'zoom__delete_meeting_recordings',
        args => { meetingId => '85746065' },
        line => 'DELETE /v2/meetings/85746065/recordings?action=trash'
    },
    {
        what => 'a query language in a query',
        tool => 'salesforce__query',
        args => { q => q{SELECT Id FROM Account WHERE Name = 'A+B'} },
        line => 'GET /services/data/v62.0/query?q=SELECT%20Id%20FROM%20Account%20WHERE%20Name%20%3D%20%27A%2BB%27'
    },
);

my %seen;
connect_to($_) for grep { !$seen{$_}++ } map { $_->{tool} =~ /^(.*?)__/ } @calls;

# --- calls ---------------------------------------------------------------------------------

my $client = $stack->client;
my (%schema, $cursor);
do {
    my $answer = $client->mcp('tools/list', $cursor ? { cursor => $cursor } : {});
    $schema{ $_->{name} } = $_->{inputSchema} for @{ $answer->{json}{result}{tools} || [] };
    $cursor = $answer->{json}{result}{nextCursor};
} while ($cursor);

# Arguments by their names on the wire; where such a name is none for an argument, by the one that was made of it.
sub arguments {
    my ($call) = @_;
    my $properties = $schema{ $call->{tool} }{properties};
    my %given;
    for my $name (keys %{ $call->{args} }) {
        my $arg = $name;
        if (!exists $properties->{$name}) {
            (my $stem = $name) =~ s/[^A-Za-z0-9_.-]/_/g;
            ($arg) = grep { /^\Q$stem\E_[a-z2-7]{12}$/ } keys %$properties;
            die "$call->{tool} has no argument for $name\n" if !defined $arg;
        }
        $given{$arg} = $call->{args}{$name};
    }
    return \%given;
}

sub is_or_like {
    my ($got, $want, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ref $want eq 'Regexp' ? like($got, $want, $name) : is($got, $want, $name);
}

for my $call (@calls) {
    subtest "$call->{tool}: $call->{what}" => sub {
        my $had = () = $upstream->requests;
        ok $schema{ $call->{tool} }, 'is listed' or return;
        my $answer = $client->call($call->{tool}, arguments($call));
        my @new = ($upstream->requests)[$had .. $had + 1];
        ok !$answer->{json}{error} && !$answer->{json}{result}{isError}, 'goes well' or diag explain $answer->{json};
        ok $new[0] && !$new[1], 'asks once' or return;
        my $request = $new[0];
        my %header;
        $header{ lc $_->[0] } = $_->[1] for @{ $request->{headers} };
        is_or_like("$request->{method} $request->{target}", $call->{line}, 'the request line');
        is $header{host}, $authority, 'at the host of the variable';
        is_or_like($header{ lc $_ }, $call->{header}{$_}, "the header $_") for sort keys %{ $call->{header} || {} };
        if ($call->{json}) {
            like $header{'content-type'}, qr{\Aapplication/json}, 'the kind of its body';
            is_deeply(MCP::Json::decode($request->{body}), $call->{json}, 'the body');
        } elsif ($call->{body}) {
            like $request->{body}, $call->{body}, 'the body';
        } else {
            is $request->{body}, q(), 'no body';
        }
    };
}

subtest 'no argument ends a function\'s text' => sub {
    my $had = () = $upstream->requests;
    my $answer = $client->call('sharepoint__search_files', { 'drive-id' => 'b1', 'driveItem-id' => 'root', q => q{x')/children('y} });
    ok $answer->{json}{error} || $answer->{json}{result}{isError}, 'an apostrophe is refused';
    is scalar(my @now = $upstream->requests), $had, '... and nothing was sent';
};

subtest 'what is forbidden is nobody\'s' => sub {
    for my $tool (qw(github__delete_repository gitlab__delete_project google-drive__delete_file okta__deactivate_user entra-id__delete_user)) {
        ok !$schema{$tool}, "$tool is not listed";
        my $had = () = $upstream->requests;
        my $answer = $client->call($tool, {});
        ok $answer->{json}{error} || $answer->{json}{result}{isError}, '... and can\'t be called';
        is scalar(my @now = $upstream->requests), $had, '... and nothing was sent';
    }
};

$stack->end;
done_testing;
