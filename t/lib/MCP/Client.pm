package MCP::Client;

# An HTTP client that sends exactly the bytes it is told, and an MCP client over it whose every header can be
# forged. Core Perl only.

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);
use MCP::Json;

our $TIMEOUT = 30;    # seconds for one answer

my $PREFIX = 'io.modelcontextprotocol';

# url => http://127.0.0.1:PORT/mcp, token => bearer token, keep => 1 keeps the connection for the next request
sub new {
    my ($class, %given) = @_;
    my ($port, $path) = $given{url} =~ m{^http://127\.0\.0\.1:(\d+)(/.*)?$} or die "no loopback URL: $given{url}\n";
    return bless {
        url   => $given{url},
        port  => $port,
        path  => defined $path ? $path : '/',
        token => $given{token},
        keep  => $given{keep},
        id    => 0
    }, $class;
}

sub url   { return $_[0]{url} }
sub token { my ($self, @new) = @_; $self->{token} = $new[0] if @new; return $self->{token} }

# The same endpoint with another token.
sub with {
    my ($self, $token) = @_;
    return MCP::Client->new(url => $self->{url}, token => $token, keep => $self->{keep});
}

# --- HTTP ----------------------------------------------------------------------

sub connect {
    my ($self) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 10)
        or die "connect to $self->{port}: $!\n";
    binmode $socket;
    $socket->autoflush(1);
    $self->{socket} = $socket;
    $self->{buffer} = q();
    return $socket;
}

sub hang_up { my ($self) = @_; close $self->{socket} if $self->{socket}; delete $self->{socket}; return }

sub send_bytes {
    my ($self, $bytes) = @_;
    my $socket = $self->{socket} || $self->connect;
    local $SIG{PIPE} = 'IGNORE';
    my $sent = 0;
    while ($sent < length $bytes) {
        my $count = syswrite $socket, $bytes, length($bytes) - $sent, $sent;
        last if !defined $count;    # the peer has hung up: its answer may still be there
        $sent += $count;
    }
    return $sent;
}

# More bytes into the buffer; false at the end of the stream or of the patience.
sub fill {
    my ($self, $end) = @_;
    my $left = $end - time;
    return 0 if $left <= 0 || !IO::Select->new($self->{socket})->can_read($left);
    my $count = sysread $self->{socket}, $self->{buffer}, 65536, length $self->{buffer};
    return $count;
}

sub take_line {
    my ($self, $end) = @_;
    while ($self->{buffer} !~ /\n/) {
        $self->fill($end) or return undef;
    }
    $self->{buffer} =~ s/^(.*?)\r?\n//s;
    return $1;
}

sub take_bytes {
    my ($self, $count, $end) = @_;
    while (length $self->{buffer} < $count) {
        $self->fill($end) or last;
    }
    return substr $self->{buffer}, 0, $count, q();
}

sub take_chunked {
    my ($self, $end) = @_;
    my $body = q();
    while (1) {
        my $line = $self->take_line($end);
        return ($body, 0) if !defined $line || $line !~ /^([0-9a-fA-F]+)/;
        my $size = hex $1;
        if ($size == 0) {
            while (1) {    # trailers
                my $trailer = $self->take_line($end);
                return ($body, defined $trailer ? 1 : 0) if !defined $trailer || $trailer eq q();
            }
        }
        $body .= $self->take_bytes($size, $end);
        $self->take_line($end);
    }
}

