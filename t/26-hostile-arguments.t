# Arguments that try to reach another path, host or header, bodies that try to be something else, and upstreams that
# answer badly. The witnesses are the WebDAV server's access log and an upstream that records every byte.

use strict;
use warnings;
use MIME::Base64 ();
use Test::More;
use Time::HiRes ();
use MCP::Client;
use MCP::Json;
use MCP::Net;
use MCP::Stack;
use MCP::Upstream;
use MCP::Verdict qw(attempts result verdict);

my $MAX_RESULT = 65536;
my @m1 = ('MCP-Protocol-Version' => '2026-07-28');
my $meta = MCP::Json::encode(MCP::Client::meta());
my $png = "\x89PNG\r\n\x1a\n\0\0\xff\xfe";

# --- the upstreams -----------------------------------------------------------------

# What /answer/NAME answers.
my %answer = (
    object   => sub { MCP::Upstream::json(200, { a => 1, b => { c => [ 1, 2 ] } }) },
    array    => sub { MCP::Upstream::json(200, [ { a => 1 }, 2 ]) },
    word     => sub { MCP::Upstream::json(200, 'word') },
    null     => sub { json_text('null') },
    problem  => sub { MCP::Upstream::answer(200, '{"a":1}', 'Content-Type' => 'application/problem+json; charset=utf-8') },
    big      => sub { json_text('{"n":18446744073709551616}') },
    exponent => sub { json_text('{"n":1e400}') },
    long     => sub { json_text('{"n":9223372036854775807,"x":0.1}') },
    broken   => sub { json_text('{"a":') },
    doubled  => sub { json_text('{"a":1,"a":2}') },
    deep     => sub { json_text(('[' x 5000) . (']' x 5000)) },
    badutf8  => sub { json_text("{\"a\":\"\xff\"}") },
    nul      => sub { json_text('{"a":"\u0000"}') },
    text     => sub { MCP::Upstream::answer(200, "plain <b>\"text\"\x01\n", 'Content-Type' => 'text/plain') },
    typeless => sub { MCP::Upstream::answer(200, '{"a":1}') },
    png      => sub { MCP::Upstream::answer(200, $png, 'Content-Type' => 'image/png') },
    binary   => sub { MCP::Upstream::answer(200, "\xff\xfe\0\1", 'Content-Type' => 'application/x-thing') },
    untyped  => sub { MCP::Upstream::answer(200, "\xff\xfe\0\1") },
    empty    => sub { MCP::Upstream::answer(200, q(), 'Content-Type' => 'application/json') },
    nothing  => sub { "HTTP/1.1 204 No Content\r\n\r\n" },
    created  => sub { MCP::Upstream::json(201, { id => 7 }) },
    e400     => sub { MCP::Upstream::json(400, { error => 'say please' }) },
    e401     => sub { MCP::Upstream::answer(401, 'who', 'Content-Type' => 'text/plain', 'WWW-Authenticate' => 'Bearer realm="theirs"') },
    e404     => sub { MCP::Upstream::json(404, { error => 'no such item' }) },
    e409     => sub { MCP::Upstream::answer(409, q()) },
    e500     => sub { MCP::Upstream::answer(500, '<h1>boom</h1>', 'Content-Type' => 'text/html') },
    fit      => sub { MCP::Upstream::answer(200, 'x' x $MAX_RESULT,       'Content-Type' => 'text/plain') },
    large    => sub { MCP::Upstream::answer(200, 'x' x ($MAX_RESULT + 1), 'Content-Type' => 'text/plain') },
    endless  => sub { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" . ("4000\r\n" . ('x' x 0x4000) . "\r\n") x 64 },
    slow     => sub { $_[1]->stall; return MCP::Upstream::json(200, {}) },
    hangup   => sub { return undef },
    nohttp   => sub { "SSH-2.0-OpenSSH_9.2\r\n" },
    short    => sub { "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nabc" },
    headers  => sub { MCP::Upstream::answer(200, '{}', 'Content-Type' => 'application/json', 'X' => 'y' x 500_000) },
    lines    => sub { MCP::Upstream::answer(200, '{}', 'Content-Type' => 'application/json', map { ("X-$_" => 'y' x 1000) } 1 .. 90) },
    status   => sub { 'HTTP/1.1 200 ' . 'y' x 500_000 },
    redirect => sub { MCP::Upstream::answer(302, q(), Location => $_[0]{elsewhere}) },
    cookie   => sub { MCP::Upstream::json(200, {}, 'Set-Cookie' => 'a=b; Path=/', 'Alt-Svc' => 'h3=":1"') }
);

sub json_text { return MCP::Upstream::answer(200, $_[0], 'Content-Type' => 'application/json') }

# Where /items/NAME has gone.
my %moved = (
    'moved-here'    => '/v1/items/here',
    'moved-special' => '/v1/items/special',
    'moved-encoded' => '/v1/items/speci%61l',
    'moved-dots'    => '/v1/items/x/../special',
    'moved-up'      => '/v1/admin',
    'moved-out'     => '/v2/items/here'
);

my $root = MCP::Root->new;
my $elsewhere = MCP::Upstream->start(root => $root);    # allowed by httpd, but nobody's connection
my $upstream = MCP::Upstream->start(
    root  => $root,
    serve => sub {
        my ($request, $peer) = @_;
        $request->{elsewhere} = $elsewhere->origin . '/redirected';
        return $answer{$1}->($request, $peer) if $request->{target} =~ m{^/v1/answer/(\w+)\z} && $answer{$1};
        return MCP::Upstream::answer(302, q(), Location => $moved{$1}) if $request->{target} =~ m{^/v1/items/(moved-\w+)\z};
        return MCP::Upstream::json(200, { served => 'yes' });
    }
);
my $stack = MCP::Stack->new(allow => [ $upstream->origin, $elsewhere->origin ], location => "MCPMaxResult 64K\nMCPMaxBody 1M");
my $client = $stack->client;

$stack->connection('witness', $upstream->port);    # WebDAV operations at the upstream that records

sub string { return { type => 'string', %{ $_[0] || {} } } }
sub parameter { my ($name, $in, $schema, %more) = @_; return { name => $name, in => $in, description => $name, schema => $schema, %more } }
sub operation { my ($id, $method, $path, %more) = @_; return { id => $id, method => $method, path => $path, description => "Does $id.", %more } }

$stack->connector(
    {
        slug       => 'rest',
        base_url   => $upstream->origin . '/v1',
        timeout_ms => 1500,
        operations => [
            operation('get_item',     GET    => '/items/{id}', parameters => [ parameter('id', 'path', string()) ]),
            operation('delete_item',  DELETE => '/items/{id}', parameters => [ parameter('id', 'path', string()) ]),
            operation('get_special',  GET    => '/items/special', classification => 'forbidden'),
            operation('get_part',     GET    => '/items/{id}/parts/{part}.json', parameters => [ parameter('id', 'path', string()), parameter('part', 'path', { type => 'integer' }) ]),
            operation(
                'search', GET => '/search?kind=item',
                parameters => [
                    parameter('q',       'query', string()),
                    parameter('number',  'query', { type => 'number' }),
                    parameter('integer', 'query', { type => 'integer' }),
                    parameter('flag',    'query', { type => 'boolean' }),
                    parameter('list',    'query', { type => 'array', items => string() }),
                    parameter('csv',     'query', { type => 'array', items => string() }, explode => MCP::Json::false()),
                    parameter('filter',  'query', { type => 'object', additionalProperties => string() }, style => 'deepObject')
                ]
            ),
            operation('noted', GET => '/noted', parameters => [ parameter('X-Note', 'header', string()), parameter('crumb', 'cookie', string()) ]),
            operation(
                'create_item', POST => '/items',
                body => {
                    content_type => 'application/json',
                    required     => MCP::Json::true(),
                    schema       => {
                        type       => 'object',
                        required   => ['name'],
                        properties => { name => string(), count => { type => 'integer' }, price => { type => 'number' }, on => { type => 'boolean' },
                            tags => { type => 'array', items => string() }, more => { type => 'object' } }
                    }
                }
            ),
            operation('send_form', POST => '/form',
                body => { content_type => 'application/x-www-form-urlencoded', schema => { type => 'object', properties => { a => string(), b => string() } } }),
            map { operation("answer_$_", ($_ eq 'slow' || $_ eq 'hangup' ? 'POST' : 'GET') => "/answer/$_") } sort keys %answer
        ]
    }
);

# --- what a call did -----------------------------------------------------------------

# Answer, rows, and what each witness saw meanwhile.
sub watch {
    my ($tool, $arguments, %how) = @_;
    my $from = delete $how{from} || $client;
    my @dav = $stack->upstream_log;
    my @seen = $upstream->requests;
    my $answer;
    my @rows = attempts($stack, sub { $answer = $from->call($tool, $arguments, %how) });
    my @dav_now = $stack->upstream_log;
    my @seen_now = $upstream->requests;
    return ($answer, \@rows, [ @dav_now[ @dav .. $#dav_now ] ], [ @seen_now[ @seen .. $#seen_now ] ]);
}

sub bytes { my ($text) = @_; utf8::encode($text); return $text }
sub shown { my ($text) = @_; $text = MCP::Json::encode($text); return length $text > 60 ? substr($text, 0, 50) . '...' : $text }
sub unescape { my ($text) = @_; $text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge; return $text }

# A target whose decoded path is the value below $base, once decoded, with every other byte than these encoded; and no
# reading of it has a dot segment.
sub is_one_reading {
    my ($target, $base, $value, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $ok = 1;
    $ok &&= like($target, qr{^/(?:[A-Za-z0-9._~!\$'()*,/-]|%[0-9A-F]{2})*\z}, "$what: only unreserved bytes stand for themselves");
    (my $path = bytes($value)) =~ s{^/}{};
    $ok &&= is(unescape($target), $base . $path, "$what: decoded it is the value, under its base");
    my $reading = $target;
    for (1 .. 5) {
        $ok &&= unlike($reading, qr{(?:^|[/\\])\.{1,2}(?:[/\\;]|\z)}, "$what: without a dot segment");
        my $next = unescape($reading);
        last if $next eq $reading;
        $reading = $next;
    }
    return $ok;
}

# --- the values -------------------------------------------------------------------------

# value => the path that leaves (without its first slash), or the code of the refusal
my @values = (
    [ '../admin'                           => 'url_restricted' ],
    [ '..'                                 => 'url_restricted' ],
    [ '.'                                  => 'url_restricted' ],
    [ './a.txt'                            => 'url_restricted' ],
    [ 'x/..'                               => 'url_restricted' ],
    [ 'x/../../admin'                      => 'url_restricted' ],
    [ '%2e%2e%2f'                          => 'url_restricted' ],
    [ '%2e%2e/admin'                       => 'url_restricted' ],
    [ '%2E%2E%2Fadmin'                     => 'url_restricted' ],
    [ '.%2e/admin'                         => 'url_restricted' ],
    [ '..%2fadmin'                         => 'url_restricted' ],
    [ '%252e%252e%252fadmin'               => 'url_restricted' ],
    [ '%25252e%25252e%25252fadmin'         => 'url_restricted' ],
    [ '..%5cadmin'                         => 'url_restricted' ],
    [ '..\\admin'                          => 'url_restricted' ],
    [ 'x\\..\\admin'                       => 'url_restricted' ],
    [ '..;/admin'                          => 'url_restricted' ],
    [ '..;x=1/admin'                       => 'url_restricted' ],
    [ '%c0%ae%c0%ae%c0%afadmin'            => 'url_restricted' ],
    [ '%c0%ae'                             => 'url_restricted' ],
    [ '%e0%80%ae%e0%80%ae/admin'           => 'url_restricted' ],
    [ "\x{ff0e}\x{ff0e}/admin"             => 'url_restricted' ],
    [ '//evil.example/'                    => 'url_restricted' ],
    [ 'x//y'                               => 'url_restricted' ],
    [ '/'                                  => 'invalid_arguments' ],
    [ 'http://evil.example/'               => 'url_restricted' ],
    [ $elsewhere->origin . '/x'            => 'url_restricted' ],
    [ q()                                  => 'invalid_arguments' ],
    [ 'a' x 1025                           => 'invalid_arguments' ],
    [ '@evil.example'                      => '%40evil.example' ],
    [ ':80@evil.example/x'                 => '%3A80%40evil.example/x' ],
    [ "a\r\nX-Evil: 1"                     => 'a%0D%0AX-Evil%3A%201' ],
    [ "a HTTP/1.1\r\nHost: evil\r\n\r\nGET /b" => undef ],
    [ "a\nb"                               => 'a%0Ab' ],
    [ '%0d%0aX-Evil:1'                     => '%250d%250aX-Evil%3A1' ],
    [ '%00'                                => '%2500' ],
    [ 'a.txt%00.png'                       => 'a.txt%2500.png' ],
    [ "\x{c0}\x{ae}"                       => '%C3%80%C2%AE' ],
    [ ';x=1'                               => '%3Bx%3D1' ],
    [ 'a;x=1'                              => 'a%3Bx%3D1' ],
    [ '?x=1'                               => '%3Fx%3D1' ],
    [ 'a?x=1&y=2'                          => 'a%3Fx%3D1%26y%3D2' ],
    [ '#f'                                 => '%23f' ],
    [ 'a\\b'                               => 'a%5Cb' ],
    [ '\\\\evil.example\\x'                => '%5C%5Cevil.example%5Cx' ],
    [ "\x{4e16}\x{754c} \x{e9}"            => '%E4%B8%96%E7%95%8C%20%C3%A9' ],
    [ "\x{202e}txt.a"                      => '%E2%80%AEtxt.a' ],
    [ "\x{1f600}"                          => '%F0%9F%98%80' ],
    [ "\t\x01\x7f"                         => '%09%01%7F' ],
    [ '%'                                  => '%25' ],
    [ '%zz'                                => '%25zz' ],
    [ '{id}'                               => '%7Bid%7D' ],
    [ '<a href="x">'                       => '%3Ca%20href%3D%22x%22%3E' ],
    [ '...'                                => '...' ],
    [ '.htaccess'                          => '.htaccess' ],
    [ 'docs/sub/a.txt'                     => 'docs/sub/a.txt' ],
    [ '/a.txt'                             => 'a.txt' ],
    [ 'a.txt/'                             => 'a.txt/' ],
    [ 'a' x 1024                           => 'a' x 1024 ]
);

subtest 'read_file: each path leaves as encoded segments of its template, or is refused' => sub {
    for my $case (@values) {
        my ($value, $wanted) = @$case;
        my $what = shown($value);
        my ($answer, $rows, $dav) = watch('webdav__read_file', { path => $value });
        is(scalar @$rows, 1, "$what: one row");
        my $code = MCP::Client::code($answer);
        if (defined $wanted && $wanted =~ /^(?:url_restricted|invalid_arguments)\z/) {
            is(verdict($answer), '200/isError', "$what: refused in-band");
            is($code, $wanted, "$what: $wanted");
            is("$rows->[0]{outcome} $rows->[0]{error_code}", $wanted eq 'url_restricted' ? 'denied url_restricted' : 'error invalid_arguments', "$what: so says the row");
            is_deeply($dav, [], "$what: nothing was sent");
            next;
        }
        is(scalar @$dav, 1, "$what: one request was sent") or next;
        my ($method, $target) = split / /, $dav->[0];
        is($method, 'GET', "$what: a GET");
        is_one_reading($target, q(/), $value, $what);
        is($target, "/$wanted", "$what: as this target") if defined $wanted;
        is($rows->[0]{upstream_status}, (split / /, $dav->[0])[2], "$what: whose status is in the row");
    }
};

# The header lines of a WebDAV call that left through libcurl, by name.
sub header_names { return join q( ), sort map { lc $_->[0] } @{ $_[0]{headers} } }

subtest 'write_file: path and content reach one path and one body' => sub {
    for my $case (@values) {
        my ($value, $wanted) = @$case;
        my $what = shown($value);
        my ($answer, $rows, undef, $seen) = watch('witness__write_file', { path => $value, content => "GET / HTTP/1.1\r\n\r\n$value" });
        if (defined $wanted && $wanted =~ /^(?:url_restricted|invalid_arguments)\z/) {
            is(MCP::Client::code($answer), $wanted, "$what: $wanted");
            is_deeply($seen, [], "$what: nothing was sent");
            next;
        }
        is(scalar @$seen, 1, "$what: one request was sent") or next;
        my $request = $seen->[0];
        is($request->{method}, 'PUT', "$what: a PUT");
        is_one_reading($request->{target}, q(/), $value, $what);
        is(header_names($request), 'accept content-length content-type host user-agent', "$what: the headers of every PUT and no other")
            or diag $request->{raw};
        my ($host) = map { $_->[1] } grep { lc $_->[0] eq 'host' } @{ $request->{headers} };
        is($host, '127.0.0.1:' . $upstream->port, "$what: at its host");
        # the record is text, so the body's bytes came back as characters
        is($request->{body}, bytes("GET / HTTP/1.1\r\n\r\n$value"), "$what: the body is the content, byte for byte");
    }
};

subtest 'move_file: the Destination is a URL below the base, or refused' => sub {
    my $base = $upstream->origin;
    for my $case (@values, [ "$base/inside.txt" => 'inside.txt' ], [ "$base/../x" => 'url_restricted' ], [ "$base.evil.example/x" => 'url_restricted' ],
        [ "$base\@evil.example/x" => 'url_restricted' ])
    {
        my ($value, $wanted) = @$case;
        my $what = shown($value);
        $wanted = 'url_restricted' if $value eq q(/);
        my ($answer, $rows, undef, $seen) = watch('witness__move_file', { path => 'from.txt', Destination => $value, Overwrite => 'F' });
        if (defined $wanted && $wanted =~ /^(?:url_restricted|invalid_arguments)\z/) {
            is(MCP::Client::code($answer), $wanted, "$what: $wanted");
            is_deeply($seen, [], "$what: nothing was sent");
            next;
        }
        if ($value =~ /[\x00-\x1f\x7f]/) {
            is(MCP::Client::code($answer), 'invalid_arguments', "$what: a header takes no control characters");
            is_deeply($seen, [], "$what: nothing was sent");
            next;
        }
        is(scalar @$seen, 1, "$what: one request was sent") or next;
        my $request = $seen->[0];
        is("$request->{method} $request->{target}", 'MOVE /from.txt', "$what: a MOVE of its path");
        is(header_names($request), 'accept destination host overwrite user-agent', "$what: the headers of every MOVE and no other") or diag $request->{raw};
        my ($destination) = map { $_->[1] } grep { $_->[0] eq 'Destination' } @{ $request->{headers} };
        my ($origin, $target) = $destination =~ m{^(http://[^/]*)(/.*)\z};
        is($origin, $base, "$what: to its own host");
        is_one_reading($target, q(/), $value =~ /^\Q$base\E/ ? substr($value, length $base) : $value, $what);
        is($target, "/$wanted", "$what: as this target") if defined $wanted;
    }
    for my $value (grep { $_->[1] && $_->[1] eq 'url_restricted' } @values) {
        my ($answer, undef, undef, $seen) = watch('witness__move_file', { path => $value->[0], Destination => 'to.txt', Overwrite => 'T' });
        is(MCP::Client::code($answer), 'url_restricted', shown($value->[0]) . ' as what is moved');
        is_deeply($seen, [], 'nothing was sent');
    }
};

subtest 'a placeholder of one segment stays one, and reaches no operation that is withheld' => sub {
    my @cases = (
        [ 'a/b'                    => 'a%2Fb' ],
        [ 'a%2Fb'                  => undef ],
        [ 'special'                => 'url_restricted' ],
        [ 'special/'               => undef ],
        [ 'Special'                => undef ],
        [ 'speci%61l'              => 'url_restricted' ],
        [ 'speci%2561l'            => 'url_restricted' ],
        [ 'special;x=1'            => 'url_restricted' ],
        [ '..'                     => 'url_restricted' ],
        [ '../items/special'       => 'url_restricted' ],
        [ 'x/../special'           => 'url_restricted' ],
        [ './special'              => 'url_restricted' ],
        [ '../../admin'            => 'url_restricted' ],
        [ 'x?kind=y'               => 'x%3Fkind%3Dy' ],
        [ 'special?'               => undef ],
        [ 'special#'               => undef ],
        [ "\x{ff53}pecial"         => undef ],
        [ '7'                      => '7' ],
        [ 'specials'               => 'specials' ],
        [ q()                      => 'invalid_arguments' ]
    );
    for my $tool ('rest__get_item', 'rest__delete_item') {
        for my $case (@cases) {
            my ($value, $wanted) = @$case;
            my $what = "$tool " . shown($value);
            # DELETE /items/special is nobody's but delete_item's own
            $wanted = $value =~ /^special\z/ ? 'special' : undef if $tool eq 'rest__delete_item' && defined $wanted && $value =~ /^speci/ && $value !~ m{/};
            my ($answer, $rows, undef, $seen) = watch($tool, { id => $value });
            my $code = MCP::Client::code($answer);
            is(scalar @$rows, 1, "$what: one row");
            if (defined $wanted && $wanted =~ /^(?:url_restricted|invalid_arguments)\z/) {
                is($code, $wanted, "$what: $wanted");
                is_deeply($seen, [], "$what: nothing was sent");
                next;
            }
            if (@$seen == 0) {
                like($code, qr/^(?:url_restricted|invalid_arguments)\z/, "$what: refused");
                ok(!defined $wanted, "$what: may be refused");
                next;
            }
            my $target = $seen->[0]{target};
            like($target, qr{^/v1/items/[^/?#]+\z}, "$what: one segment");
            isnt($target, '/v1/items/special', "$what: not the one that is withheld") if $tool eq 'rest__get_item';
            is_one_reading($target, '/v1/items/', $value, $what) if $value !~ m{^/};
            is($target, "/v1/items/$wanted", "$what: as this target") if defined $wanted;
        }
    }
    my ($answer, $rows, undef, $seen) = watch('rest__get_part', { id => 'a/b', part => 7 });
    is($seen->[0]{target}, '/v1/items/a%2Fb/parts/7.json', 'two placeholders, one within a segment');
    ($answer, $rows, undef, $seen) = watch('rest__get_part', { id => 'a', part => '7/../x' });
    is(MCP::Client::code($answer), 'invalid_arguments', 'an integer is an integer');
    is_deeply($seen, [], 'nothing was sent');
};

subtest 'queries: types, lists and what would be a second parameter' => sub {
    my $false = MCP::Json::false();
    my $true = MCP::Json::true();
    my @cases = (
        [ {}                                      => q() ],
        [ { q => 'a b&c=d#e?f/g+h%20' }           => 'q=a%20b%26c%3Dd%23e%3Ff%2Fg%2Bh%2520&' ],
        [ { q => '&kind=other' }                  => 'q=%26kind%3Dother&' ],
        [ { q => "a\r\nX-Evil: 1" }               => 'q=a%0D%0AX-Evil%3A%201&' ],
        [ { q => "\x{4e16}" }                     => 'q=%E4%B8%96&' ],
        [ { integer => 7 }                        => 'integer=7&' ],
        [ { integer => -7 }                       => 'integer=-7&' ],
        [ { number => 0.5 }                       => 'number=0.5&' ],
        [ { flag => $true }                       => 'flag=true&' ],
        [ { flag => $false }                      => 'flag=false&' ],
        [ { list => [ 'a', 'b c', 'd&e' ] }       => 'list=a&list=b%20c&list=d%26e&' ],
        [ { csv => [ 'a', 'b' ] }                 => 'csv=a,b&' ],
        [ { filter => { x => '1&y=2' } }          => qr/^filter(?:\[|%5B)x(?:\]|%5D)=1%26y%3D2&\z/ ]
    );
    for my $case (@cases) {
        my ($arguments, $wanted) = @$case;
        my $what = shown($arguments);
        my ($answer, $rows, undef, $seen) = watch('rest__search', $arguments);
        is(verdict($answer), '200/result', "$what: served");
        is(scalar @$seen, 1, "$what: one request") or next;
        my ($query) = $seen->[0]{target} =~ m{^/v1/search\?((?:.*&)?)kind=item\z} or fail("$what: $seen->[0]{target}"), next;
        ref $wanted ? like($query, $wanted, "$what: as this query") : is($query, $wanted, "$what: as this query");
    }
    for my $arguments ({ integer => '7' }, { integer => 1.5 }, { flag => 'true' }, { list => 'a' }, { list => [7] }, { filter => [] }, { kind => 'other' }, { q => undef }) {
        my ($answer, $rows, undef, $seen) = watch('rest__search', $arguments);
        is(MCP::Client::code($answer), 'invalid_arguments', shown($arguments) . ' is refused');
        is_deeply($seen, [], 'and not sent');
    }
};

subtest 'headers and cookies take no line ends' => sub {
    for my $name ('X-Note', 'crumb') {
        for my $value ("a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rb", "\r\n\r\nGET / HTTP/1.1", "a\x01b") {
            my ($answer, $rows, undef, $seen) = watch('rest__noted', { $name => $value });
            is(scalar @$rows, 1, shown($value) . " in $name: one row");
            if (@$seen) {
                is($name, 'crumb', 'a cookie may go out encoded');
                unlike($seen->[0]{raw}, qr/^X-Evil/mi, 'without another header');
                is(header_names($seen->[0]), 'accept cookie host user-agent', 'and with the headers of every such call');
            } else {
                is(MCP::Client::code($answer), 'invalid_arguments', 'is refused');
            }
        }
    }
    my ($answer, $rows, undef, $seen) = watch('rest__noted', { 'X-Note' => 'fine: "text"; a=b', crumb => 'x' });
    my %sent = map { lc $_->[0] => $_->[1] } @{ $seen->[0]{headers} };
    is($sent{'x-note'}, 'fine: "text"; a=b', 'a header that is fine is sent as it is');
    like($sent{cookie}, qr/^crumb=x\z/, 'and so is a cookie');
};

subtest 'bodies: JSON and forms hold the values and nothing else' => sub {
    my %item = (name => "a\"b\\c\r\n\x{4e16}\x{1f600}", count => 9007199254740993, price => 0.1, on => MCP::Json::true(), tags => [ 'x', '","y":"' ], more => { deep => [ 1, { n => undef } ] });
    my ($answer, $rows, undef, $seen) = watch('rest__create_item', \%item);
    is(verdict($answer), '200/result', 'served');
    my ($type) = map { $_->[1] } grep { lc $_->[0] eq 'content-type' } @{ $seen->[0]{headers} };
    is($type, 'application/json', 'as application/json');
    is_deeply(MCP::Json::decode(bytes_of($seen->[0]{body})), \%item, 'the body is the object');
    like($seen->[0]{body}, qr/9007199254740993\b/, 'with the digits of its integer');
    is_deeply([ sort @{ $rows->[0]{arg_names} } ], [ sort keys %item ], 'the row has the names');
    for my $arguments ({}, { name => 7 }, { name => 'x', count => 'y' }, { name => 'x', __proto__ => 1, other => 2 }) {
        my ($refused, undef, undef, $none) = watch('rest__create_item', $arguments);
        next if $arguments->{other} && @$none;    # an object that is open takes more
        is(MCP::Client::code($refused), 'invalid_arguments', shown($arguments) . ' is refused');
        is_deeply($none, [], 'and not sent');
    }
    ($answer, $rows, undef, $seen) = watch('rest__send_form', { a => 'x&b=y', b => "1\r\n2 +" });
    like($seen->[0]{body}, qr/^a=x%26b%3Dy&b=1%0D%0A2(?:\+|%20)%2B\z/, 'a form holds two values');
};

# The record keeps bodies as characters, one for each byte.
sub bytes_of { my ($text) = @_; utf8::downgrade($text, 1); return $text }

subtest 'raw NUL and bad UTF-8 in a body are -32700 with 400, without a row' => sub {
    my @dav = $stack->upstream_log;
    my %values = (
        'a raw NUL'          => "a\0b",
        'a NUL as an escape' => 'a\u0000b',
        'a byte 0xff'        => "a\xffb",
        'overlong dots'      => "\xc0\xae\xc0\xae\xc0\xafadmin",
        'overlong in three'  => "\xe0\x80\xae\xe0\x80\xae/admin",
        'a surrogate'        => "\xed\xa0\x80",
        'half a pair'        => '\ud800',
        'beyond Unicode'     => "\xf4\x90\x80\x80",
        'cut off'            => "\xe4\xb8"
    );
    for my $what (sort keys %values) {
        my $answer;
        my @rows = attempts($stack, sub {
            $answer = $client->post(qq({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"webdav__read_file","arguments":{"path":"$values{$what}"},"_meta":$meta}}),
                headers => [ @m1, 'Mcp-Method' => 'tools/call', 'Mcp-Name' => 'webdav__read_file' ]);
        });
        is(verdict($answer), '400/-32700', "$what: refused");
        is_deeply(\@rows, [], "$what: no row");
    }
    is_deeply([ $stack->upstream_log ], \@dav, 'nothing was sent');
};

subtest 'arguments that are odd as JSON' => sub {
    my $post = sub {
        my ($arguments) = @_;
        return $client->post(qq({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"webdav__read_file","arguments":$arguments,"_meta":$meta}}),
            headers => [ @m1, 'Mcp-Method' => 'tools/call', 'Mcp-Name' => 'webdav__read_file' ]);
    };
    my @dav = $stack->upstream_log;
    is(verdict($post->('{"path":"a.txt","path":"../x"}')), '400/-32600', 'an argument that is there twice is refused');
    is(verdict($post->('{"path":"a.txt","p\u0061th":"../x"}')), '400/-32600', 'also where one is spelt with an escape');
    is(verdict($post->('{"path":' . ('[' x 90) . (']' x 90) . '}')), '400/-32700', 'what nests too deeply is refused');
    is(MCP::Client::code($post->('{"path":"a.txt",' . join(',', map { qq("k$_":1) } 1 .. 5000) . '}')), 'invalid_arguments', '5000 arguments are refused');
    is(MCP::Client::code($post->('{"path":"' . ('x' x 500_000) . '"}')), 'invalid_arguments', 'half a megabyte of path is refused');
    is_deeply([ $stack->upstream_log ], \@dav, 'nothing was sent');
    my @rows = attempts($stack, sub { $post->('{"path":"a.txt","x-secret-key-canary":1,"' . ('k' x 5000) . '":2}') });
    is_deeply($rows[0]{arg_names}, ['path'], 'names that the schema does not know are not kept');
    is($rows[0]{arg_unknown}, 2, 'but counted');
    is($rows[0]{arg_count}, 3, 'like the others');
};

# --- the other side --------------------------------------------------------------------

subtest 'JSON of an application becomes structuredContent, where it can' => sub {
    my $text = sub { result($_[0])->{content}[0]{text} };
    # answer, is it structured for 2026-07-28, for 2025-06-18
    my @cases = (
        [ object => 1, 1 ], [ problem => 1, 1 ], [ long => 1, 1 ], [ array => 1, 0 ], [ word => 1, 0 ], [ null => 1, 0 ],
        [ big => 0, 0 ], [ exponent => 0, 0 ], [ broken => 0, 0 ], [ doubled => 0, 0 ], [ deep => 0, 0 ], [ nul => 0, 0 ],
        [ text => 0, 0 ], [ typeless => 0, 0 ], [ created => 1, 1 ]
    );
    for my $case (@cases) {
        my ($name, $modern, $older) = @$case;
        my ($answer, $rows) = watch("rest__answer_$name", {});
        is(verdict($answer), '200/result', "$name: a result");
        is(exists result($answer)->{structuredContent} ? 1 : 0, $modern, "$name: structured for 2026-07-28, or not");
        ok(length $text->($answer), "$name: and text");
        is("$rows->[0]{outcome} $rows->[0]{upstream_status}", $name eq 'created' ? 'ok 201' : 'ok 200', "$name: ok in the row");
        for my $version ('2025-11-25', '2025-06-18', '2025-03-26') {
            my $legacy = $client->legacy('tools/call', { name => "rest__answer_$name", arguments => {} }, version => $version);
            is(verdict($legacy), '200/result', "$name: a result for $version");
            is(exists result($legacy)->{structuredContent} ? 1 : 0, $version eq '2025-03-26' ? 0 : $older, "$name: structured for $version, or not");
            is($text->($legacy), $text->($answer), "$name: the same text for $version");
        }
    }
    is($text->($client->call('rest__answer_big', {})), '{"n":18446744073709551616}', 'an integer beyond 64 bit keeps its digits as text');
    is($text->($client->call('rest__answer_exponent', {})), '{"n":1e400}', 'and so does a number without a double');
    like($client->call('rest__answer_long', {})->{body}, qr/"structuredContent":\{"n":9223372036854775807,"x":0\.1\}/, 'others keep theirs in both');
    is($text->($client->call('rest__answer_text', {})), "plain <b>\"text\"\x01\n", 'text is text');
    is_deeply(result($client->call('rest__answer_null', {}))->{structuredContent}, undef, 'null is null');
};

subtest 'what is not text, and what is nothing' => sub {
    my $block = sub { result($client->call("rest__answer_$_[0]", {}))->{content}[0] };
    my $image = $block->('png');
    is("$image->{type} $image->{mimeType}", 'image image/png', 'an image is an image');
    is(MIME::Base64::decode_base64($image->{data}), $png, 'byte for byte');
    my $binary = $block->('binary');
    is($binary->{type}, 'resource', 'other bytes are a resource');
    is($binary->{resource}{mimeType}, 'application/x-thing', 'with their type');
    is(MIME::Base64::decode_base64($binary->{resource}{blob}), "\xff\xfe\0\1", 'byte for byte');
    is($block->('untyped')->{resource}{mimeType}, 'application/octet-stream', 'or none');
    is($block->('badutf8')->{type}, 'resource', 'JSON that is not UTF-8 is no text');
    for my $name ('empty', 'nothing') {
        my $result = result($client->call("rest__answer_$name", {}));
        is($result->{content}[0]{type}, 'text', "$name: an empty body is a text");
        like($result->{content}[0]{text}, $name eq 'empty' ? qr/200/ : qr/204/, "$name: that says so");
        ok(!exists $result->{structuredContent} && !$result->{isError}, "$name: and no more");
    }
};

subtest 'an error status is an isError with status and body' => sub {
    my %body = (e400 => 'say please', e401 => 'who', e404 => 'no such item', e409 => undef, e500 => '<h1>boom</h1>');
    for my $name (sort keys %body) {
        my ($status) = $name =~ /(\d+)/;
        my ($answer, $rows) = watch("rest__answer_$name", {});
        is(verdict($answer), '200/isError', "$name: in-band");
        my $error = result($answer)->{structuredContent}{error};
        is("$error->{code} $error->{status}", "upstream_status $status", "$name: with its status");
        is($error->{audit}, $rows->[0]{audit_id}, "$name: and its row");
        is("$rows->[0]{outcome} $rows->[0]{error_code} $rows->[0]{upstream_status}", "error upstream_status $status", "$name: which says the same");
        my $all = join "\n", map { $_->{text} } @{ result($answer)->{content} };
        like($all, qr/\b$status\b/, "$name: the text has the status");
        like($all, qr/\Q$body{$name}\E/, "$name: and the body") if defined $body{$name};
        is(MCP::Client::header($answer, 'WWW-Authenticate'), undef, "$name: no challenge of theirs comes through");
        my $legacy = $client->legacy('tools/call', { name => "rest__answer_$name", arguments => {} }, version => '2025-03-26');
        is(verdict($legacy), '200/isError', "$name: in-band for 2025-03-26");
        ok(!exists result($legacy)->{structuredContent}, "$name: and unstructured");
    }
    is_deeply(result($client->call('rest__answer_e404', {}))->{structuredContent}{body}, { error => 'no such item' }, 'a JSON body is there as JSON');
    my ($answer, undef, $dav) = watch('webdav__read_file', { path => 'none.txt' });
    is(result($answer)->{structuredContent}{error}{status}, 404, 'the same from a real server');
};

subtest 'answers that are too large, too late or none' => sub {
    my ($fit) = watch('rest__answer_fit', {});
    is(length result($fit)->{content}[0]{text}, $MAX_RESULT, 'MCPMaxResult is served whole');
    my %code = (
        large    => [ 'result_too_large',     undef ],
        endless  => [ 'result_too_large',     undef ],
        slow     => [ 'upstream_timeout',     'POST' ],
        hangup   => [ 'upstream_unreachable', 'POST' ],
        nohttp   => [ 'upstream_invalid',     undef ],
        short    => [ 'upstream_invalid',     undef ],
        headers  => [ 'upstream_invalid',     undef ],
        lines    => [ 'upstream_invalid',     undef ],
        status   => [ 'upstream_invalid',     undef ],
        redirect => [ 'upstream_status',      undef ]
    );
    for my $name (sort keys %code) {
        my ($code, $method) = @{ $code{$name} };
        my $began = Time::HiRes::time();
        my ($answer, $rows, undef, $seen) = watch("rest__answer_$name", {});
        my $took = Time::HiRes::time() - $began;
        is(verdict($answer), '200/isError', "$name: in-band");
        is(MCP::Client::code($answer), $code, "$name: $code");
        is("$rows->[0]{outcome} $rows->[0]{error_code}", "error $code", "$name: so says the row");
        is(scalar @$rows, 1, "$name: one row");
        is(scalar @$seen, 1, "$name: a POST is not sent again") if defined $method;
        cmp_ok($took, '<', 10, "$name: in bounded time");
        unlike($answer->{body}, qr/xxxxxxxxxx/, "$name: without a part of the body") if $name =~ /large|endless/;
    }
    is_deeply([ $elsewhere->requests ], [], 'a redirect to another host was not followed');
    for my $name (sort keys %moved) {
        my ($answer, $rows, undef, $seen) = watch('rest__get_item', { id => $name });
        my @targets = map { $_->{target} } @$seen;
        is($targets[0], "/v1/items/$name", "$name: was asked for");
        is(scalar @$rows, 1, "$name: one row");
        if ($name eq 'moved-here') {
            is_deeply(\@targets, [ "/v1/items/$name", '/v1/items/here' ], "$name: is followed to an item");
            is(verdict($answer), '200/result', "$name: and answers");
        } else {
            is(scalar @targets, 1, "$name: is not followed to what get_item could not have reached");
            is(result($answer)->{structuredContent}{error}{status}, 302, "$name: and told");
        }
    }
    my ($answer) = watch('rest__answer_cookie', {});
    is(MCP::Client::header($answer, 'Set-Cookie'), undef, "an application's cookie does not reach the client");
    my (undef, undef, undef, $seen) = watch('rest__answer_object', {});
    unlike($seen->[0]{raw}, qr/^Cookie/mi, 'nor comes back to the application');
};

# --- the endpoint's own path --------------------------------------------------------------

subtest 'variants of the path are no second way in' => sub {
    my $low = $stack->client(scopes => [qw(mcp:read mcp:tools)]);
    my @nothing = ('/mcp/', '/mcp%2f', '/mcp%2F', '/MCP', '/Mcp', '/mcp/x', '/mcp//', '/mcp/mcp', '/mcp/.', '/mcp/..', '/mcp/x/..', '/mcp.', '/mcp%00', '/mcp%20', '/mcp;x=1',
        '/mcp%3fx', '/mcp%5c', '/mcp\\', '/%2fmcp');
    # httpd itself makes /mcp of these
    my @same = ('//mcp', '///mcp', '/./mcp', '/x/../mcp', '/x/%2e%2e/mcp', '/%6dcp', '/mcp?', '/mcp?x=1', '/mcp?access_token=' . ('A' x 43));
    for my $path (@nothing, @same) {
        like($client->list(path => $path, token => undef)->{status}, qr/^40[14]\z/, "$path without a token: 401 or 404");
        like($client->list(path => $path, token => 'mcp_' . 'A' x 43)->{status}, qr/^40[14]\z/, "$path with a token of nobody: 401 or 404");
    }
    for my $path (@nothing) {
        is($client->list(path => $path)->{status}, 404, "$path with a token: 404");
        is($client->request('GET', $path, [ Authorization => 'Bearer ' . $client->token ])->{status}, 404, "$path by GET: 404");
    }
    for my $path (@same) {
        is(verdict($client->list(path => $path)), '200/result', "$path is /mcp");
        is($client->list(path => $path, headers => [ Origin => 'null' ])->{status}, 403, "$path: with its gates");
        my $answer;
        my @rows = attempts($stack, sub { $answer = $low->call('webdav__delete_file', { path => 'a.txt' }, path => $path) });
        is($answer->{status}, 403, "$path: and its scopes");
        is_deeply([ map { $_->{error_code} } @rows ], ['insufficient_scope'], "$path: and its rows");
    }
    is($stack->file('a.txt'), "hello\n", 'nothing was deleted');
};

is_deeply([ $elsewhere->requests ], [], 'no request ever reached another host');
$stack->end(expected => ['AH00036']);    # a name of 1024 bytes is too long for a file system
done_testing;
