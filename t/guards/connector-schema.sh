#!/bin/sh
# The JSON Schema of connector files exists twice: as conf/connector.schema.json for editors and as bytes
# in policyd/pd_connector_schema.h for policyd. This guard compares them; with --write it makes the header.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
schema=$root/conf/connector.schema.json
header=$root/policyd/pd_connector_schema.h

generate() {
    cat <<'EOF'
/* The text of conf/connector.schema.json; made by t/guards/connector-schema.sh --write, do not edit. Defines
 * what pd_catalog.h declares; included by pd_catalog.c alone. An array of numbers, because a string of this
 * length is beyond what the C standard promises. */
#ifndef PD_CONNECTOR_SCHEMA_H
#define PD_CONNECTOR_SCHEMA_H

const char pd_catalog_file_schema[] = {
EOF
    od -An -v -tu1 -w20 "$schema" | sed -e 's/^ */    /' -e 's/  */, /g' -e 's/^, /    /' -e 's/$/,/'
    cat <<'EOF'
    0};

#endif
EOF
}

if [ ! -s "$schema" ]; then
    echo "Bail out! $schema is missing or empty"
    exit 1
fi
if [ "${1:-}" = --write ]; then
    generate > "$header"
    exit 0
fi
echo 1..2
failed=0
if [ -f "$header" ] && generate | cmp -s - "$header"; then
    echo "ok 1 - the header holds the schema's text"
else
    echo "not ok 1 - the header holds the schema's text"
    echo "# run t/guards/connector-schema.sh --write"
    failed=1
fi
# Plain char is signed on some machines: only ASCII keeps its value.
if LC_ALL=C grep -q '[^ -~]' "$schema"; then
    echo "not ok 2 - the schema is plain ASCII"
    failed=1
else
    echo "ok 2 - the schema is plain ASCII"
fi
exit $failed
