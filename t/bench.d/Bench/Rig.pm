package Bench::Rig;

# The servers of a measurement, on loopback ports in a temporary directory: policyd; `gateway`, httpd with
# mod_mcp; `plain`, httpd with the same MPM settings that is mod_proxy's home and serves the static files; and
# `upstream`, a WebDAV server that both call.

use strict;
use warnings;
use MCP::Build;
use MCP::Httpd;
use MCP::Json;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;

our @SCOPES = qw(mcp:read mcp:write mcp:destructive mcp:tools);

# connections: how many the load has at once
sub new {
    my ($class, %given) = @_;
    my $self = bless { %given, root => MCP::Root->new }, $class;
    my $root = $self->{root};
    $root->make($_) for qw(files locks static);
    $root->write('files/a.txt', "hello\n");
    $root->make('files/folder');
    $root->write("files/folder/$_.txt", "file $_\n") for 1 .. 20;
    own(glob($root->path('files') . '{,/*,/folder/*}'), $root->path('locks'));
    $self->{policyd} = MCP::Policyd->new(root => $root, config => { log_level => 'notice' })->start;
    $self->start_httpds;
    $self->people;
    return $self;
}

sub own {
    my (@paths) = @_;
    my ($uid, $gid) = (getpwnam 'www-data')[2, 3];
    chown $uid, $gid, @paths or die "chown: $!\n";
    return;
}

# Of gateway and plain alike. Enough threads for all connections in either child; connections are kept for ever,
# so that no round measures their making.
sub mpm {
    my ($self) = @_;
    my $threads = 2 * $self->{connections} < 32 ? 32 : 2 * $self->{connections};
    my $all = 2 * $threads;
    return <<"EOF";
ServerLimit 2
StartServers 2
ThreadLimit $threads
ThreadsPerChild $threads
MaxRequestWorkers $all
MinSpareThreads 1
MaxSpareThreads $all
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
<Directory "/">
    AllowOverride None
</Directory>
EOF
}

sub start_httpds {
    my ($self) = @_;
    my $root = $self->{root};
    my %shared = (root => $root, mpm => 'event', log_level => 'warn');
    my $calls = 4 * $self->{connections}; # a connection may have a quarter of it: 429 is not what is measured
    my $policyd = $self->{policyd};
    my $module = MCP::Build::module();
    $self->{upstream} = Bench::Httpd->new(
        %shared,
        name    => 'upstream',
        modules => [qw(dav dav_fs)],
        conf    => $self->mpm . <<"EOF")->start;
DocumentRoot "@{[$root->path('files')]}"
DAVLockDB "@{[$root->path('locks')]}/db"
<Directory "@{[$root->path('files')]}">
    Dav On
</Directory>
EOF
    my $origin = $self->{upstream}->origin;
    $self->{plain} = Bench::Httpd->new(
        %shared,
        name    => 'plain',
        modules => [qw(proxy proxy_http)],
        conf    => $self->mpm . <<"EOF")->start;
DocumentRoot "@{[$root->path('static')]}"
ProxyPass "/proxied/" "$origin/"
EOF
    my $port = MCP::Net::free_port();
    $self->{gateway} = Bench::Httpd->new(
        %shared,
        name => 'gateway',
        port => $port,
        conf => $self->mpm . <<"EOF")->start;
LoadModule mcp_module "$module"
MCPPolicyEndpoint "@{[$policyd->endpoint]}"
MCPPolicyKey "@{[$policyd->key]}"
MCPEgressAllow $origin
MCPMaxCalls $calls
<Location "/mcp">
    MCPEndpoint On
    MCPResource http://127.0.0.1:$port/mcp
    MCPListPage 2000
</Location>
EOF
    return;
}

sub people {
    my ($self) = @_;
    my $policyd = $self->{policyd};
    $policyd->ctl(qw(settings set --key endpoint.resource --value), $self->url);
    $policyd->ctl(qw(settings set --key collapse.mode --value never)); # long lists are what is measured
    $policyd->ctl(qw(members create), { email => 'member@example.org', roles => ['Member'] });
    $policyd->ctl(qw(connectors create --json), MCP::Build::source() . '/conf/connectors/webdav.json');
    $self->connect('webdav', $self->{upstream}->port);
    my $grant = $policyd->ctl(qw(grants create),
        { member => 'member@example.org', client => 'bench', scopes => [@SCOPES] });
    $self->{token} = $grant->{token};
    return;
}

