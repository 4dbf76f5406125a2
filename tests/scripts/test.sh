#!/bin/sh
# Every test: unit and property tests, doc tests, and the tests of real processes.
set -eu
began=$(date +%s)
cd "$(dirname "$0")/../.."
. tests/scripts/tools.sh
# The disk space of a clean build and of the tests' files; with less the run would fail somewhere in the middle.
needed=12
room=$(($(df -Pk . | awk 'NR == 2 { print $4 }') / 1024 / 1024))
if [ ! -x target/debug/talon ] && [ "$room" -lt "$needed" ]; then
  echo "test.sh: the disk of $(pwd) has $room GiB left, and building and running everything takes up to $needed: it may not get to the end" >&2
fi
tests/scripts/progress.sh "Building everything" cargo build --workspace --bins --tests --locked
plugins-examples/stage.sh debug
# A panic names its line; the backtrace of an asynchronous test is a hundred lines of the runtime that hide the message.
export RUST_BACKTRACE="${TALON_TEST_BACKTRACE:-0}"
cargo test --workspace --doc --locked --quiet
echo "Built, and documentation tested, after $(($(date +%s) - began)) s"
# Many tests wait for processes and clocks for half of their time: on two cores a third one has room.
cores=$(nproc)
export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$((cores > 3 ? cores : 3))}"
cargo nextest run --workspace --locked "$@"
echo "Tested after $(($(date +%s) - began)) s"
tests/scripts/test-unprivileged.sh