# One answer: {status, reason, headers => {lower case => [values]}, body, is_whole}, undef if none came.
sub take_answer {
    my ($self, $method) = @_;
    my $end = time + $TIMEOUT;
    my $line = $self->take_line($end);
    return undef if !defined $line || $line !~ m{^HTTP/1\.[01] (\d{3})(?: (.*))?$};
    my %answer = (status => $1, reason => $2, headers => {}, body => q(), is_whole => 1);
    while (1) {
        $line = $self->take_line($end);
        return undef if !defined $line;
        last if $line eq q();
        my ($name, $value) = $line =~ /^([^:]+):\s*(.*?)\s*$/ or next;
        push @{ $answer{headers}{ lc $name } }, $value;
    }
    my ($length) = @{ $answer{headers}{'content-length'} || [] };
    my ($coding) = @{ $answer{headers}{'transfer-encoding'} || [] };
    if ($answer{status} =~ /^(?:1..|204|304)$/ || (defined $method && $method eq 'HEAD')) {
        return \%answer;
    } elsif (defined $coding && $coding =~ /chunked/i) {
        @answer{qw(body is_whole)} = $self->take_chunked($end);
    } elsif (defined $length) {
        $answer{body} = $self->take_bytes($length, $end);
        $answer{is_whole} = length $answer{body} == $length;
    } else {
        while ($self->fill($end)) { }
        $answer{body} = delete $self->{buffer};
        $self->{buffer} = q();
    }
    return \%answer;
}

# Sends bytes on a connection of their own and reads one answer.
sub raw {
    my ($self, $bytes, $method) = @_;
    $self->connect;
    $self->send_bytes($bytes);
    my $answer = $self->take_answer($method);
    $self->hang_up;
    return $answer;
}

# One request. headers: [name => value, ...], as they stand; Host, Content-Length and Connection are added
# where they are missing.
sub request {
    my ($self, $method, $path, $headers, $body) = @_;
    my @pairs = @{ $headers || [] };
    my %has;
    my $text = "$method $path HTTP/1.1\r\n";
    while (@pairs) {
        my ($name, $value) = splice @pairs, 0, 2;
        $has{ lc $name } = 1;
        $text .= "$name: $value\r\n";
    }
    $text .= "Host: 127.0.0.1:$self->{port}\r\n" if !$has{host};
    $text .= sprintf "Content-Length: %d\r\n", length $body
        if defined $body && !$has{'content-length'} && !$has{'transfer-encoding'};
    $text .= "Connection: close\r\n" if !$self->{keep} && !$has{connection};
    $text .= "\r\n" . (defined $body ? $body : q());
    $self->connect if !$self->{socket};
    $self->send_bytes($text);
    my $answer = $self->take_answer($method);
    my ($connection) = $answer ? @{ $answer->{headers}{connection} || [] } : ('close');
    $self->hang_up if !$self->{keep} || (defined $connection && $connection =~ /close/i);
    return $answer;
}

sub get { my ($self, $path, @headers) = @_; return $self->request('GET', $path, \@headers) }

# First value of a header of an answer.
sub header {
    my ($answer, $name) = @_;
    return $answer->{headers}{ lc $name } ? $answer->{headers}{ lc $name }[0] : undef;
}

# --- MCP -----------------------------------------------------------------------

# The envelope's _meta. version and capabilities as given; a value of undef leaves its key out.
sub meta {
    my (%given) = @_;
    my $version = exists $given{version} ? $given{version} : '2026-07-28';
    my $capabilities = exists $given{capabilities} ? $given{capabilities} : {};
    return {
        defined $version      ? ("$PREFIX/protocolVersion"    => $version)      : (),
        defined $capabilities ? ("$PREFIX/clientCapabilities" => $capabilities) : (),
        %{ $given{more} || {} }
    };
}

# Posts these bytes with the headers of a client: (Authorization, Content-Type, Accept) unless overridden by
# name with undef (left out) or a value; `headers` are appended as they stand.
sub post {
    my ($self, $body, %how) = @_;
    my @headers;
    my $token = exists $how{token} ? $how{token} : $self->{token};
    push @headers, Authorization => "Bearer $token" if defined $token;
    my $type = exists $how{content_type} ? $how{content_type} : 'application/json';
    push @headers, 'Content-Type' => $type if defined $type;
    my $accept = exists $how{accept} ? $how{accept} : 'application/json, text/event-stream';
    push @headers, Accept => $accept if defined $accept;
    push @headers, @{ $how{headers} || [] };
    my $answer = $self->request('POST', defined $how{path} ? $how{path} : $self->{path}, \@headers, $body);
    return undef if !defined $answer;
    if (defined header($answer, 'content-type') && header($answer, 'content-type') =~ m{^application/json\b}) {
        $answer->{json} = eval { MCP::Json::decode($answer->{body}) };
    } elsif (defined header($answer, 'content-type') && header($answer, 'content-type') =~ m{^text/event-stream\b}) {
        $answer->{events} = [events($answer->{body})];
        $answer->{json} = $answer->{events}[-1];
    }
    return $answer;
}

