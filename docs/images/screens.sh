#!/bin/sh
# Regenerates the screenshots of `talon top` and `talon status` in docs/images from a running supervisor. Run it as root, so that
# plugins have their own uids, and in a delegated cgroup if possible, so that the kernel accounts their memory.
set -eu
cd "$(dirname "$0")/../.."
tests/scripts/progress.sh "Building Talon and its example plugins" cargo build --workspace --bins --locked
plugins-examples/stage.sh debug
cargo run --quiet --locked -p talon-tests --bin talon-screens -- docs/images
