#!/bin/sh
# Creates key.pem and chain.pem, the identity of every server in virtual time.
# They are committed: another key would change only bytes, but another length would change times.
set -eu
umask 022
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The two certificates of a site with RSA-2048 have about 1,430 and 1,140 bytes. Ed25519 keys and
# signatures are far shorter, so a private extension (an OID for examples) pads them.
padding() { head -c "$1" /dev/zero | od -An -v -tx1 | tr -d ' \n' | sed 's/../&:/g; s/:$//'; }

cat > "$work/ca.cnf" <<CNF
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign, cRLSign
2.999.1 = DER:04:82:$(printf '%04x' 760 | sed 's/../&:/; s/:$//'):$(padding 760)
CNF
cat > "$work/leaf.cnf" <<CNF
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:lab.test, DNS:*.lab.test
2.999.1 = DER:04:82:$(printf '%04x' 970 | sed 's/../&:/; s/:$//'):$(padding 970)
CNF

openssl genpkey -algorithm ed25519 -out "$work/ca.key"
openssl genpkey -algorithm ed25519 -out key.pem
openssl req -new -key "$work/ca.key" -subj "/O=SPDY lab, no authority/CN=Test only" -out "$work/ca.csr"
openssl req -new -key key.pem -subj "/O=SPDY lab, no authority/CN=lab.test" -out "$work/leaf.csr"
openssl x509 -req -in "$work/ca.csr" -signkey "$work/ca.key" -set_serial 1 -days 36500 \
    -extfile "$work/ca.cnf" -out "$work/ca.pem"
openssl x509 -req -in "$work/leaf.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -set_serial 2 -days 36500 \
    -extfile "$work/leaf.cnf" -out "$work/leaf.pem"
cat "$work/leaf.pem" "$work/ca.pem" > chain.pem
for name in leaf ca; do
    openssl x509 -in "$work/$name.pem" -outform DER | wc -c | sed "s/^/$name: /; s/\$/ bytes/"
done
