#!/bin/sh
# What the guarded call costs, side by side with bare gRPC in the same run, on an optimised build.
set -eu
cd "$(dirname "$0")/.."
scripts/progress.sh "Building optimised programs" cargo build --release --workspace --bins --locked
scripts/stage-plugins.sh release
target/release/talon-bench
