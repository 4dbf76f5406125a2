#!/bin/sh
# Benchmarks Talon against what it replaces: builds the optimised programs for the runs, and measures.
#   bench.sh full     everything, quiet and loaded, into docs/benchmarks.md and target/bench.json (some 30 minutes of measuring)
#   bench.sh quick    fewer and shorter rounds, into target/bench-quick.json (under 4 minutes)
#   bench.sh loaded   the same, and the ratios of the goals beside busy neighbours, into target/bench-loaded.json (some 7 minutes)
set -eu
cd "$(dirname "$0")/../../.."
kind=$1
. tests/bench/scripts/bench-build.sh
case $kind in
  full) exec target/release/talon-bench run --loaded --markdown docs/benchmarks.md --json target/bench.json ;;
  quick) exec target/release/talon-bench run --quick --json target/bench-quick.json ;;
  loaded) exec target/release/talon-bench run --quick --loaded --json target/bench-loaded.json ;;
  *) echo "bench.sh: full, quick or loaded, not $kind" >&2; exit 2 ;;
esac
