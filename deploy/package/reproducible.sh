#!/bin/sh
# Builds the programs twice, from two copies of the source in two directories, and compares the results. Ten minutes or more
# for each of the two.
#   reproducible.sh [PROFILE [PROGRAM …]]     release, or debug, which is quicker and says as much about paths and times; all
#                                             programs of the package, or these
set -eu
cd "$(dirname "$0")/../.."
profile=${1:-release}
flags=
[ "$profile" = release ] && flags=--release
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
[ $# -eq 0 ] || shift
programs=${*:-talon talon-state talon-agent talon-gateway talon-mcp talon-mcp-bridge talon-framed-bridge talon-service-bridge talon-top talon-watch talon-lua webhook mail valkey telegram slack chat-webhook}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/talon-reproducible.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
cargo_home=${CARGO_HOME:-$HOME/.cargo}

build() { # name of the copy
  copy=$scratch/$1
  mkdir -p "$copy"
  git archive HEAD | tar -x -C "$copy"
  packages=$(for program in $programs; do echo "-p $program"; done)
  # shellcheck disable=SC2086
  (cd "$copy" && RUSTFLAGS="--remap-path-prefix=$copy=/talon-source --remap-path-prefix=$cargo_home=/cargo" \
    CFLAGS="-ffile-prefix-map=$copy=/talon-source -ffile-prefix-map=$cargo_home=/cargo" \
    CXXFLAGS="-ffile-prefix-map=$copy=/talon-source -ffile-prefix-map=$cargo_home=/cargo" \
    CARGO_TARGET_DIR="$copy/target" "$OLDPWD/tests/scripts/progress.sh" "Building in $copy" \
    cargo build $flags --locked $packages)
  mkdir "$scratch/out-$1"
  for program in $programs; do mv "$copy/target/$profile/$program" "$scratch/out-$1/"; done
  rm -rf "$copy"
}
build one
build another-and-longer-name

same=yes
for program in $programs; do
  one=$(sha256sum <"$scratch/out-one/$program")
  two=$(sha256sum <"$scratch/out-another-and-longer-name/$program")
  if [ "$one" = "$two" ]; then
    echo "same       $program ${one%% *}"
  else
    echo "DIFFERENT  $program" && same=no
  fi
done
[ "$same" = yes ]
