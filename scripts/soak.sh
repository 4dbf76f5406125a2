#!/bin/sh
# A supervisor under mixed load with crashes and reloads, and whether its memory, descriptors and threads stay flat.
#   soak.sh MINUTES
set -eu
cd "$(dirname "$0")/.."
. scripts/bench-build.sh
exec target/release/talon-bench soak --minutes "$1" --json target/soak.json