# The messages of an event stream.
sub events {
    my ($text) = @_;
    my @messages;
    for my $event (split /\r?\n\r?\n/, $text) {
        my @data = map { /^data: ?(.*)/ ? $1 : () } split /\r?\n/, $event;
        push @messages, MCP::Json::decode(join "\n", @data) if @data;
    }
    return @messages;
}

# A request of 2026-07-28. Overrides: id (JSON text), version (of the header; undef: none), meta (hash; undef:
# none), method_header, name_header (undef: none), and those of post().
sub mcp {
    my ($self, $method, $params, %how) = @_;
    my $id = defined $how{id} ? $how{id} : ++$self->{id};
    my %params = %{ $params || {} };
    my $meta = exists $how{meta} ? $how{meta} : meta();
    $params{_meta} = $meta if defined $meta;
    my $version = exists $how{version} ? $how{version} : '2026-07-28';
    my $method_header = exists $how{method_header} ? $how{method_header} : $method;
    my $name_header =
          exists $how{name_header}                                ? $how{name_header}
        : $method =~ m{^(?:tools/call|prompts/get)$}              ? $params{name}
        : $method eq 'resources/read'                             ? $params{uri}
        :                                                           undef;
    my @headers;
    push @headers, 'MCP-Protocol-Version' => $version if defined $version;
    push @headers, 'Mcp-Method' => $method_header     if defined $method_header;
    push @headers, 'Mcp-Name' => $name_header         if defined $name_header;
    my $body = sprintf '{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}', $id, MCP::Json::encode($method),
        MCP::Json::encode(\%params);
    return $self->post($body, %how, headers => [@headers, @{ $how{headers} || [] }]);
}

sub discover { my ($self, %how) = @_; return $self->mcp('server/discover', {}, %how) }
sub list     { my ($self, %how) = @_; return $self->mcp('tools/list', {}, %how) }

# arguments: a hash
sub call {
    my ($self, $name, $arguments, %how) = @_;
    return $self->mcp('tools/call', { name => $name, arguments => $arguments || {} }, %how);
}

# A request of an older revision: no envelope; version of the header (undef: none), session id.
sub legacy {
    my ($self, $method, $params, %how) = @_;
    my $id = defined $how{id} ? $how{id} : ++$self->{id};
    my @headers;
    push @headers, 'MCP-Protocol-Version' => $how{version} if defined $how{version};
    push @headers, 'Mcp-Session-Id' => $how{session}       if defined $how{session};
    my $body = sprintf '{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}', $id, MCP::Json::encode($method),
        MCP::Json::encode($params || {});
    return $self->post($body, %how, headers => [@headers, @{ $how{headers} || [] }]);
}

# Names of the tools that a list answers.
sub names { return map { $_->{name} } @{ $_[0]{json}{result}{tools} || [] } }

# The same without the operations of the control plane.
sub connected { return grep { !/^elaichi__/ } names($_[0]) }

# The text of a call's answer; what went wrong otherwise, for messages of tests.
sub text {
    my ($answer) = @_;
    return 'no answer' if !defined $answer;
    my $result = $answer->{json}{result};
    return "$answer->{status} $answer->{body}" if !$result;
    return join "\n", map { defined $_->{text} ? $_->{text} : "($_->{type})" } @{ $result->{content} || [] };
}

# The code of an in-band error; undef for a good answer.
sub code {
    my ($answer) = @_;
    my $result = $answer->{json}{result} || {};
    return undef if !$result->{isError};
    my $error = $result->{structuredContent} ? $result->{structuredContent}{error} : undef;
    return $error ? $error->{code} : 'error without a code';
}

1;
