package MCP::Stack;

# The whole product for one test: policyd, a gateway, a WebDAV server, an Owner, a Member and an Auditor, and
# the connection `webdav`. A test takes what it needs and ends with $stack->end, which stops all and judges the
# logs.
#
#   my $stack = MCP::Stack->new;
#   my $client = $stack->client;                        # the Member's, all scopes
#   my $answer = $client->call('webdav__read_file', {path => 'a.txt'});
#   $stack->end;

use strict;
use warnings;
use Test::More ();
use MCP::Build;
use MCP::Client;
use MCP::Httpd;
use MCP::Json;
use MCP::Log;
use MCP::Net;
use MCP::Policyd;
use MCP::Root;

our @ALL = qw(mcp:read mcp:write mcp:destructive mcp:tools);

# Parts that can be left out or changed:
#   mpm         of the gateway; default MCP_TEST_MPM, else event
#   server      text at server level of the gateway (MCPMaxCalls, StartServers, further locations ...)
#   location    text in its <Location "/mcp">
#   modules     further modules of the gateway
#   policyd     {key => value} of policyd.conf
#   webdav      0: no WebDAV server and no connection
#   allow       [origins] for MCPEgressAllow, beside the WebDAV server's
#   log_level   of the gateway; default debug
#   collapse    1: lists collapse as they do by default; else every tool is listed, whoever asks
sub new {
    my ($class, %given) = @_;
    my $self = bless { given => \%given, root => MCP::Root->new, grants => {}, files => [] }, $class;
    $self->{policyd} = MCP::Policyd->new(root => $self->{root}, config => $given{policyd})->start;
    $self->start_webdav if !defined $given{webdav} || $given{webdav};
    $self->start_gateway;
    $self->people;
    $self->connection('webdav', $self->{webdav}->port) if $self->{webdav};
    return $self;
}

sub root    { return $_[0]{root} }
sub policyd { return $_[0]{policyd} }
sub gateway { return $_[0]{gateway} }
sub webdav  { return $_[0]{webdav} }
sub url     { return $_[0]{gateway}->origin . '/mcp' }
sub ctl     { my ($self, @words) = @_; return $self->{policyd}->ctl(@words) }

# --- parts ---------------------------------------------------------------------

sub own {
    my (@paths) = @_;
    return if $> != 0;
    my ($uid, $gid) = (getpwnam 'www-data')[2, 3];
    chown $uid, $gid, @paths or die "chown: $!\n";
    return;
}

sub start_webdav {
    my ($self) = @_;
    my $root = $self->{root};
    own($root->make('files'), $root->make('locks'));
    $self->file('a.txt', "hello\n");
    $self->{webdav} = MCP::Httpd->new(
        root      => $root,
        name      => 'webdav',
        mpm       => 'event',
        log_level => 'warn dav:crit dav_fs:crit',
        modules   => [qw(mime dav dav_fs)],
        conf      => <<"EOF")->start;
TypesConfig /dev/null
AddType text/plain .txt
StartServers 1
DocumentRoot "@{[$root->path('files')]}"
DAVLockDB "@{[$root->path('locks')]}/db"
<Directory "@{[$root->path('files')]}">
    Dav On
    Require all granted
</Directory>
EOF
    return;
}

sub gateway_conf {
    my ($self) = @_;
    my $given = $self->{given};
    my $policyd = $self->{policyd};
    my $allow = join q( ), @{ $given->{allow} || [] }, $self->{webdav} ? $self->{webdav}->origin : ();
    my $egress = $allow eq q() ? q() : "MCPEgressAllow $allow\n";
    my $port = $self->{port};
    my $server = defined $given->{server} ? $given->{server} : q();
    my $location = defined $given->{location} ? $given->{location} : q();
    my $module = MCP::Build::module();
    return <<"EOF";
LoadModule mcp_module "$module"
MCPPolicyEndpoint "@{[$policyd->endpoint]}"
MCPPolicyKey "@{[$policyd->key]}"
$egress$server
<Location "/mcp">
    MCPEndpoint On
    MCPResource http://127.0.0.1:$port/mcp
    $location
</Location>
EOF
}

sub start_gateway {
    my ($self) = @_;
    my $given = $self->{given};
    $self->{port} = MCP::Net::free_port();
    $self->{gateway} = MCP::Httpd->new(
        root      => $self->{root},
        name      => 'gateway',
        mpm       => $given->{mpm},
        port      => $self->{port},
        log_level => $given->{log_level},
        modules   => $given->{modules},
        conf      => $self->gateway_conf
    )->start;
    return;
}

# The gateway's configuration with other parts (as for new) from the next restart on.
sub reconfigure {
    my ($self, %given) = @_;
    $self->{given} = { %{ $self->{given} }, %given };
    $self->{gateway}->write($self->gateway_conf);
    return $self;
}