sub connect {
    my ($self, $connector, $port) = @_;
    my %variables = defined $port ? (variables => { host => "127.0.0.1:$port" }) : ();
    return $self->{policyd}->ctl(qw(connections create),
        { connector => $connector, label => $connector, shared => MCP::Json::true(), %variables });
}

# A connector with so many operations, each with a few arguments as real ones have.
sub synthetic {
    my ($self, $count) = @_;
    my @operations;
    for my $number (1 .. $count) {
        push @operations, {
            id          => "get_item_$number",
            method      => 'GET',
            path        => "/kind$number/{item}",
            summary     => "Read an item of kind $number",
            description => "Answers one item of kind $number with all its fields, by its id.",
            parameters  => [
                {
                    name        => 'item',
                    in          => 'path',
                    description => 'Id of the item',
                    schema      => { type => 'string', maxLength => 64 }
                },
                {
                    name        => 'fields',
                    in          => 'query',
                    description => 'Only these fields, separated by commas',
                    schema      => { type => 'string' }
                },
                { name => 'limit', in => 'query', schema => { type => 'integer', minimum => 1, maximum => 100 } }
            ]
        };
    }
    my $file = {
        slug       => 'synthetic',
        label      => 'Synthetic',
        base_url   => $self->{upstream}->origin . '/',
        auth       => { type => 'none' },
        operations => \@operations
    };
    $self->{policyd}->ctl(qw(connectors create), $file);
    $self->connect('synthetic');
    return;
}

sub url { return $_[0]{gateway}->origin . '/mcp' }

# --- requests ------------------------------------------------------------------

sub message {
    my ($method, $params) = @_;
    return MCP::Json::encode({
        jsonrpc => '2.0',
        id      => 1,
        method  => $method,
        params  => {
            %$params,
            _meta => {
                'io.modelcontextprotocol/protocolVersion'    => '2026-07-28',
                'io.modelcontextprotocol/clientCapabilities' => {}
            }
        }
    });
}

# A load of MCP requests, for Bench::Meter::load.
sub mcp_load {
    my ($self, $method, $params) = @_;
    my $name = defined $params->{name} ? $params->{name} : 'list';
    my $body = $self->{root}->write("body-$name.json", message($method, $params));
    return (
        url     => $self->url,
        method  => 'POST',
        body    => $body,
        headers => [
            "Authorization: Bearer $self->{token}",
            'Content-Type: application/json',
            'Accept: application/json, text/event-stream',
            'MCP-Protocol-Version: 2026-07-28',
            "Mcp-Method: $method",
            defined $params->{name} ? "Mcp-Name: $params->{name}" : ()
        ]
    );
}

sub call_load {
    my ($self, $tool, $arguments) = @_;
    return $self->mcp_load('tools/call', { name => $tool, arguments => $arguments });
}

sub list_load { return $_[0]->mcp_load('tools/list', {}) }

# One request of such a load by hand: its answer's body. Dies unless it is a good result.
sub ask {
    my ($self, %load) = @_;
    my @headers = map { ('-H', $_) } @{ $load{headers} };
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1 }, qw(curl -sS --fail-with-body --max-time 30), '-X',
        $load{method}, @headers, '--data-binary', "\@$load{body}", $load{url});
    die "$load{url} does not answer as it should: $err$out\n" if $status != 0;
    my $answer = MCP::Json::decode($out);
    die "$load{url} refuses: $out\n" if !$answer->{result} || $answer->{result}{isError};
    return $out;
}

# A static file with these bytes, to be got from `plain`.
sub static_load {
    my ($self, $name, $bytes) = @_;
    $self->{root}->write("static/$name", $bytes);
    return (url => $self->{plain}->origin . "/$name");
}

# --- processes -----------------------------------------------------------------

sub pids {
    my ($self, $part) = @_;
    return Bench::Meter::family($self->{$part}->pid);
}

# What is on record and is neither ok nor running.
sub bad_rows {
    my ($self) = @_;
    return map {
        my $answer = $self->{policyd}->ctl(qw(audit list --limit 3 --surface mcp --outcome), $_);
        @{ $answer->{items} }
    } qw(error denied interrupted);
}

package Bench::Httpd;

# MCP::Httpd without an access log: neither side of a comparison writes one.

use strict;
use warnings;
use parent 'MCP::Httpd';

sub write {
    my ($self, $text) = @_;
    $self->SUPER::write($text);
    my $conf = MCP::Root::slurp($self->{conf});
    $conf =~ s/^CustomLog .*\n//m or die "no access log to leave out\n";
    MCP::Root::write_file($self->{conf}, $conf);
    return;
}

1;
