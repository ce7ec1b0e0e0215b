package MCP::Build;

# Where things are: sources, the built tree under test, httpd and its modules, npm's packages.

use strict;
use warnings;
use Cwd qw(realpath);
use File::Basename qw(dirname);

my $source = realpath(dirname(__FILE__) . '/../../..');
my ($build, %config, %apxs);

sub source { return $source }

# MCP_BUILD_DIR, or the first of the usual places that holds something built.
sub dir {
    return $build if defined $build;
    my @places = defined $ENV{MCP_BUILD_DIR} ? ($ENV{MCP_BUILD_DIR}) : ('.', "$source/build", $source);
    for my $place (@places) {
        next if !-x "$place/policyd/policyd" || !-e "$place/.libs/mod_mcp.so";
        $build = realpath($place);
        return $build;
    }
    die "nothing is built in @places: run t/run, or name the tree by MCP_BUILD_DIR\n";
}

sub policyd   { return dir() . '/policyd/policyd' }
sub policyctl { return dir() . '/policyd/policyctl' }
sub module    { return dir() . '/.libs/mod_mcp.so' }

# A value that configure found out.
sub config {
    my ($name) = @_;
    if (!%config) {
        my $file = dir() . '/config.status';
        open my $in, '<', $file or die "$file: $!\n";
        while (my $line = <$in>) {
            $config{$1} = $2 if $line =~ /^S\["(\w+)"\]="(.*)"$/;
        }
        close $in;
        die "$file holds no values\n" if !%config;
    }
    return $config{$name};
}

sub apxs {
    my ($name) = @_;
    if (!defined $apxs{$name}) {
        my $program = config('APXS');
        $apxs{$name} = `"$program" -q $name`;
        chomp $apxs{$name};
        die "$program -q $name says nothing\n" if $apxs{$name} eq q();
    }
    return $apxs{$name};
}

sub httpd   { return apxs('SBINDIR') . q(/) . apxs('PROGNAME') }
sub modules { return apxs('LIBEXECDIR') }

sub sanitized { return defined config('SANITIZE_TRUE') && config('SANITIZE_TRUE') eq q() }

# httpd itself is not built with sanitizers: a module that is needs their runtime before it. What httpd keeps
# until its end is no leak of ours.
sub httpd_env {
    return () if !sanitized();
    my @libraries = map { my $path = `gcc -print-file-name=$_`; chomp $path; $path } qw(libasan.so libubsan.so);
    return (
        LD_PRELOAD    => "@libraries",
        ASAN_OPTIONS  => 'detect_leaks=0:disable_coredump=1:handle_abort=1',
        UBSAN_OPTIONS => 'print_stacktrace=1'
    );
}

sub policyd_env {
    return () if !sanitized();
    return (
        ASAN_OPTIONS  => 'detect_leaks=1:disable_coredump=1:handle_abort=1',
        UBSAN_OPTIONS => 'print_stacktrace=1'
    );
}

# The folder of npm's packages and the node that they bring; undef where t/run has installed none.
sub node_modules {
    my @places = grep { defined } ($ENV{MCP_NODE_MODULES}, "$source/t/node_modules");
    for my $place (@places) {
        return realpath($place) if -x "$place/.bin/node";
    }
    return undef;
}

sub node { my $modules = node_modules(); return defined $modules ? "$modules/.bin/node" : undef }

1;