sub people {
    my ($self) = @_;
    $self->{policyd}->first_owner('owner@example.org');
    $self->ctl(qw(settings set --key endpoint.resource --value), $self->url);
    $self->ctl(qw(settings set --key collapse.mode --value never)) if !$self->{given}{collapse};
    $self->member("\L$_\E\@example.org", $_) for qw(Member Auditor);
    return;
}

sub member {
    my ($self, $email, @roles) = @_;
    return $self->ctl(qw(members create), { email => $email, roles => [@roles] });
}

# The connector webdav at a loopback port under another label, or one at an upstream of the test's own.
sub connection {
    my ($self, $label, $port, %more) = @_;
    if (!$self->{has_webdav}++) {
        my $file = MCP::Build::source() . '/conf/connectors/webdav.json';
        $self->ctl(qw(connectors create --json), $file);
    }
    return $self->ctl(
        qw(connections create),
        {
            connector => 'webdav',
            label     => $label,
            variables => { host => "127.0.0.1:$port" },
            $more{owner} ? () : (shared => MCP::Json::true()),
            %more
        }
    );
}

# A connector of the test's own, as a data structure of a connector file, and a shared connection on it.
sub connector {
    my ($self, $file, %connection) = @_;
    $self->ctl(qw(connectors create), { auth => { type => 'none' }, label => $file->{slug}, %$file });
    return $self->ctl(qw(connections create),
        { connector => $file->{slug}, label => $file->{slug}, shared => MCP::Json::true(), %connection });
}

# A new grant: {grant, token, ...}.
sub grant {
    my ($self, $email, @scopes) = @_;
    return $self->ctl(qw(grants create),
        { member => $email, client => 'test', scopes => [@scopes ? @scopes : @ALL] });
}

# A client of somebody, with a grant of its own or the one made before for the same scopes.
sub client {
    my ($self, %given) = @_;
    my $email = $given{member} || 'member@example.org';
    my @scopes = @{ $given{scopes} || \@ALL };
    my $grant = $self->{grants}{"$email @scopes"} ||= $self->grant($email, @scopes);
    return MCP::Client->new(url => $self->url, token => $grant->{token}, keep => $given{keep});
}

# --- files and witnesses ---------------------------------------------------------

# Writes a file of the WebDAV server's document tree, or tells its bytes (undef: there is none).
sub file {
    my ($self, $name, @text) = @_;
    my $path = $self->{root}->path('files', $name);
    return MCP::Root::slurp($path) if !@text;
    MCP::Root::write_file($path, $text[0]);
    own($path);
    return;
}

# Requests that the WebDAV server has answered: "METHOD /path STATUS" each.
sub upstream_log {
    my ($self) = @_;
    my @seen;
    for my $line (MCP::Log::lines($self->{webdav}->access)) {
        push @seen, "$1 $2" if $line =~ m{"(\S+ \S+) HTTP/1\.1" (\d+)};
    }
    return @seen;
}

# Rows of the audit, oldest first.
sub audit {
    my ($self, %filter) = @_;
    my $answer = $self->ctl(qw(audit list --all), map { ("--$_" => $filter{$_}) } sort keys %filter);
    return sort { $a->{seq} <=> $b->{seq} } @{ $answer->{items} };
}

# Rows of tool calls alone.
sub calls { my ($self, %filter) = @_; return grep { $_->{surface} eq 'mcp' } $self->audit(%filter) }

# --- the end ---------------------------------------------------------------------

# Further log files that the gate reads.
sub watch { my ($self, @files) = @_; push @{ $self->{files} }, @files; return }

# Stops everything and tests that the logs hold nothing unexpected. expected => [patterns over ids, or qr// over
# whole lines].
sub end {
    my ($self, %given) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return if $self->{is_ended}++;
    my @parts = grep { defined } @{$self}{qw(gateway webdav policyd)};
    my @bad;
    for my $part (@parts) {
        next if !$part->process;
        my $was_running = $part->process->is_running;
        my $status = $part->stop;
        push @bad, "$part->{name} had to be killed" if $part->process->{was_killed};
        push @bad, "$part->{name} ended with status $status" if $was_running && $status != 0;
    }
    push @bad, MCP::Log::unexpected([map({ $_->log } @parts), @{ $self->{files} }], @{ $given{expected} || [] });
    push @bad, map { "core file $_" } grep { -e } glob $self->{root}->path . '/{core,core.*,*/core,*/core.*}';
    Test::More::ok(!@bad, 'everything stops, and the logs hold nothing unexpected');
    Test::More::diag("  $_") for @bad;
    return;
}

sub DESTROY {
    my ($self) = @_;
    return if !$self->{root} || $self->{root}{owner} != $$;
    local ($?, $@, $!);
    for my $part (qw(gateway webdav policyd)) {
        $self->{$part}->stop if $self->{$part} && $self->{$part}->process;
    }
    return;
}

1;
