#!/bin/sh
# Makes a Debian package from programs that are already built. The last line of its output is the path of the package.
#   package-deb.sh BUILT OUT [VERSION]     BUILT: the directory of the programs; OUT: where the package goes
set -eu
cd "$(dirname "$0")/../.."
built=$(realpath "$1")
out=$(realpath "$2")
version=${3:-}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

deploy/package/package-tree.sh "$built" target/package/tree
# High compression takes longer than everything else, and a debug build is not published.
quick=
[ "$(basename "$built")" = release ] || quick=--fast
# shellcheck disable=SC2086
cargo deb --quiet --manifest-path supervisor/cli/Cargo.toml --no-build --no-strip $quick \
  --output "$out/" ${version:+--deb-version "$version"}
