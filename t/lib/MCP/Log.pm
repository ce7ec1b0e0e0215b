package MCP::Log;

# The log gate: after each test no line at warning or above that the test did not name, no sanitizer report,
# no crash. Expected ids are regular expressions over the id ("MCP0301", "PD1003", "AH00127").

use strict;
use warnings;

my $TROUBLE = qr/exit signal|AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|: runtime error: |
    seg\ fault|Segmentation\ fault|stack\ smashing|double\ free|corrupted\ size|assertion\ .*failed|
    Assertion\ .*failed/xi;

# What httpd says at these levels in the ordinary life of a test.
my %usual = map { $_ => 1 } qw(
    AH00098
    AH00112
    AH00558
    AH10519
);
# AH00098: pid file overwritten, AH00112: empty document root, AH00558: server name, AH10519: h2 with prefork

sub lines {
    my ($file) = @_;
    open my $in, '<', $file or return ();
    my @lines = <$in>;
    close $in;
    return @lines;
}

# (level, id) of a line at warning or above; the empty list for any other line.
sub judge {
    my ($line) = @_;
    if ($line =~ /^\[[^\]]*\] \[\w*:(emerg|alert|crit|error|warn)\] /) {
        my $level = $1;
        my ($id) = $line =~ /\b(MCP\d{4}|AH\d{5})\b/;
        return ($level, defined $id ? $id : 'none');
    }
    if ($line =~ /^\S+ policyd\[\d+\] (error|warning) (PD\d+):/) {
        return ($1, $2);
    }
    return ();
}

# Lines of these files that no test may cause unasked. expected => [patterns over ids]
sub unexpected {
    my ($files, @expected) = @_;
    my @found;
    for my $file (@$files) {
        for my $line (lines($file)) {
            my (undef, $id) = judge($line);
            my $is_trouble = $line =~ $TROUBLE;
            next if !defined $id && !$is_trouble;
            if (!$is_trouble) {
                next if $usual{$id};
                next if grep { $id =~ /^(?:$_)$/ } @expected;
            }
            next if $is_trouble && grep { ref $_ eq 'Regexp' && $line =~ $_ } @expected;
            push @found, "$file: $line";
        }
    }
    return @found;
}

# How many lines have this text or pattern.
sub count {
    my ($file, $pattern) = @_;
    return scalar grep { $_ =~ $pattern } lines($file);
}

1;
