#!/bin/sh
# Makes ./configure from a checkout. A release tarball has it already.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake libtoolize pkg-config; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "autogen.sh: $tool is missing; on Debian: apt-get install autoconf automake libtool pkg-config" >&2
        exit 1
    }
done
mkdir -p m4 build-aux
exec autoreconf -fi
