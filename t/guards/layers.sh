#!/bin/sh
# Who may include whom. t/guards/layers.txt gives every source file its layer; this guard reads the includes.
#   W  wire: compiled by both programs     [proto/]
#   C  core of the module, without httpd   [mod_mcp/]
#   G  glue between the core and httpd     [mod_mcp/]
#   D  daemon and its client               [policyd/]
#   T  policyctl's rooms that reach outside [policyd/]
# An upper layer includes lower ones: G may include C and W, C may include W, D may include W, T may include D, C and W. A foreign library
# appears in the .c files that layers.txt names for it, and in no header of ours; APR and jansson are everywhere.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

my %below = (W => ['W'], C => [ 'C', 'W' ], G => [ 'G', 'C', 'W' ], D => [ 'D', 'W' ], T => [ 'T', 'D', 'C', 'W' ]);
my %folder = (W => 'proto', C => 'mod_mcp', G => 'mod_mcp', D => 'policyd', T => 'policyd');

# Libraries with a door, by header.
my @libraries = (
    [ zmq    => qr{^zmq} ],
    [ sqlite => qr{^sqlite3} ],
    [ sodium => qr{^sodium} ],
    [ curl   => qr{^curl/} ],
    [ pcre2  => qr{^pcre2} ],
    [ yaml   => qr{^yaml\.h} ],
    [ httpd  => qr{^(?:httpd|http_|ap_|util_|mpm_|mod_|scoreboard)} ],
);
# Everywhere: APR, jansson, the C library and POSIX. A header that is none of these has to be judged first.
my $common = qr{^(?:
    apr_\w+\.h | jansson\.h |
    (?:assert|ctype|errno|fenv|float|inttypes|limits|locale|math|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|
       stddef|stdint|stdio|stdlib|string|strings|time|wchar)\.h |
    (?:dirent|dlfcn|endian|fcntl|getopt|grp|malloc|netdb|poll|pthread|pwd|sched|semaphore|syslog|termios|unistd)\.h |
    (?:arpa/inet|netinet/in|netinet/tcp|net/if)\.h |
    sys/\w+\.h | linux/\w+\.h
)$}x;

# --- the list ---------------------------------------------------------------------

my (%tag, %doors, %is_pure, @bad);
for my $line (lines('t/guards/layers.txt')) {
    $line =~ s/\s*#.*//;
    next if $line !~ /\S/;
    my ($tag, $file, @words) = split ' ', $line;
    push(@bad, "not a line of this list: $line"), next if !defined $file || !$below{$tag};
    push @bad, "$file stands twice" if $tag{$file};
    push @bad, "$file is not in $folder{$tag}/, where $tag belongs" if $file !~ m{^\Q$folder{$tag}\E/[^/]+\.[ch]$};
    $tag{$file} = $tag;
    for my $word (@words) {
        if ($word eq 'pure') { $is_pure{$file} = 1 }
        elsif (grep { $_->[0] eq $word } @libraries) { $doors{$file}{$word} = 1 }
        else { push @bad, "$file: unknown word $word" }
    }
}
ok('layers.txt has a sound form', @bad);
my @sources = map { files($_, qr/\.[ch]$/) } qw(proto mod_mcp policyd);
ok('every source file has its layer, and every line its file', same(\@sources, [ keys %tag ], 'the tree', 'layers.txt'));

# --- the includes -----------------------------------------------------------------

my (@up, @doorless, @unknown, @headers, @own, @unused);
for my $file (grep { $tag{$_} } @sources) {
    my ($folder, $name) = $file =~ m{^(.*)/([^/]+)$};
    my $tag = $tag{$file};
    my $first;
    my %used;
    for my $line (split /\n/, uncomment(slurp($file))) {
        next if $line !~ /^\s*#\s*include\s+(["<])([^">]+)[">]/;
        my ($quote, $header) = ($1, $2);
        $first //= $header;
        if ($quote eq '"') {
            my $target = "$folder/$header";
            if ($header =~ m{/}) {
                ($target = $header) =~ s{^\.\./}{} or push @up, "$file: write ../FOLDER/FILE, not $header";
                push @up, "$file: $header is of its own folder" if $target =~ m{^\Q$folder\E/};
            }
            my $of = $tag{$target};
            if (!defined $of) { push @up, "$file includes $header, which is not there" }
            elsif (!grep { $_ eq $of } @{ $below{$tag} }) { push @up, "$file [$tag] includes $target [$of]" }
            next;
        }
        my ($library) = map { $_->[0] } grep { $header =~ $_->[1] } @libraries;
        if (!defined $library) {
            push @unknown, "$file includes <$header>" if $header !~ $common;
            next;
        }
        $used{$library} = 1;
        if ($library eq 'httpd') {
            push @doorless, "$file [$tag] includes <$header> of httpd" if $tag ne 'G';
        }
        elsif (!$doors{$file}{$library}) { push @doorless, "$file is no door of $library but includes <$header>" }
        elsif ($file =~ /\.h$/) { push @headers, "$file shows <$header> to whoever includes it" }
    }
    push @unused, map { "$file is named a door of $_ and does not include it" } grep { !$used{$_} } sort keys %{ $doors{$file} // {} };
    (my $own = $name) =~ s/\.c$/.h/;
    if ($name =~ /\.c$/ && $tag{"$folder/$own"} && ($first // '') ne $own) {
        push @own, "$file begins with " . ($first // 'nothing') . ", not with its own header";
    }
}
ok('no file includes a layer above its own, nor the other program', @up);
ok('a foreign library is included at its door alone',            @doorless, @unused);
ok('no header of ours shows a foreign library',                  @headers);
ok('every other header is of APR, jansson, the C library or POSIX', @unknown);
ok('a file begins with its own header, which so stands alone',    @own);

# A library's doors: one file a side, but for the two sockets of the daemon's link.
my %side = (W => 'both sides', C => 'the module', G => 'the module', D => 'the daemon');
my %open;
for my $file (sort keys %doors) {
    push @{ $open{"$_ in $side{$tag{$file}}"} }, $file for keys %{ $doors{$file} };
}
ok('a library has one door a side', map { "$_: @{ $open{$_} }" }
    grep { @{ $open{$_} } > ($_ eq 'zmq in the daemon' ? 2 : 1) } sort keys %open);

# Pure rooms take values and give values.
my @impure;
for my $file (sort keys %is_pure) {
    my $code = uncomment(slurp($file));
    $code =~ s/"(?:\\.|[^"\\\n])*"/""/g;
    push @impure, "$file calls $1()" while $code =~ /\b(
        f?open(?:at)? | read | write | fread | fwrite | fprintf | printf | puts | fputs | getenv | system |
        time | clock_gettime | gettimeofday | apr_time_now | apr_file_\w+ | apr_socket_\w+ | socket | connect |
        mcp_random | getrandom | random | pd_log | ap_log_\w+ | apr_thread_\w+ | pthread_\w+ | sleep | poll
    )\s*\(/gx;
}
keys %is_pure or bail('layers.txt names no pure room');
ok('pure rooms have no input, output, clock, randomness or log', @impure);
done();
