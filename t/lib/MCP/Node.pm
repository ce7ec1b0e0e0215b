package MCP::Node;

# Scripts of t/js and programs of npm's packages, under the node that the packages bring.

use strict;
use warnings;
use File::Copy qw(copy);
use MCP::Build;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;

# Why nothing can be run here; undef if it can.
sub missing {
    return defined MCP::Build::node_modules()
        ? undef
        : 'the packages of t/package.json are not installed (t/run installs them)';
}

# A folder with our scripts beside the packages: imports are looked for beside the importing file.
my $folder;

sub folder {
    return $folder->path if $folder;
    $folder = MCP::Root->new;
    symlink MCP::Build::node_modules(), $folder->path('node_modules') or die "symlink: $!\n";
    for my $file (glob MCP::Build::source() . '/t/js/*.mjs') {
        my ($name) = $file =~ m{([^/]+)\z};
        copy($file, $folder->path($name)) or die "$file: $!\n";
    }
    $folder->make('home');
    return $folder->path;
}

# Clients keep things in their home: each test gives them an empty one. No proxy stands before a loopback.
sub env {
    my $modules = MCP::Build::node_modules();
    return (
        HOME     => folder() . '/home',
        PATH     => "$modules/.bin:$ENV{PATH}",
        NO_PROXY => '127.0.0.1,localhost',
        no_proxy => '127.0.0.1,localhost'
    );
}

# A script of ours to its end: (exit status, the JSON it printed or undef, what it said on stderr)
sub script {
    my ($name, @words) = @_;
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1, env => {env()} },
        'timeout', 60, MCP::Build::node(), folder() . "/$name", @words);
    my $data = eval { MCP::Json::decode($out) };
    return ($status, $data, defined $data ? $err : "$out$err");
}

# A program of node_modules/.bin to its end: (exit status, standard output, standard error)
sub program {
    my ($name, @words) = @_;
    return MCP::Policyd::capture({ apart => 1, env => {env()} }, 'timeout', 60, $name, @words);
}

1;
