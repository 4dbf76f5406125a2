#!/bin/sh
# The compiler's version, formatting, clippy, licences and sources, docs: each without a warning.
set -eu
cd "$(dirname "$0")/../.."
. tests/scripts/tools.sh

# The oldest compiler that is promised is the one that everything is checked with.
toolchain=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
promised=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
case $toolchain in
  "$promised" | "$promised".*) ;;
  *) echo "lint.sh: rust-toolchain.toml has $toolchain, and rust-version in Cargo.toml is $promised" >&2; exit 1 ;;
esac
grep -q "/rust:$toolchain-" deploy/Containerfile || {
  echo "lint.sh: deploy/Containerfile does not build with Rust $toolchain" >&2
  exit 1
}

cargo fmt --all --check
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
cargo_tool deny
# Without advisories: their database is not reachable everywhere this script runs.
cargo deny --locked --all-features check --hide-inclusion-graph licenses bans sources
