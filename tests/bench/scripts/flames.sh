#!/bin/sh
# Flame graphs of the two call paths, with 1 KiB and 64 callers: driver, supervisor and plugin together, with perf and inferno.
#   flames.sh [SUFFIX]   into docs/images/flame-in-process[SUFFIX].svg and docs/images/flame-host[SUFFIX].svg
# TALON_BENCH_PROGRAMS names another target directory, to profile the programs of another commit.
set -eu
cd "$(dirname "$0")/../../.."
suffix=${1:-}
for tool in perf inferno-collapse-perf inferno-flamegraph; do
  command -v "$tool" >/dev/null || {
    echo "flames.sh: $tool is missing; apt-get install linux-perf, cargo install inferno" >&2
    exit 1
  }
done
. tests/bench/scripts/bench-build.sh
bench=$(pwd)/${CARGO_TARGET_DIR:-target}/release/talon-bench
case ${CARGO_TARGET_DIR:-} in /*) bench=$CARGO_TARGET_DIR/release/talon-bench ;; esac
[ -z "${TALON_BENCH_PROGRAMS:-}" ] || export CARGO_TARGET_DIR="$TALON_BENCH_PROGRAMS"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
mkdir -p docs/images
for way in in-process host; do
  echo "Looking at $way …"
  # The standard library and libc have no frame pointers, so stacks are unwound with DWARF; 16 KiB of each are enough for
  # the shallow stacks of 64 callers' tasks.
  # shellcheck disable=SC2016
  "$bench" load "$way" --callers 64 -- sh -c \
    'exec perf record -q -F 997 --call-graph dwarf,16384 -o "$0" -p "$PIDS" -- sleep 4' "$data/$way.perf"
  perf script --no-inline -i "$data/$way.perf" 2>/dev/null | inferno-collapse-perf >"$data/$way.folded"
  inferno-flamegraph --minwidth 0.2 --hash --title "One call, $way, 1 KiB, 64 callers${suffix:+ ($(echo "$suffix" | tr -d -))}" \
    "$data/$way.folded" >"docs/images/flame-$way$suffix.svg"
done
ls -l docs/images/flame-*"$suffix".svg
