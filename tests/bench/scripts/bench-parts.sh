#!/bin/sh
# Benchmarks of single components, with criterion: the sanitizer compared with 60 successive replacements, and how its cost grows with
# the text (up to 8 MiB of the worst known inputs); the guard stack without IO; the store compared with plain SQLite; and plugins' state
# over their sockets compared with plain SQLite and a bare gRPC call.
set -eu
cd "$(dirname "$0")/../../.."
tests/scripts/progress.sh "Building talon-state" cargo build --release --locked -p talon-state --bin talon-state
cargo bench --locked -p talon-sanitize --bench sanitize -- --warm-up-time 1 --measurement-time 2
cargo bench --locked -p talon-guard --bench stack -- --warm-up-time 1 --measurement-time 2
cargo bench --locked -p talon-store --bench store
cargo bench --locked -p talon-bench --bench state
cargo run --release --locked -p talon-sanitize --example scaling
