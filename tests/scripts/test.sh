#!/usr/bin/env bash
# Every test: unit and property tests, doc tests, and the tests of real processes.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/tools.sh
# The disk space of a clean build and of the tests' files; with less the run would fail somewhere in the middle.
needed=12
room=$(($(df -Pk . | awk 'NR == 2 { print $4 }') / 1024 / 1024))
if [ ! -x target/debug/talon ] && [ "$room" -lt "$needed" ]; then
  echo "test.sh: the disk of $(pwd) has $room GiB left, and building and running everything takes up to $needed: it may not get to the end" >&2
fi

# What runs in the background is a process group, so that what it started ends with it.
set -m
log=$(mktemp)
clean_up() {
  for group in $(jobs -p); do kill -- "-$group" 2>/dev/null || true; done
  rm -f "$log"
}
trap clean_up EXIT

# Packages for the tests come over the network, and the compiler needs the processors: neither waits for the other.
install() {
  tests/scripts/deps.sh test
  # The plugins that are not in Rust.
  plugins-examples/stage.sh debug csv-query counter-py hello-py language-py inbox-py counter-go hello-go length-go counter-node \
    hello-node redact-node
  echo "Installed what the tests need after $SECONDS s"
}
install </dev/null &
installation=$!
tests/scripts/progress.sh "Building everything" cargo build --workspace --bins --tests --locked </dev/null &
build=$!
# Each by its id: `wait -n` fails for a process that ended before.
failed=
wait "$build" || failed=" build"
wait "$installation" || failed="$failed installation"
[ -z "$failed" ] || {
  echo "test.sh: failed:$failed; it says why above" >&2
  exit 1
}
plugins-examples/stage.sh debug
echo "Built after $SECONDS s"

# A panic names its line; the backtrace of an asynchronous test is a hundred lines of the runtime that hide the message.
export RUST_BACKTRACE="${TALON_TEST_BACKTRACE:-0}"
# One crate after the other, each on one processor: beside the other tests, which come first.
nice -n 10 cargo test --workspace --doc --locked --quiet >"$log" 2>&1 </dev/null &
documentation=$!
set +m
# Many tests wait for processes and clocks for half of their time: on two cores a third one has room.
cores=$(nproc)
threads=${NEXTEST_TEST_THREADS:-$((cores > 3 ? cores : 3))}
failed=
NEXTEST_TEST_THREADS=$threads cargo nextest run --workspace --locked "$@" || failed=" tests"
wait "$documentation" || {
  failed="$failed documentation"
  cat "$log" >&2
}
echo "Tested after $SECONDS s"
[ -z "$failed" ] || {
  echo "Failed:$failed" >&2
  exit 1
}
tests/scripts/test-unprivileged.sh
