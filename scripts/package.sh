#!/bin/sh
# Builds the Debian package, into target/package.
#   package.sh            of optimised programs (ten minutes and more)
#   package.sh debug      of those of a debug build: the same files, larger and slower
set -eu
cd "$(dirname "$0")/.."
profile=${1:-release}
flags=
[ "$profile" = release ] && flags=--release
if ! cargo deb --version >/dev/null 2>&1; then
  scripts/progress.sh "Installing cargo-deb (once, some minutes)" cargo install --quiet --locked cargo-deb
fi
# Nothing of where it was built is in what is handed out, so that others who build it get the same.
if [ "$profile" = release ]; then
  RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/talon-source --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  CFLAGS="${CFLAGS:-} -ffile-prefix-map=$PWD=/talon-source -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  export RUSTFLAGS CFLAGS
fi
# shellcheck disable=SC2086
scripts/progress.sh "Building Talon ($profile)" cargo build $flags --locked -p talon -p talon-state -p talon-agent -p talon-mcp \
  -p talon-mcp-bridge -p talon-framed-bridge -p talon-top
mkdir -p target/package
scripts/progress.sh "Packing" scripts/package-deb.sh "target/$profile" target/package
ls -l target/package/*.deb
