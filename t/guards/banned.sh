#!/bin/sh
# What must not stand in the sources: functions without bounds or with a hidden state, a second place that allows, a
# statement that changes the trail, a foreign library's call outside of its door, inserts into JSON that don't steal.
exec perl -I"${top_srcdir:-$(dirname "$0")/../..}/t/lib" -x "$0" "$@"
#!perl
use strict;
use warnings;
use MCP::Guard;

my @sources = map { files($_, qr/\.[ch]$/) } qw(proto mod_mcp policyd);
my (%code, %strings, %bare);
for my $file (@sources) {
    $code{$file} = uncomment(slurp($file));
    $strings{$file} = join "\n", $code{$file} =~ /"((?:\\.|[^"\\\n])*)"/g;
    ($bare{$file} = $code{$file}) =~ s/"(?:\\.|[^"\\\n])*"/""/g;
}

# Lines of a file where something stands, as sentences.
sub places {
    my ($what, $pattern, @where) = @_;
    my @found;
    for my $file (@where) {
        my $number = 0;
        for my $line (split /\n/, $bare{$file}) {
            $number++;
            push @found, "$file:$number " . sprintf($what, $1) while $line =~ /$pattern/g;
        }
    }
    return @found;
}

# Bodies of the functions of a file, by name.
sub functions {
    my ($file) = @_;
    my %body;
    $body{$1} = $2 while $bare{$file} =~ /^[a-z][^\n;=]*?\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}/gms;
    return %body;
}

# --- functions --------------------------------------------------------------------

my @banned = qw(strcpy strcat sprintf vsprintf strtok atoi atol atoll atof gets alloca system popen rand srand abort
    setlocale strncpy strncat scanf sscanf fscanf mktemp tmpnam tempnam vfork putenv setenv unsetenv);
my $names = join '|', @banned;
ok('no banned function is called', places('calls %s()', qr/(?<![\w.>])($names)\s*\(/, @sources));
ok('no assignment hides in a condition',
    places('assigns in a condition: %s', qr/\b(?:if|while)\s*\((?:[^;{}"]*[(&|!\s])?(\w+ = [^=;]+)\)/, @sources));
ok('inserts into JSON steal',
    places('%s() takes no reference over', qr/\b(json_object_set|json_object_set_nocheck|json_array_append|json_array_set|json_array_insert)\s*\(/, @sources));
# Two places read what a strict reader has refused or what we wrote ourselves, and keep nothing of it.
my %rereads = map { $_ => 1 } 'mod_mcp/mcp_rpc.c parse_trouble', 'mod_mcp/mcp_template_value.c real_text';
my @lenient;
for my $file (@sources) {
    my %body = functions($file);
    for my $name (sort keys %body) {
        while ($body{$name} =~ /\bjson_load(?:s|b|f|fd|_file|_callback)?\s*\(([^;]*)\)/g) {
            my $flags = $1;
            $flags =~ s/\b([A-Z_]*FLAGS)\b/$bare{$file} =~ m{^#define $1\s+(.*)$}m ? $1 : ''/e;
            push @lenient, "$file: $name() reads without JSON_REJECT_DUPLICATES"
                if $flags !~ /JSON_REJECT_DUPLICATES/ && !delete $rereads{"$file $name"};
        }
    }
}
ok('JSON is read strictly', @lenient, map { "$_() does not read any more: take it off the guard's list" } sort keys %rereads);
ok('no format comes from data', places('%s() gets a format that is no text of the source',
        qr/\b(pd_log|ap_log_r?error|syslog|printf|apr_psprintf)\s*\(\s*(?:[a-z_]+(?:->\w+)*\s*,\s*)?(?:fmt|format|text|message)\s*\)/, @sources));

# --- deciding ---------------------------------------------------------------------

my $decide = 'policyd/pd_decide.c';
my %body   = $code{$decide} ? functions($decide) : bail("there is no $decide");
my $allow  = qr/(?:->|\.)code\s*=\s*MCP_CODE_NONE\b/;
my @allows = map { my $name = $_; map { "$name()" } $body{$name} =~ /$allow/g } sort keys %body;
my @elsewhere = grep { $_ ne 'decide()' } @allows;
$body{decide} or bail("$decide has no decide()");
ok('a call is allowed in one place, decide()', (@allows == 1 ? () : 'it is allowed at ' . @allows . ' places'),
    (map { "$_ allows" } @elsewhere),
    ((() = $bare{$decide} =~ /$allow/g) == @allows ? () : 'a place is in no function'));
ok('the verdict starts as denied',
    ($body{decide} =~ /\A(?:(?!=\s*MCP_CODE_NONE).)*?->code = MCP_CODE_INTERNAL;/s ? () : 'decide() does not begin with a denial'),
    (($body{attempt_new} // '') =~ /->code = MCP_CODE_INTERNAL;/ ? () : 'attempt_new() does not deny'),
    ({ functions('policyd/pd_access.c') }->{work_new} // '') =~ /->code = MCP_CODE_INTERNAL;/ ? () : 'work_new() of pd_access.c does not deny');

# --- the trail --------------------------------------------------------------------

my @trail = grep { m{^policyd/pd_trail\w*\.c$} } @sources;
@trail >= 2 or bail('pd_trail.c and pd_trail_read.c are not there');
ok('the trail is only appended to',
    map { my $file = $_; map { "$file says $_" } $strings{$file} =~ /\b(UPDATE|DELETE|REPLACE|DROP|TRUNCATE|ALTER)\b/gi } @trail);

# --- doors ------------------------------------------------------------------------

# file => libraries, from the list of layers
my %door;
for my $line (lines('t/guards/layers.txt')) {
    my (undef, $file, @words) = split ' ', $line =~ s/#.*//r;
    $door{$file}{$_} = 1 for @words;
}
my %call = (
    sqlite => qr/\b(sqlite3_\w+)\s*\(/,
    zmq    => qr/\b(zmq_\w+)\s*\(/,
    curl   => qr/\b(curl_\w+)\s*\(/,
    sodium => qr/\b((?:sodium|crypto|randombytes)_\w+)\s*\(/,
    pcre2  => qr/\b(pcre2_\w+)\s*\(/,
);
for my $library (sort keys %call) {
    my @doors = grep { $door{$_}{$library} } sort keys %door;
    @doors or bail("layers.txt names no door of $library");
    my @closed = grep { !$door{$_}{$library} } @sources;
    ok("$library is called at its door", places('calls %s()', $call{$library}, @closed),
        map { "$_ is its door and calls nothing of it" } grep { ($bare{$_} // '') !~ $call{$library} } @doors);
}

# --- processes --------------------------------------------------------------------

ok('nothing starts a program', places('calls %s()', qr/(?<![\w.>])(fork|execl|execlp|execle|execv|execve|execvp|execvpe|posix_spawnp?|apr_proc_create)\s*\(/, @sources));
done();
