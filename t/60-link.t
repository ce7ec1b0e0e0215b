# The query socket answers httpd alone: not another user, not a process of httpd's own user without the key, not a foreign
# key. And with the key nobody can say who he is: a message that names an actor is refused.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Digest::SHA ();
use IO::Socket::UNIX;
use Socket qw(SOCK_STREAM);
use Test::More;
use MCP::Build;
use MCP::Client;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;
use MCP::Stack;

use constant {
    PATIENCE_MS => 800,    # of those who get nothing
    ANSWERED_MS => 10000
};
my %kind = (hello => 2, resolve => 4, begin => 10, end => 12, note => 14, invoke => 16, beat => 18);

my $stack = MCP::Stack->new;
my $policyd = $stack->policyd;
my $client = $stack->client;
my $endpoint = $policyd->endpoint;
my $socket = $endpoint =~ s{^ipc://}{}r;

# the peer
my $peer = $stack->root->path('rogue_peer');
my ($status, $out) = MCP::Policyd::capture({}, 'sh', '-c', sprintf '%s -std=gnu11 -D_GNU_SOURCE -O1 -o "%s" "%s" %s %s',
    MCP::Build::config('CC'), $peer, MCP::Build::source() . '/t/unit/rogue_peer.c', map { MCP::Build::config($_) || q() } qw(ZMQ_CFLAGS ZMQ_LIBS));
is $status, 0, 'the peer compiles' or BAIL_OUT($out);

sub as_user {
    my ($user) = @_;
    return () if $> != 0;
    return ('setpriv', "--reuid=$user", '--regid=' . (getgrgid((getpwnam $user)[3]))[0], '--clear-groups');
}
my @httpd = as_user('www-data');

# Sends messages (lists of frames) and returns as many replies: lists of frames, or undef.
sub talk {
    my ($patience, $keys, @messages) = @_;
    my $in = join q(), map { join(q( ), map { length $_ ? unpack 'H*', $_ : q(-) } @$_) . "\n" } @messages;
    my ($failed, $said, $err) =
        MCP::Policyd::capture({ in => $in, apart => 1 }, @{ $keys->{as} || [] }, $peer, $endpoint, $patience, @{ $keys->{how} });
    die "peer: $err\n" if $failed;
    return map { /^(?:nothing|unsent)?$/ ? undef : [map { $_ eq q(-) ? q() : pack 'H*', $_ } split / /] } split /\n/, $said;
}

my $id = 0;

sub header {
    my ($kind, $bytes, %other) = @_;
    my %field = (magic => 0x4d435044, version => 1, flags => 0, budget => 5000, generation => 0, %other);
    return pack 'N n n N Q> N N Q>', $field{magic}, $field{version}, $kind, $field{flags}, ++$id, $field{budget},
        defined $field{bytes} ? $field{bytes} : $bytes, $field{generation};
}

sub message {
    my ($kind, $body, %other) = @_;
    my $text = ref $body ? MCP::Json::encode($body) : $body;
    return [header($kind, length $text, %other), $text];
}

# What a reply says: "CODE" of an error, "ok" for an answer, "nothing".
sub said {
    my ($reply) = @_;
    return 'nothing' if !defined $reply;
    my ($magic, $version, $kind, $flags) = unpack 'N n n N', $reply->[0];
    return 'no frame of ours' if @$reply != 2 || $magic != 0x4d435044 || $kind % 2 != 1;
    return $flags & 1 ? MCP::Json::decode($reply->[1])->{code} : 'ok';
}

my $hello = { version_min => 1, version_max => 1, software => 'rogue/1', child => 'rogue' };
my $key_text = MCP::Root::slurp($policyd->key);
my ($server_key) = $key_text =~ /^server_public = (\S{40})$/m;
my %keys = (
    real    => { how => ['keys', $policyd->key] },
    plain   => { how => ['plain'],                as => \@httpd },
    foreign => { how => ['foreign', $server_key], as => \@httpd }
);

# --- who gets in ---------------------------------------------------------------------

is said(talk(ANSWERED_MS, $keys{real}, message($kind{hello}, $hello))), 'ok', 'whoever has the key is answered';

my $token = $client->token;
my $hash = Digest::SHA::sha256_hex("mcp-token-v1\0$token");
my %who = (token_hash => $hash, surface => 'mcp', resource => $stack->url);
my %begin = (
    %who,
    child       => 'rogue',
    tool        => 'webdav__read_file',
    via         => 'direct',
    arg_names   => ['path'],
    arg_count   => 1,
    deadline_ms => 1000
);
is said(talk(ANSWERED_MS, $keys{real}, message($kind{resolve}, {%who}))), 'ok', 'and may ask who a token is';

my @questions = (
    message($kind{hello}, $hello),
    message($kind{resolve}, {%who}),
    message($kind{begin}, {%begin}),
    message($kind{invoke}, { %who, op => 'members__list', args => {} })
);
for my $who (qw(plain foreign)) {
    my @replies = talk(PATIENCE_MS, $keys{$who}, @questions);
    is_deeply [map { said($_) } @replies[0 .. 3]], [('nothing') x 4], "a process of httpd's user, $who, gets nothing";
}
SKIP: {
    skip 'only root can be somebody else', 3 if $> != 0;
    my ($failed) = MCP::Policyd::capture({}, @httpd, 'cat', $policyd->key);
    isnt $failed, 0, "httpd's user can't read the key";
    my $connect = 'use IO::Socket::UNIX; exit(IO::Socket::UNIX->new(Peer => $ARGV[0], Type => SOCK_STREAM) ? 0 : 1)';
    ($failed) = MCP::Policyd::capture({}, @httpd, $^X, '-e', $connect, $socket);
    is $failed, 0, 'but reaches the socket';
    ($failed) = MCP::Policyd::capture({}, as_user('daemon'), $^X, '-e', $connect, $socket);
    isnt $failed, 0, 'another user does not even that';
}
is scalar(my @none = $stack->calls), 0, 'none of it has left a row';

# --- who one is ------------------------------------------------------------------------

my @actors = (
    [member => 'mem_1'], [actor => 'unix:0'], [grant => 'gra_1'], [role => 'Owner'], [roles => ['Owner']], [uid => 0],
    [permissions => ['*']], [scopes => 15], [token => $token], [arguments => { path => 'a.txt' }]
);
for my $case (['resolve', \%who], ['begin', \%begin], ['invoke', { %who, op => 'whoami', args => {} }]) {
    my ($kind, $body) = @$case;
    my @replies = talk(ANSWERED_MS, $keys{real}, map { message($kind{$kind}, { %$body, @$_ }) } @actors);
    is_deeply { map { $actors[$_][0] => said($replies[$_]) } 0 .. $#actors }, { map { $_->[0] => 'malformed' } @actors },
        "$kind: a message that names an actor is refused";
}
is scalar(@none = $stack->calls), 0, 'and leaves no row';

# --- what is no question ---------------------------------------------------------------

my $fine = MCP::Json::encode({%who});
my @bad = (
    ['another magic'       => message($kind{resolve}, {%who}, magic => 0x48545450), qr/^(?:nothing|malformed)$/],
    ['version 0'           => message($kind{resolve}, {%who}, version => 0),        qr/^(?:unsupported|malformed)$/],
    ['version 99'          => message($kind{resolve}, {%who}, version => 99),       qr/^unsupported$/],
    ['an unknown kind'     => message(200, {}),                                     qr/^(?:unsupported|malformed)$/],
    ['a reserved kind'     => message(20, {}),                                      qr/^unsupported$/],
    ['a reply\'s kind'     => message(5, {%who}),                                   qr/^(?:nothing|malformed|unsupported)$/],
    ['an unknown flag'     => message($kind{resolve}, {%who}, flags => 0x80),       qr/^malformed$/],
    ['a wrong length'      => message($kind{resolve}, {%who}, bytes => 1),          qr/^malformed$/],
    ['another generation'  => message($kind{resolve}, {%who}, generation => 7),     qr/^hello_required$/],
    ['no frame'            => [q()],                                                qr/^nothing$/],
    ['one frame'           => [header($kind{resolve}, 0)],                          qr/^nothing$/],
    ['three frames'        => [@{ message($kind{resolve}, {%who}) }, 'more'],       qr/^nothing$/],
    ['a short header'      => [substr(header($kind{resolve}, length $fine), 0, 35), $fine], qr/^nothing$/],
    ['no body'             => message($kind{resolve}, q()),                         qr/^malformed$/],
    ['an array'            => message($kind{resolve}, '[]'),                        qr/^malformed$/],
    ['something after it'  => message($kind{resolve}, "$fine {}"),                  qr/^malformed$/],
    ['a doubled key'       => message($kind{resolve}, $fine =~ s/\}$/,"surface":"mcp"}/r), qr/^malformed$/],
    ['a NUL'               => message($kind{resolve}, $fine =~ s/"mcp"/"m\\u0000cp"/r), qr/^malformed$/],
    ['bad UTF-8'           => message($kind{resolve}, $fine =~ s/"mcp"/"\xff"/r),   qr/^malformed$/],
    ['a hundred levels'    => message($kind{invoke}, sprintf '{"args":%s%s}', '{"a":' x 100 . '1', '}' x 100), qr/^malformed$/],
    ['a missing field'     => message($kind{resolve}, { token_hash => $hash, surface => 'mcp' }), qr/^malformed$/],
    ['a wrong type'        => message($kind{begin}, { %begin, arg_count => 'one' }), qr/^malformed$/],
    ['a hash of no form'   => message($kind{resolve}, { %who, token_hash => 'x' x 64 }), qr/^malformed$/],
    ['an unknown surface'  => message($kind{resolve}, { %who, surface => 'admin' }), qr/^malformed$/],
    ['an unknown token'    => message($kind{begin}, { %begin, token_hash => 'ab' x 32 }), qr/^invalid_token$/],
    ['another audience'    => message($kind{resolve}, { %who, resource => 'https://other.example/mcp' }), qr/^invalid_token$/],
    ['an unknown attempt'  => message($kind{end}, { audit => '1-1', child => 'rogue', outcome => 'ok', duration_us => 1 }), qr/^not_found$/],
);
for my $case (@bad) {
    my ($name, $frames, $says) = @$case;
    my $is_silent = 'nothing' =~ $says;
    my @replies = talk($is_silent ? PATIENCE_MS : ANSWERED_MS, $keys{real}, $frames);
    like said($replies[0]), $says, "$name: refused";
}
is scalar(@none = $stack->calls), 0, 'none of it has left a row';

