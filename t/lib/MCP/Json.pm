package MCP::Json;

# JSON as the tests read and write it: UTF-8 bytes, sorted keys.

use strict;
use warnings;
use JSON::PP ();
use Exporter qw(import);

our @EXPORT_OK = qw(decode encode true false);

my $json = JSON::PP->new->utf8->canonical->allow_nonref;

sub decode { return $json->decode($_[0]) }
sub encode { return $json->encode($_[0]) }
sub true   { return JSON::PP::true() }
sub false  { return JSON::PP::false() }

1;
