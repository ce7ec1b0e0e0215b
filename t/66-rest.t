# The REST door of the control plane: who is let in, what a path, a query string, a body and a header become, and what
# the answers say.

use strict;
use warnings;
use Test::More;
use MCP::Client;
use MCP::Json;
use MCP::Net;
use MCP::Node;
use MCP::Stack;
use MCP::Verdict qw(challenge);

my $API = '/api/v1';
my $stack = MCP::Stack->new(
    webdav => 0,
    server => <<"EOF"
MCPPolicyTimeout 1s
<Location "$API">
    MCPApi On
    MCPAllowOrigin https://console.example.org
</Location>
EOF
);
my %token = map { $_ => $stack->grant("$_\@example.org")->{token} } qw(owner member auditor);
my $client = $stack->client(member => 'owner@example.org');
my $mark = ($stack->audit)[-1]{audit_id};

sub header { return MCP::Client::header(@_) }

# One request: path below the API; how: token (undef: none), body (data or bytes), headers, type (undef: none).
sub rest {
    my ($method, $path, %how) = @_;
    my $token = exists $how{token} ? $how{token} : $token{owner};
    my @headers = @{ $how{headers} || [] };
    push @headers, Authorization => "Bearer $token" if defined $token;
    my $body = ref $how{body} ? MCP::Json::encode($how{body}) : $how{body};
    my $type = exists $how{type} ? $how{type} : 'application/json';
    push @headers, 'Content-Type' => $type if defined $body && defined $type;
    my $answer = $client->request($method, defined $how{absolute} ? $how{absolute} : "$API$path", \@headers, $body)
        or return { status => 0, body => 'no answer', headers => {} };
    $answer->{json} = eval { MCP::Json::decode($answer->{body}) };
    return $answer;
}

