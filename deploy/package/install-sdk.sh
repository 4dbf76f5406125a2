#!/bin/sh
# Installs the source of talon-sdk below SHARE, where `talon new rust` finds it: the SDK, the protos, and a workspace of
# both, with a lock file of the tested versions.
#   install-sdk.sh SHARE
set -eu
cd "$(dirname "$0")/../.."
share=$1
install -d "$share"
rm -rf "$share/sdk" "$share/proto"
cp -R sdk proto Cargo.lock "$share/"
awk '/^members = \[/ { print "members = [\"proto\", \"proto/wire\", \"sdk\", \"sdk/error-chain\", \"sdk/macros\"]"; skip = 1 }
  skip && /^\]/ { skip = 0; next }
  !skip' Cargo.toml >"$share/Cargo.toml"
