# What IT takes back is gone on the very next call, in every child and on kept connections, whatever load there is.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCP::Client;
use MCP::Load;
use MCP::Net;
use MCP::Stack;
use MCP::Verdict qw(challenge);
use MCP::Witness;

use constant CLIENTS => 50;

my $stack = MCP::Stack->new(
    webdav => 0,
    server => <<'EOF'
<IfModule !mpm_prefork_module>
    StartServers 2
    ServerLimit 2
    ThreadsPerChild 32
    MaxRequestWorkers 64
    MinSpareThreads 1
    MaxSpareThreads 64
</IfModule>
<IfModule mpm_prefork_module>
    StartServers 64
    MaxRequestWorkers 64
</IfModule>
MaxKeepAliveRequests 0
MCPMaxCalls 256
MCPPolicyTimeout 20s
EOF
);
my $witness = MCP::Witness->start(root => $stack->root);
$stack->reconfigure(allow => [$witness->origin]);
ok $stack->gateway->graceful, 'the gateway may call the witness';
$stack->connector($witness->file);

my $people = 0;

# A member of his own for each story, with a grant.
sub somebody {
    my $email = sprintf 'm%d@example.org', ++$people;
    $stack->member($email, 'Member');
    my $grant = $stack->grant($email);
    return { email => $email, grant => $grant->{grant}, token => $grant->{token} };
}

my @taking = (
    {
        name => 'a revoked grant',
        take => sub { $stack->ctl(qw(grants revoke --grant), $_[0]{grant}) },
        code => 'grant_revoked'
    },
    {
        name => 'a suspended member',
        take => sub { $stack->ctl(qw(members suspend --member), $_[0]{email}) },
        give => sub { $stack->ctl(qw(members reinstate --member), $_[0]{email}) },
        code => 'member_suspended'
    },
    {
        name => 'a removed member',
        take => sub { $stack->ctl(qw(members remove --member), $_[0]{email}) },
        code => 'member_suspended'
    }
);

# --- one client, one connection --------------------------------------------------

for my $case (@taking) {
    my $who = somebody();
    my $client = MCP::Client->new(url => $stack->url, token => $who->{token}, keep => 1);
    my $before = $witness->calls;
    is $client->call('load__post', { mark => 'before' })->{status}, 200, "$case->{name}: served before";
    is $client->list->{status}, 200, "$case->{name}: and lists";
    my $socket = $client->{socket};
    $case->{take}->($who);
    my $answer = $client->call('load__post', { mark => 'after' });
    is $client->{socket}, $socket, "$case->{name}: on the same connection";
    is $answer->{status}, 401, "$case->{name}: the next call is 401";
    is_deeply challenge($answer)->{error}, ['invalid_token'], "$case->{name}: with the challenge";
    is $witness->calls, $before + 1, "$case->{name}: nothing is sent";
    for my $method (qw(list discover)) {
        is $client->$method->{status}, 401, "$case->{name}: $method is 401";
    }
    my ($row) = sort { $b->{seq} <=> $a->{seq} } $stack->calls(grant => $who->{grant});
    is "$row->{outcome} $row->{error_code}", "denied $case->{code}", "$case->{name}: the record says why";
    next if !$case->{give};
    $case->{give}->($who);
    is $client->call('load__post', { mark => 'again' })->{status}, 200, "$case->{name}: and back again";
}

{
    my $who = somebody();
    my $client = MCP::Client->new(url => $stack->url, token => $who->{token}, keep => 1);
    my $answer = $client->legacy(
        'initialize',
        {
            protocolVersion => '2025-06-18',
            capabilities    => {},
            clientInfo      => { name => 'old', version => '1' }
        }
    );
    my $session = MCP::Client::header($answer, 'Mcp-Session-Id');
    my @old = (version => '2025-06-18', session => $session);
    my $call = { name => 'load__post', arguments => { mark => 'old' } };
    is $client->legacy('tools/call', $call, @old)->{status}, 200, 'a session of an older client is served';
    $stack->ctl(qw(grants revoke --grant), $who->{grant});
    is $client->legacy('tools/call', $call, @old)->{status}, 401, 'a sealed session does not outlive its grant: call';
    is $client->legacy('ping', {}, @old)->{status}, 401, 'a sealed session does not outlive its grant: ping';
}

{
    my $who = somebody();
    my $short = $stack->ctl(qw(grants create),
        { member => $who->{email}, client => 'short', scopes => [@MCP::Stack::ALL], expires_in => 1 });
    my $client = MCP::Client->new(url => $stack->url, token => $short->{token}, keep => 1);
    my $answer;
    ok MCP::Net::wait_for(sub { ($answer = $client->discover)->{status} == 401 }), 'a grant that expires is refused';
    is $client->call('load__post', { mark => 'late' })->{status}, 401, 'its calls too';
}

# --- fifty clients ---------------------------------------------------------------

for my $case (@taking) {
    my $who = somebody();
    my $marked = $witness->size;
    my $load = MCP::Load->start(
        root    => $stack->root,
        url     => $stack->url,
        tokens  => [$who->{token}],
        clients => CLIENTS,
        ends    => 60 # some fall between the commit and the return of policyctl
    );
    ok MCP::Net::wait_for(sub { $witness->size - $marked > 20000 }), "$case->{name}: the load runs";
    $case->{take}->($who);
    my $returned = MCP::Witness::now();
    my @calls = $load->wait;
    my %ran = map { $_->{mark} => $_->{at} } $witness->calls;
    my @late = grep { $_->{began} > $returned } @calls;
    my %before = map { $_->{client} => 1 } grep { $_->{status} == 200 } @calls;

    is keys %before, CLIENTS, "$case->{name}: every client was served before";
    cmp_ok scalar @late, '>=', CLIENTS, "$case->{name}: and called on afterwards";
    is_deeply [map { "$_->{mark} $_->{status}" } grep { exists $ran{ $_->{mark} } } @late], [],
        "$case->{name}: no call begun after that was executed";
    is_deeply [map { "$_->{mark} $_->{status}" } grep { $_->{status} != 401 } @late], [],
        "$case->{name}: each was answered 401";
    is_deeply [map { "$_->{mark} $_->{status} $_->{text}" } grep { $_->{status} !~ /^(?:200|401)$/ } @calls], [],
        "$case->{name}: there was no other answer";
    is_deeply [grep { !exists $ran{$_} } map { $_->{mark} } grep { $_->{status} == 200 } @calls], [],
        "$case->{name}: whoever was answered 200 was executed";
}

$stack->end;
done_testing;
