#!/bin/sh
# Copies the .proto files that the messages are read from: generate.sh [OUT]. The tests hold what is committed against them.
set -eu
cd "$(dirname "$0")"
out=${1:-talon-plugin/proto}
for proto in opentalon/plugin/v1/plugin.proto talon/plugin/v1/notices.proto talon/state/v1/state.proto talon/model/v1/model.proto; do
  mkdir -p "$out/${proto%/*}"
  cp "../../proto/$proto" "$out/$proto"
done
