#!/bin/sh
# Soak test: runs a supervisor under mixed load with crashes and reloads, and checks that memory, descriptors and threads do not grow.
#   soak.sh MINUTES
set -eu
cd "$(dirname "$0")/../../.."
. tests/bench/scripts/bench-build.sh
exec target/release/talon-bench soak --minutes "$1" --json target/soak.json
