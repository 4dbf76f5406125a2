#!/bin/sh
# Makes the pictures of `talon top` and `talon status` in docs/images anew, of a real supervisor at work. As root, so that the
# plugins have their own uids, and in a delegated cgroup if there is one, so that their memory is counted by the kernel.
set -eu
cd "$(dirname "$0")/.."
scripts/progress.sh "Building Talon and its example plugins" cargo build --workspace --bins --locked
scripts/stage-plugins.sh debug
cargo run --quiet --locked -p talon-tests --bin talon-screens -- docs/images
