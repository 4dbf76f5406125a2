#!/bin/sh
# Every test: unit and property tests, doc tests, and the tests of real processes.
set -eu
cd "$(dirname "$0")/.."
scripts/progress.sh "Building everything" cargo build --workspace --bins --tests --locked
scripts/stage-plugins.sh debug
cargo test --workspace --doc --locked --quiet
cargo nextest run --workspace --locked "$@"
scripts/test-unprivileged.sh
