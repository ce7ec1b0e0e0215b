package Bench::Build;

# The programs that are measured: MCP_BUILD_DIR, or an optimised build made here. The sources are copied
# first, so that nothing is left in the tree and a tree that is built in place does no harm.

use strict;
use warnings;
use File::Path qw(make_path);
use MCP::Build;
use MCP::Policyd;
use MCP::Root;

# Things that a copy of the sources does not need, or that would make it look built.
my @left_out = qw(.git *.o *.lo *.la .libs .deps .dirstamp Makefile config.status config.log libtool node_modules
    ./build ./run autom4te.cache);

# Says what goes on; the caller sets it.
our $say = sub { };

sub run {
    my ($what, $dir, @command) = @_;
    my ($status, $out) = MCP::Policyd::capture({}, 'sh', '-c', 'cd "$0" && exec "$@"', $dir, @command);
    die "$what failed:\n" . substr($out, -4000) . "\n" if $status != 0;
    return $out;
}

sub cores {
    my $count = () = (MCP::Root::slurp('/proc/cpuinfo') || q()) =~ /^processor\s/gm;
    return $count || 1;
}

sub make_one {
    my $source = MCP::Build::source();
    my ($copy, $built) = map { "$source/build/bench/$_" } qw(src out);
    make_path($copy, $built);
    $say->('building with -O2 (build/bench)');
    run('copying the sources', $source, 'sh', '-c', 'tar cf - "$@" . | tar xf - -C "$0"', $copy,
        map { "--exclude=$_" } @left_out);
    run('autogen.sh', $copy, './autogen.sh') if !-x "$copy/configure";
    run('configure', $built, "$copy/configure", '--disable-tests', 'CFLAGS=-O2 -g') if !-e "$built/config.status";
    run('make', $built, 'make', '-j' . cores(), qw(libcore.la libpolicyd.la mod_mcp.la policyd/policyd policyd/policyctl));
    return $built;
}

# Settles which build is measured; dies where it is not one that a measurement is worth.
sub settle {
    $ENV{MCP_BUILD_DIR} = make_one() if !defined $ENV{MCP_BUILD_DIR};
    my $dir = MCP::Build::dir();
    die "$dir is built with sanitizers: name another by MCP_BUILD_DIR, or none\n" if MCP::Build::sanitized();
    my $flags = MCP::Build::config('CFLAGS');
    die "$dir is not optimised (CFLAGS=$flags): name another by MCP_BUILD_DIR, or none\n" if $flags !~ /-O[23s]/;
    return $flags;
}

# A program of t/bench.d, with these static libraries of the build.
sub program {
    my ($into, $name, @archives) = @_;
    my $source = MCP::Build::source();
    my $dir = MCP::Build::dir();
    my @libraries = qw(apr-util-1 apr-1 jansson libzmq libcurl libsodium libpcre2-8 sqlite3);
    my @flags = split ' ', run('pkg-config', '/', 'pkg-config', '--cflags', '--libs', @libraries);
    my @system = map { /^-I(.*)/ ? ('-isystem', $1) : () } @flags;
    run("building $name", '/', MCP::Build::config('CC'), qw(-std=gnu11 -O2 -D_GNU_SOURCE), "-I$source", @system,
        (grep { !/^-[IlL]/ } @flags), '-o', $into, "$source/t/bench.d/$name.c",
        (map { "$dir/.libs/$_.a" } @archives), (grep { /^-[lL]/ } @flags), qw(-lpthread -lm));
    return $into;
}

# The driver of the link, and the filler of a store.
sub link_bench { return program($_[0], 'link_bench', qw(libcore libproto)) }
sub fill_store { return program($_[0], 'fill_store', qw(libpolicyd libproto)) }

1;
