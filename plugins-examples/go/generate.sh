#!/bin/sh
# Makes the messages from the .proto files with protoc and its plugins for Go, as Debian 12 packages them: generate.sh [OUT].
# The tests hold what is committed against what this makes.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
messages() { # FILE PACKAGE
  to="M$1=talonplugin/$2:$out"
  mkdir -p "$out"
  protoc -I ../../proto --go_out="$to" --go-grpc_out="$to" "$1"
}
messages opentalon/plugin/v1/plugin.proto pluginpb
messages talon/plugin/v1/notices.proto noticespb
messages talon/state/v1/state.proto statepb
messages talon/model/v1/model.proto modelpb