# somebody else's attempt
my $answer = MCP::Json::decode((talk(ANSWERED_MS, $keys{real}, message($kind{begin}, {%begin})))[0][1]);
ok $answer->{audit}, 'an attempt begins';
my %end = (audit => $answer->{audit}, outcome => 'ok', duration_us => 1);
is said(talk(ANSWERED_MS, $keys{real}, message($kind{end}, { %end, child => 'other' }))), 'not_found', 'another child can\'t end it';
is said(talk(ANSWERED_MS, $keys{real}, message($kind{end}, { %end, child => 'rogue', outcome => 'running' }))), 'malformed',
    'nor its own with an outcome that is none';
my @ends = talk(ANSWERED_MS, $keys{real}, (message($kind{end}, { %end, child => 'rogue' })) x 3);
is_deeply [map { said($_) } @ends], [('ok') x 3], 'its own ends it, and may say so again';
is_deeply [map { "$_->{audit_id} $_->{outcome}" } $stack->calls], ["$answer->{audit} ok"], 'and it has one row';
is said(talk(ANSWERED_MS, $keys{real}, message($kind{end}, { %end, child => 'other' }))), 'not_found',
    'nor does another child hear of its end';

is MCP::Client::code($client->call('webdav__read_file', { path => 'a.txt' })), undef, 'after all of it httpd is served';
$stack->end(expected => [qw(PD1101 PD1116)]);
done_testing;
