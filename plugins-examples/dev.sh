#!/bin/sh
# Runs a supervisor with example plugins in a scratch directory, until Ctrl-C. Builds only what changed and what it runs.
#   dev.sh PLUGIN …     plugins that need no settings: those in Rust, or staged ones such as csv-query and hello-go
# TALON_LOG is the supervisor's log level.
set -eu
cd "$(dirname "$0")/.."
packages=
for plugin in "$@"; do
  if [ -f "plugins-examples/$plugin/Cargo.toml" ]; then packages="$packages -p $plugin"; fi
done
# shellcheck disable=SC2086
tests/scripts/progress.sh "Building Talon and its plugins" cargo build --locked --bins -p talon -p talon-state $packages
plugins-examples/stage.sh debug "$@"

# Below /tmp: a socket's path is short. Plugins of a supervisor with root run as other users, who have to find their way.
scratch=$(mktemp -d /tmp/talon-dev.XXXXXX)
chmod 755 "$scratch"
trap 'rm -rf "$scratch"' EXIT
# The supervisor hears Ctrl-C as well, and ends; the directory is removed after that.
trap : INT TERM
mkdir "$scratch/plugins"
for plugin in "$@"; do
  ln -s "$PWD/target/plugins/$plugin" "$scratch/plugins/$plugin"
done
cat >"$scratch/talon.yaml" <<CONFIG
runtime_dir: $scratch/run
state:
  data_dir: $scratch/data
plugins:
  tools:
    plugin_dir: $scratch/plugins
CONFIG

talon="target/debug/talon --socket $scratch/run/host.sock"
echo
echo "The supervisor listens on $scratch/run/host.sock. In another terminal:"
echo "  $talon status"
case " $* " in *" hello "*) echo "  $talon call hello.greet name=World" ;; esac
echo "Ctrl-C ends it."
echo
target/debug/talon serve --config "$scratch/talon.yaml" || [ $? -eq 130 ]
