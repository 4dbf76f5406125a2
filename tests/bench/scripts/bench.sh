#!/bin/sh
# Benchmarks Talon against what it replaces: builds the optimised programs for the runs, and measures.
#   bench.sh full     everything, into docs/benchmarks.md and target/bench.json (under 15 minutes of measuring)
#   bench.sh quick    fewer and shorter rounds, into target/bench-quick.json (under 2 minutes)
set -eu
cd "$(dirname "$0")/../../.."
kind=$1
. tests/bench/scripts/bench-build.sh
case $kind in
  full) exec target/release/talon-bench run --markdown docs/benchmarks.md --json target/bench.json ;;
  quick) exec target/release/talon-bench run --quick --json target/bench-quick.json ;;
  *) echo "bench.sh: full or quick, not $kind" >&2; exit 2 ;;
esac
