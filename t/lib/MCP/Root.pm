package MCP::Root;

# A temporary directory that httpd's user and policyd's user can pass through, gone at the end of the test
# (kept with MCP_TEST_KEEP set).

use strict;
use warnings;
use Cwd qw(realpath);
use File::Path qw(remove_tree);
use File::Temp ();

# A socket's path may have 107 bytes.
sub parent {
    my $dir = realpath(defined $ENV{TMPDIR} && -d $ENV{TMPDIR} ? $ENV{TMPDIR} : '/tmp');
    return '/tmp' if length $dir > 50 || $dir =~ m{[^A-Za-z0-9/._-]};
    for (my $above = $dir; length $above; $above =~ s{/[^/]*\z}{}) {
        my @info = stat $above;
        return '/tmp' if !@info || !($info[2] & 0001);
    }
    return $dir;
}

sub new {
    my ($class) = @_;
    my $path = File::Temp::tempdir('mcp-t-XXXXXX', DIR => parent());
    chmod 0755, $path or die "$path: $!\n";
    return bless { path => $path, owner => $$ }, $class;
}

sub path { return @_ > 1 ? join q(/), $_[0]{path}, @_[1 .. $#_] : $_[0]{path} }

sub make {
    my ($self, $name, $mode) = @_;
    my $path = $self->path($name);
    if (!-d $path) {
        mkdir $path or die "$path: $!\n";
    }
    chmod(defined $mode ? $mode : 0755, $path) or die "$path: $!\n";
    return $path;
}

sub write {
    my ($self, $name, $text) = @_;
    return write_file($self->path($name), $text);
}

sub write_file {
    my ($path, $text) = @_;
    open my $out, '>:raw', $path or die "$path: $!\n";
    print {$out} $text;
    close $out or die "$path: $!\n";
    return $path;
}

# Bytes of a file, undef where there is none.
sub slurp {
    my ($path) = @_;
    open my $in, '<:raw', $path or return undef;
    local $/;
    my $text = <$in>;
    close $in;
    return $text;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local ($?, $@, $!);
    if ($ENV{MCP_TEST_KEEP}) {
        print STDERR "# kept $self->{path}\n";
        return;
    }
    remove_tree($self->{path}, { safe => 0, error => \my $errors });
    return;
}

1;
