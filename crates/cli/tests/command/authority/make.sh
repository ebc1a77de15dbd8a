#!/bin/sh
# Makes the certificates: of an authority, and of a server at localhost that it vouches for, both valid from 2020 to 2120.
# The authority's key is thrown away.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index"
cat >"$work/settings" <<END
[ca]
default_ca = tests
[tests]
database = $work/index
new_certs_dir = $work
serial = $work/serial
default_md = sha256
policy = any
[any]
commonName = supplied
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
END
request() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -noenc -keyout "$1" -out "$work/request" -subj "/CN=$2"
}
sign() {
    openssl ca -batch -notext -create_serial -config "$work/settings" -startdate 20200101000000Z -enddate 21200101000000Z \
        -in "$work/request" -keyfile "$work/key" "$@"
}
request "$work/key" "An authority of the tests"
sign -selfsign -extensions authority -out authority.pem
request server.key localhost
sign -cert authority.pem -extensions server -out server.pem
