#!/bin/sh
# Builds the Debian package, into target/package.
#   package.sh            with optimised programs (ten minutes or more)
#   package.sh debug      with a debug build: the same files, larger and slower
set -eu
cd "$(dirname "$0")/../.."
profile=${1:-release}
flags=
[ "$profile" = release ] && flags=--release
. tests/scripts/tools.sh
cargo_tool deb
# The programs must not contain paths of the build machine, so that other builders get identical ones.
if [ "$profile" = release ]; then
  RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/talon-source --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  CFLAGS="${CFLAGS:-} -ffile-prefix-map=$PWD=/talon-source -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  CXXFLAGS="${CXXFLAGS:-} -ffile-prefix-map=$PWD=/talon-source -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  export RUSTFLAGS CFLAGS CXXFLAGS
fi
# shellcheck disable=SC2086
tests/scripts/progress.sh "Building Talon ($profile)" cargo build $flags --locked -p talon -p talon-state -p talon-agent -p talon-gateway -p talon-mcp \
  -p talon-mcp-bridge -p talon-framed-bridge -p talon-service-bridge -p talon-top -p talon-watch \
  -p talon-lua -p webhook -p mail -p valkey -p telegram -p slack -p chat-webhook
mkdir -p target/package
tests/scripts/progress.sh "Packing" deploy/package/package-deb.sh "target/$profile" target/package
ls -l target/package/*.deb