# A refusal with everything that it must have.
sub is_problem {
    my ($answer, $status, $code, $name) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $json = ref $answer->{json} eq 'HASH' ? $answer->{json} : {};
    my @bad;
    push @bad, "status $answer->{status}" if $answer->{status} != $status;
    push @bad, 'Content-Type ' . (header($answer, 'Content-Type') || 'none')
        if (header($answer, 'Content-Type') || q()) ne 'application/problem+json';
    push @bad, 'code ' . ($json->{code} || 'none') if ($json->{code} || q()) ne $code;
    push @bad, 'status in the body' if ($json->{status} || 0) != $status;
    push @bad, 'no title, detail or type' if grep { !length($json->{$_} // q()) } qw(title detail type);
    push @bad, 'may be stored' if (header($answer, 'Cache-Control') || q()) ne 'no-store';
    return ok(!@bad, "$name: $status $code") || diag(join ', ', @bad, $answer->{body});
}

subtest 'whoami says who the token is' => sub {
    my $answer = rest('GET', '/whoami');
    is($answer->{status}, 200, 'answered');
    is(header($answer, 'Content-Type'), 'application/json', 'JSON');
    is(header($answer, 'Cache-Control'), 'no-store', 'not to be stored');
    like(header($answer, 'MCP-Audit'), qr/^\d+-\d+$/, 'and the row of the audit');
    is($answer->{json}{email}, 'owner@example.org', 'the Owner');
    my ($row) = grep { $_->{surface} eq 'rest' } $stack->audit(after => $mark);
    is(header($answer, 'MCP-Audit'), $row->{audit_id}, 'which is there');
    is_deeply([@{$row}{qw(surface operation outcome via)}], [qw(rest whoami__get ok direct)], 'with the surface rest');
    my $head = rest('HEAD', '/whoami');
    is($head->{status}, 200, 'HEAD is served');
    is($head->{body}, q(), 'without the body');
};

subtest 'without a good token everything is 401, whatever else is wrong' => sub {
    my @requests = (
        ['GET', '/whoami'], ['GET', '/nothing'], ['GET', q()], ['GET', '/'], ['DELETE', '/whoami'],
        ['BREW', '/whoami'], ['TRACE', '/whoami'], ['GET', '/' . 'x' x 5000], ['GET', '/members?limt=x'], ['GET', '/members/%ff'], ['GET', '/openapi.json'],
        ['POST', '/openapi.json'], ['POST', '/members', body => '{', type => 'text/plain'],
        ['POST', '/members', body => '{'], ['POST', '/members', body => 'x' x 70000],
        ['PATCH', '/members/x', body => {}, headers => ['If-Match' => 'x']],
        ['GET', '/whoami', headers => [Accept => 'text/html']], ['GET', '/members/', headers => ['If-None-Match' => '*']],
        ['GET', q(), absolute => '//api/v1/whoami'], ['GET', q(), absolute => '/api//v1/whoami'],
        ['GET', q(), absolute => '/api/./v1/whoami'], ['GET', q(), absolute => '/x/../api/v1/whoami'],
        ['GET', q(), absolute => '/api/v1//whoami'], ['GET', q(), absolute => '/%61pi/v1/whoami'],
        ['GET', q(), absolute => '/api/v1/../v1/whoami'], ['GET', q(), absolute => '/api/v1/whoami/']
    );
    for my $request (@requests) {
        my ($method, $path, %how) = @$request;
        my $name = "$method " . ($how{absolute} || $path);
        for my $bad (undef, 'mcp_' . 'x' x 43) {
            my $answer = rest($method, $path, %how, token => $bad);
            is_problem($answer, 401, 'invalid_token', $name);
            my $challenge = challenge($answer) or fail("$name: a challenge"), next;
            is($challenge->{scheme}, 'Bearer', "$name: Bearer");
            is_deeply($challenge->{resource_metadata},
                [$stack->gateway->origin . '/.well-known/oauth-protected-resource/mcp'], "$name: names the metadata");
            is_deeply($challenge->{error}, defined $bad ? ['invalid_token'] : undef, "$name: and the error, if there was one");
        }
    }
    for my $path ('/api/v1%2fwhoami', '/api%2fv1/whoami', '/API/v1/whoami', '/api/v1x/whoami', '/api/v1.whoami') {
        my $answer = rest('GET', q(), absolute => $path, token => undef);
        like($answer->{status}, qr/^40[14]$/, "$path: 401 or 404");
        unlike($answer->{body}, qr/"email"/, "$path: and nothing else");
    }
    my $answer = rest('GET', "/whoami?access_token=$token{owner}", token => undef);
    is($answer->{status}, 401, 'a token in the query string is none');
};

subtest 'with one, other spellings of a path are not found' => sub {
    for my $path ('//api/v1/whoami', '/api//v1/whoami', '/api/./v1/whoami', '/x/../api/v1/whoami', '/api/v1//whoami',
        '/%61pi/v1/whoami', '/api/v1/whoami/', '/api/v1/', '/api/v1', '/api/v1/Whoami', '/api/v1/whoami/x', '/api/v1/whoami;x') {
        is_problem(rest('GET', q(), absolute => $path), 404, 'not_found', $path);
    }
    is_problem(rest('GET', '/' . 'x' x 5000), 404, 'not_found', 'a segment that no file system has room for');
    is_problem(rest('GET', '/whoami' . '/x' x 1000), 404, 'not_found', 'and one segment after the other');
    unlike(MCP::Root::slurp($stack->gateway->log), qr/AH00127|AH00036/, 'no file is looked for');
    is(rest('GET', '/members/a%2fb', token => undef)->{status}, 404, 'an encoded slash is httpd\'s own 404');
    is(rest('GET', q(), absolute => 'http://' . substr($stack->gateway->origin, 7) . '/api/v1/whoami')->{status}, 200,
        'the absolute form is the same path');
};

subtest 'pages of other origins are refused, allowed ones are told what they may read' => sub {
    is_problem(rest('GET', '/whoami', headers => [Origin => 'https://evil.example']), 403, 'invalid_request', 'foreign');
    is_problem(rest('GET', '/whoami', headers => [Origin => 'null']), 403, 'invalid_request', 'null');
    my $own = rest('GET', '/whoami', headers => [Origin => $stack->gateway->origin]);
    is($own->{status}, 200, 'its own');
    my $answer = rest('GET', '/whoami', headers => [Origin => 'https://console.example.org']);
    is($answer->{status}, 200, 'an allowed one');
    is(header($answer, 'Access-Control-Allow-Origin'), 'https://console.example.org', 'is let in');
    like(header($answer, 'Access-Control-Expose-Headers'), qr/ETag, Link, Location/, 'and sees the headers');
    my $preflight = rest('OPTIONS', '/members/x', token => undef,
        headers => [Origin => 'https://console.example.org', 'Access-Control-Request-Method' => 'PATCH']);
    is($preflight->{status}, 204, 'a preflight needs no token');
    like(header($preflight, 'Access-Control-Allow-Methods'), qr/PATCH/, 'PATCH is allowed');
    like(header($preflight, 'Access-Control-Allow-Headers'), qr/if-match/, 'If-Match too');
};

my $member;
subtest 'a member is made, shown, changed and removed' => sub {
    my $made = rest('POST', '/members', body => { email => 'ada@example.org', name => 'Ada' });
    is($made->{status}, 201, 'made: 201');
    $member = $made->{json}{member};
    is(header($made, 'Location'), "$API/members/$member", 'and where');
    is(header($made, 'ETag'), qq("$made->{json}{revision}"), 'the ETag is the revision');
    my $shown = rest('GET', q(), absolute => header($made, 'Location'));
    is_deeply($shown->{json}, $made->{json}, 'there it is');
    is(header($shown, 'ETag'), header($made, 'ETag'), 'with the same ETag');
    is(rest('GET', '/members/ada%40example.org')->{json}{member}, $member, 'by email too');
    my $same = rest('GET', "/members/$member", headers => ['If-None-Match' => header($made, 'ETag')]);
    is($same->{status}, 304, 'If-None-Match: 304');
    is($same->{body}, q(), 'without a body');
    is(header($same, 'ETag'), header($made, 'ETag'), 'with the ETag');

    my $changed = rest('PATCH', "/members/$member", body => { name => 'Ada L.' }, headers => ['If-Match' => header($made, 'ETag')]);
    is($changed->{status}, 200, 'If-Match with this ETag: changed');
    is($changed->{json}{name}, 'Ada L.', 'as was said');
    isnt(header($changed, 'ETag'), header($made, 'ETag'), 'another ETag');
    is_problem(rest('PATCH', "/members/$member", body => { name => 'X' }, headers => ['If-Match' => header($made, 'ETag')]),
        412, 'revision_mismatch', 'the old ETag');
    is_problem(rest('PATCH', "/members/$member", body => { name => 'X' }, headers => ['If-Match' => 'W/' . header($changed, 'ETag')]),
        412, 'revision_mismatch', 'a weak one');
    is_problem(rest('PATCH', "/members/$member", body => { name => 'X' }, headers => ['If-Match' => '"x"']),
        412, 'revision_mismatch', 'one that no revision has');
    is_problem(rest('PATCH', "/members/$member", body => { name => 'X' }, headers => ['If-Match' => $changed->{json}{revision}]),
        400, 'invalid_request', 'one without quotes');
    is_problem(rest('PATCH', "/members/$member", body => { name => 'X' }, headers => ['If-None-Match' => '*']),
        400, 'invalid_request', 'a condition that is none of a change');
    is(rest('GET', "/members/$member")->{json}{name}, 'Ada L.', 'none of them changed anything');
    is(rest('PATCH', "/members/$member", body => { name => 'A', member => $member }, headers => ['If-Match' => '*'])->{status}, 200,
        'any revision, and the member said again');
    is_problem(rest('PATCH', "/members/$member", body => { name => 'X', member => 'owner@example.org' }), 400, 'invalid_request',
        'another member in the body');
    is(rest('POST', "/members/$member/suspend")->{json}{state}, 'suspended', 'a POST needs no body');
    is_problem(rest('POST', '/members', body => { email => 'ada@example.org' }), 409, 'conflict', 'the email again');
    my $revision = rest('GET', "/members/$member")->{json}{revision};
    is_problem(rest('DELETE', "/members/$member", headers => ['If-Match' => '"1"']), 412, 'revision_mismatch', 'removed with an old ETag');
    is(rest('DELETE', "/members/$member?erase=true", headers => ['If-Match' => qq("$revision")])->{status}, 200, 'removed');
    is(rest('GET', "/members/$member")->{json}{state}, 'removed', 'it is');
    is_problem(rest('GET', '/members/mem_none'), 404, 'not_found', 'nobody');
};

subtest 'a secret operation works here, and its token at once' => sub {
    my $made = rest('POST', '/grants', body => { member => 'member@example.org', client => 'rest', scopes => ['mcp:read'] });
    is($made->{status}, 201, 'a grant is made');
    like($made->{json}{token}, qr/^mcp_/, 'with its token');
    is(header($made, 'Location'), "$API/grants/$made->{json}{grant}", 'and its place');
    is(rest('GET', '/whoami', token => $made->{json}{token})->{json}{email}, 'member@example.org', 'which lets the member in');
    ok(!exists rest('GET', "/grants/$made->{json}{grant}")->{json}{token}, 'and is shown no more');
    is(rest('DELETE', "/grants/$made->{json}{grant}")->{status}, 200, 'revoked');
    my $before = ($stack->audit)[-1]{audit_id};
    is_problem(rest('GET', '/whoami', token => $made->{json}{token}), 401, 'grant_revoked', 'the next call');
    my @rows = $stack->audit(after => $before);
    is_deeply([map { "$_->{surface} $_->{operation} $_->{outcome} $_->{error_code}" } grep { $_->{surface} eq 'rest' } @rows],
        ['rest whoami__get denied grant_revoked'], 'left one row');
};

subtest 'what is missing is named' => sub {
    my $answer = rest('GET', '/members', token => $token{member});
    is_problem($answer, 403, 'permission_denied', 'a permission');
    is($answer->{json}{permission}, 'member:read', 'which');
    is($answer->{json}{audit}, header($answer, 'MCP-Audit'), 'and the row');
    ok(!header($answer, 'WWW-Authenticate'), 'no scope would help');
    my $narrow = $stack->grant('owner@example.org', 'mcp:read')->{token};
    is(rest('GET', '/members', token => $narrow)->{status}, 200, 'mcp:read reads');
    $answer = rest('DELETE', '/members/nobody', token => $narrow);
    is_problem($answer, 403, 'insufficient_scope', 'a scope');
    my $challenge = challenge($answer);
    is_deeply($challenge->{error}, ['insufficient_scope'], 'the challenge says so');
    is_deeply($challenge->{scope}, ['mcp:destructive'], 'and which');
    is_deeply($answer->{json}{scopes}, ['mcp:destructive'], 'the body too');
    is(rest('GET', '/audit?limit=1', token => $token{auditor})->{status}, 200, 'an Auditor, who may run no tool, works here');
};

subtest 'pages follow one another by Link' => sub {
    my ($path, %seen, $pages) = ('/members?limit=2&state=active');
    while (defined $path && ++$pages < 10) {
        my $answer = rest('GET', $path);
        is($answer->{status}, 200, "page $pages") or last;
        cmp_ok(scalar @{ $answer->{json}{items} }, '<=', 2, 'at most two items');
        $seen{ $_->{member} }++ for @{ $answer->{json}{items} };
        my $link = header($answer, 'Link');
        is(defined $link ? 1 : 0, defined $answer->{json}{next_cursor} ? 1 : 0, 'a Link where there is another page');
        ($path) = defined $link ? $link =~ m{^<\Q$API\E(/members\?limit=2&state=active&cursor=\S+)>; rel="next"$} : ();
        ok(!defined $link || defined $path, 'which keeps the other parameters') or diag($link);
    }
    is(scalar(keys %seen), scalar @{ rest('GET', '/members?state=active')->{json}{items} }, 'together they are all');
    is_deeply([grep { $seen{$_} > 1 } keys %seen], [], 'each once');
    is_problem(rest('GET', '/members?cursor=bogus'), 400, 'invalid_request', 'a cursor of nobody');
};

subtest 'another method is told which there are' => sub {
    my %allow = ('/members' => 'GET, HEAD, POST, OPTIONS', '/whoami' => 'GET, HEAD, OPTIONS', '/members/x/suspend' => 'POST, OPTIONS',
        '/openapi.json' => 'GET, HEAD, OPTIONS');
    for my $path (sort keys %allow) {
        for my $method (qw(PUT BREW TRACE)) {
            my $answer = rest($method, $path);
            is_problem($answer, 405, 'invalid_request', "$method $path");
            is(header($answer, 'Allow'), $allow{$path}, "$method $path: Allow");
        }
    }
};

subtest 'malformed requests are told what to change' => sub {
    my $deep = '{"name":' . '[' x 70 . ']' x 70 . '}';
    my @cases = (
        # method, path, how, status, code, what the detail says
        ['POST', '/members', { body => '{"email":' }, 400, 'invalid_request', qr/JSON/],
        ['POST', '/members', { body => '{"email":"a@b.c","email":"x@y.z"}' }, 400, 'invalid_request', qr/doubled keys/],
        ['POST', '/members', { body => '[]' }, 400, 'invalid_request', qr/must be a JSON object/],
        ['POST', '/members', { body => '"x"' }, 400, 'invalid_request', qr/object/],
        ['POST', '/members', { body => "\xff" }, 400, 'invalid_request', qr/UTF-8/],
        ['POST', '/members', { body => $deep }, 400, 'invalid_request', qr/levels/],
        ['POST', '/members', { body => {} }, 400, 'invalid_request', qr/email/],
        ['POST', '/members', {}, 400, 'invalid_request', qr/email/],
        ['POST', '/members', { body => { email => 'a@b.c', nonsense => 1 } }, 400, 'invalid_request', qr/nonsense|additional/],
        ['POST', '/members', { body => { email => 7 } }, 400, 'invalid_request', qr/email/],
        ['POST', '/members?email=a@b.c', { body => {} }, 400, 'invalid_request', qr/'email' is unknown/],
        ['POST', '/members', { body => '{}', type => 'text/plain' }, 415, 'invalid_request', qr/application\/json/],
        ['POST', '/members', { body => 'email=x', type => 'application/x-www-form-urlencoded' }, 415, 'invalid_request', qr/application\/json/],
        ['POST', '/members', { body => '{}', type => undef }, 415, 'invalid_request', qr/Content-Type/],
        ['POST', '/members', { body => '{"name":"' . 'x' x 66000 . '"}' }, 413, 'too_large', qr/65536 bytes/],
        ['POST', '/members', { body => '{}', headers => ['If-Match' => '"1"'] }, 400, 'invalid_request', qr/If-Match/],
        ['GET', '/members', { body => '{}' }, 400, 'invalid_request', qr/takes no body/],
        ['DELETE', '/members/x', { body => '{}' }, 400, 'invalid_request', qr/takes no body/],
        ['GET', '/whoami', { headers => [Accept => 'text/html'] }, 406, 'invalid_request', qr/application\/json/],
        ['GET', '/members?limit=two', {}, 400, 'invalid_request', qr/limit must be an integer/],
        ['GET', '/members?limit=0', {}, 400, 'invalid_request', qr/limit/],
        ['GET', '/members?limit=1&limit=2', {}, 400, 'invalid_request', qr/'limit' stands twice/],
        ['GET', '/members?limt=1', {}, 400, 'invalid_request', qr/'limt' is unknown/],
        ['GET', '/members?state=asleep', {}, 400, 'invalid_request', qr/state/],
        ['GET', '/members?query=%', {}, 400, 'invalid_request', qr/percent-encoded/],
        ['GET', '/members?query=%00', {}, 400, 'invalid_request', qr/percent-encoded/],
        ['GET', '/members/x?limit=1', {}, 400, 'invalid_request', qr/'limit' is unknown/],
        ['GET', '/members/%ff', {}, 400, 'invalid_request', qr/UTF-8/],
        ['GET', '/members/a%0ab', {}, 400, 'invalid_request', qr/control character/],
        ['GET', '/members/' . 'x' x 300, {}, 400, 'invalid_request', qr/member/],
        ['GET', '/settings/no.such', {}, 404, 'not_found', qr/./]
    );
    for my $case (@cases) {
        my ($method, $path, $how, $status, $code, $detail) = @$case;
        my $answer = rest($method, $path, %$how);
        my $name = substr("$method $path", 0, 60) . (defined $how->{body} && !ref $how->{body} ? ' ' . substr $how->{body}, 0, 30 : q());
        is_problem($answer, $status, $code, $name);
        like($answer->{json}{detail} || q(), $detail, "$name: says why");
    }
    my $chunked = $client->raw("POST $API/members HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $token{owner}\r\nContent-Type: application/json\r\n"
        . "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" . sprintf("%x\r\n%s\r\n", 66000, 'x' x 66000) . "0\r\n\r\n");
    is($chunked->{status}, 413, 'a chunked body is bounded too');
};

subtest 'values come as they were said' => sub {
    is(rest('PUT', '/settings/collapse.mode', body => { value => 'never' })->{json}{value}, 'never', 'a setting');
    is(rest('GET', '/settings/collapse%2Emode')->{json}{value}, 'never', 'its key encoded');
    my $list = rest('GET', '/members?query=%6Fwner%40example&limit=5')->{json}{items};
    is_deeply([map { $_->{email} } @$list], ['owner@example.org'], 'a query string is decoded');
    is(rest('DELETE', '/settings/collapse.mode')->{status}, 200, 'unset');
    is(rest('PUT', '/settings/collapse.threshold', body => { value => 12 })->{json}{value}, 12, 'a number');
    rest('DELETE', '/settings/collapse.threshold');
};

subtest 'one row for each attempt, and no value in it' => sub {
    my $before = ($stack->audit)[-1]{audit_id};
    rest('GET', '/members?query=s3cretvalue');
    rest('POST', '/members', body => { email => 's3cretvalue' });
    rest('POST', '/members/s3cretvalue/suspend');
    rest('GET', '/members?limt=s3cretvalue');    # refused at the door: nothing was attempted
    my @rows = grep { $_->{surface} eq 'rest' } $stack->audit(after => $before);
    is_deeply([map { "$_->{operation} $_->{outcome}" } @rows], ['members__list ok', 'members__create error', 'members__suspend error'],
        'three attempts, three rows');
    is_deeply([map { join q(,), @{ $_->{arg_names} } } @rows], [qw(query email member)], 'names of arguments');
    unlike(MCP::Json::encode(\@rows), qr/s3cretvalue/, 'no value');
    my $traced = rest('GET', '/whoami', headers => [traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01']);
    my ($row) = grep { $_->{audit_id} eq header($traced, 'MCP-Audit') } $stack->audit(after => $before);
    is($row->{trace_id}, '0af7651916cd43dd8448eb211c80319c', 'the trace id is the caller\'s');
};

subtest 'openapi.json describes all of it' => sub {
    my $answer = rest('GET', '/openapi.json', token => $token{member});
    is($answer->{status}, 200, 'for everybody with a token');
    my $etag = header($answer, 'ETag');
    like($etag, qr/^"[0-9a-f]{64}"$/, 'with an ETag');
    is(rest('GET', '/openapi.json', headers => ['If-None-Match' => $etag])->{status}, 304, 'If-None-Match: 304');
    is(rest('HEAD', '/openapi.json')->{status}, 200, 'HEAD');
    my $document = $answer->{json};
    is($document->{openapi}, '3.1.0', 'OpenAPI 3.1');
    is_deeply($document->{servers}, [{ url => $API }], 'of this location');
    my @listed = sort map { my $path = $_; map { $document->{paths}{$path}{$_}{operationId} } keys %{ $document->{paths}{$path} } } keys %{ $document->{paths} };
    my $rows = $stack->policyd->admin('rpc.describe')->{result};
    is_deeply(\@listed, [sort map { $_->{name} } @$rows], 'every operation is there');
    my @dangling;
    my @left = ($document);
    while (@left) {
        my $value = shift @left;
        if (ref $value eq 'HASH') {
            push @left, values %$value;
            next if ref $value->{'$ref'} || !defined $value->{'$ref'};
            my $at = $document;
            $at = ref $at eq 'HASH' ? $at->{$_} : undef for split m{/}, $value->{'$ref'} =~ s{^#/}{}r;
            push @dangling, $value->{'$ref'} if !defined $at;
        } elsif (ref $value eq 'ARRAY') { push @left, @$value }
    }
    is_deeply(\@dangling, [], 'every reference leads somewhere');
SKIP: {
        my $modules = MCP::Build::node_modules();
        my ($package) = grep { defined $modules && -d "$modules/$_" } '@seriousme/openapi-schema-validator', '@readme/openapi-parser';
        skip 'no validator of OpenAPI is installed', 1 if !defined $package;
        my $file = $stack->root->path('openapi.json');
        MCP::Root::write_file($file, $answer->{body});
        MCP::Root::write_file(MCP::Node::folder() . '/openapi.mjs', $package =~ /seriousme/ ? <<'EOF' : <<'EOF2');
import { Validator } from '@seriousme/openapi-schema-validator';
import { readFileSync } from 'node:fs';
const answer = await new Validator().validate(JSON.parse(readFileSync(process.argv[2], 'utf8')));
console.log(JSON.stringify(answer));
EOF
import { validate } from '@readme/openapi-parser';
import { readFileSync } from 'node:fs';
console.log(JSON.stringify(await validate(JSON.parse(readFileSync(process.argv[2], 'utf8')))));
EOF2
        my ($status, $data, $said) = MCP::Node::script('openapi.mjs', $file);
        ok($status == 0 && ref $data && $data->{valid}, "$package finds it valid") or diag($said, MCP::Json::encode($data));
    }
};

subtest 'the configuration is checked' => sub {
    my $module = MCP::Build::module();
    my $httpd = MCP::Httpd->new(root => $stack->root, name => 'checked', mpm => 'event');
    my $link = sprintf qq(LoadModule mcp_module "%s"\nMCPPolicyEndpoint "%s"\nMCPPolicyKey "%s"\n), $module, $stack->policyd->endpoint,
        $stack->policyd->key;
    my ($is_taken, $said) = $httpd->takes("$link<Location \"/api/v1\">\nMCPApi On\n</Location>\n");
    is($is_taken, 0, 'MCPApi alone is refused');
    like($said, qr/MCP0103: .*add MCPResource/, 'and told what to add');
    ($is_taken, $said) = $httpd->takes("$link<Location \"/api/v1\">\nMCPApi On\nMCPResource https://mcp.example.org/mcp\n</Location>\n");
    is($is_taken, 1, 'with MCPResource it is taken') or diag($said);
    ($is_taken, $said) = $httpd->takes("$link<Location \"/mcp\">\nMCPEndpoint On\n</Location>\n<Location \"/api/v1/\">\nMCPApi On\n</Location>\n");
    is($is_taken, 1, 'and so it is beside an endpoint') or diag($said);
    ($is_taken, $said) = $httpd->takes("$link<Directory \"/\">\nMCPApi On\n</Directory>\n");
    is($is_taken, 0, 'in a <Directory> it is refused');
    like($said, qr/belongs into <Location/, 'and told where it belongs');
    ($is_taken, $said) = $httpd->takes("$link<Location \"/api/v1\">\nMCPApi Maybe\n</Location>\n");
    is($is_taken, 0, 'another word is refused');
    ($is_taken, $said) = $httpd->takes("LoadModule mcp_module \"$module\"\n<Location \"/api/v1\">\nMCPApi On\nMCPResource https://x.example/mcp\n</Location>\n");
    like($said, qr/MCP0101/, 'it needs policyd');
};

subtest 'another path, and the two side by side' => sub {
    $stack->reconfigure(server => <<'EOF');
MCPPolicyTimeout 1s
<Location "/mcp/admin/">
    MCPApi On
    MCPMaxBody 1K
</Location>
EOF
    ok($stack->gateway->graceful, 'the configuration changes');
    # children of the generation before answer as long as they live
    MCP::Net::wait_for(sub { rest('GET', q(), absolute => '/mcp/admin/whoami')->{status} == 200 && rest('GET', '/whoami')->{status} == 404 });
    my $answer = rest('GET', q(), absolute => '/mcp/admin/whoami');
    is($answer->{status}, 200, 'below an endpoint\'s path');
    is_deeply(rest('GET', q(), absolute => '/mcp/admin/openapi.json')->{json}{servers}, [{ url => '/mcp/admin' }], 'and says so itself');
    my $made = rest('POST', q(), absolute => '/mcp/admin/members', body => { email => 'eve@example.org' });
    is(header($made, 'Location'), "/mcp/admin/members/$made->{json}{member}", 'in Location too');
    is_problem(rest('POST', q(), absolute => '/mcp/admin/members', body => '{"name":"' . 'x' x 2000 . '"}'), 413, 'too_large', 'MCPMaxBody holds');
    is($client->discover->{status}, 200, 'the endpoint is still there');
    is(rest('GET', '/whoami')->{status}, 404, 'the old path is not');
};

subtest 'without policyd it is 503, in time' => sub {
    $stack->policyd->stop;
    for my $request (['GET', '/whoami'], ['POST', '/members', body => { email => 'late@example.org' }], ['GET', '/nothing'], ['GET', '/openapi.json']) {
        my ($method, $path, %how) = @$request;
        my $began = time;
        my $answer = rest($method, q(), %how, absolute => "/mcp/admin$path");
        is_problem($answer, 503, 'policy_unavailable', "$method $path");
        like(header($answer, 'Retry-After'), qr/^[1-9]$/, "$method $path: Retry-After");
        cmp_ok(time - $began, '<', 6, "$method $path: in time");
    }
    $stack->policyd->start;
    is(rest('GET', q(), absolute => '/mcp/admin/whoami')->{status}, 200, 'and back by itself');
    isnt($stack->policyd->ctl_refusal(qw(members get late@example.org)), undef, 'nothing was made meanwhile');
};

$stack->end(expected => ['MCP0302']);

done_testing();
