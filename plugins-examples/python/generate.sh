#!/bin/sh
# Makes the messages from the .proto files: generate.sh [PYTHON [OUT]]. PYTHON has the package's extra `generate`. The tests
# hold what is committed against what this makes.
set -eu
cd "$(dirname "$0")"
python=${1:-python3}
out=${2:-talon_plugin/generated}
protos="opentalon/plugin/v1/plugin.proto talon/plugin/v1/notices.proto talon/state/v1/state.proto talon/model/v1/model.proto"
rm -rf "$out"
mkdir -p "$out"
# shellcheck disable=SC2086
"$python" -m grpc_tools.protoc -I ../../proto --python_out="$out" --pyi_out="$out" $protos
# Packages like every other, so that no tool leaves them behind.
find "$out" -type d -exec touch {}/__init__.py \;
