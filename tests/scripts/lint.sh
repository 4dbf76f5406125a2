#!/bin/sh
# Formatting, clippy, licences and sources, docs: each without a warning.
set -eu
cd "$(dirname "$0")/../.."
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
if ! cargo deny --version >/dev/null 2>&1; then
  echo "Installing cargo-deny (once, some minutes) …"
  cargo install --quiet --locked cargo-deny
fi
# Without advisories: their database is not reachable everywhere this script runs.
cargo deny --locked --all-features check --hide-inclusion-graph licenses bans sources
