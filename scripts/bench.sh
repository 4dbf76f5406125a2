#!/bin/sh
# What the guard, the jail and the guarded call cost, each side by side with what it replaces in the same run, on an optimised
# build. As root the jail once more as an ordinary user, whose namespaces cost more.
set -eu
cd "$(dirname "$0")/.."
scripts/progress.sh "Building optimised programs" cargo build --release --workspace --bins --locked
scripts/stage-plugins.sh release
target/release/talon-jail-bench
uid=54321 # Nobody's, as in test-unprivileged.sh.
as_nobody() { setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"; }
if [ "$(id -u)" = 0 ]; then
  echo
  if as_nobody test -x target/release/talon-jail-bench; then
    as_nobody target/release/talon-jail-bench
  else
    echo "SKIPPED the jail of an ordinary user: uid $uid may not read $(pwd)"
  fi
fi
echo
target/release/talon-bench
echo
# The sanitizer beside 60 replacements one after another, the whole guard stack without IO, the store beside SQLite alone;
# and how the sanitizer's cost grows with the text, up to 8 MiB of the worst inputs known.
cargo bench --locked -p talon-sanitize --bench sanitize -- --warm-up-time 1 --measurement-time 2
cargo bench --locked -p talon-guard --bench stack -- --warm-up-time 1 --measurement-time 2
cargo bench --locked -p talon-store --bench store
# What plugins get of their state over their sockets, beside SQLite alone on the same disk and a bare gRPC call.
cargo bench --locked -p talon-state --bench state
cargo run --release --locked -p talon-sanitize --example scaling
