#!/bin/sh
# Installs example plugins, ready to run, below target/plugins: those in Rust as binaries, the others as directories with
# all dependencies. A stamp in each records its inputs, so that repeating this is quick.
#   stage.sh [PROFILE [PLUGIN …]]     debug or release; these plugins, or all
set -eu
cd "$(dirname "$0")/.."
profile=${1:-debug}
[ $# -eq 0 ] || shift
rust="hello code-search web-fetch notes files shell forge tracker text-policy oidc"
plugins=${*:-$rust csv-query counter-py hello-py language-py inbox-py counter-go hello-go length-go counter-node hello-node redact-node}
out=target/plugins
mkdir -p "$out"

# wanted NAME …: whether one of these plugins was asked for.
wanted() {
  for name in "$@"; do
    case " $plugins " in *" $name "*) return 0 ;; esac
  done
  return 1
}

for name in $rust; do
  wanted "$name" || continue
  if ! cmp -s "target/$profile/$name" "$out/$name"; then
    # Replace the file instead of overwriting it: a running plugin keeps the old one.
    cp "target/$profile/$name" "$out/.$name.new"
    mv "$out/.$name.new" "$out/$name"
  fi
done

# current DIR STAMP: whether DIR was made from these inputs.
current() {
  [ "$(cat "$1/.stamp" 2>/dev/null || true)" = "$2" ]
}

# Python. Prefers Debian's interpreter, which is below /usr, where every uid can read it. The plugins
# have the same packages: one environment is created, and each plugin gets a copy.
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3)
venv=target/python
sdk=plugins-examples/python

# everything_in DIR: a digest of all files below it.
everything_in() {
  find "$1" -name __pycache__ -prune -o -type f -print0 | sort -z | xargs -0 cksum | cksum
}

python_environment() {
  made_of=$(cat "$sdk/pyproject.toml" "$sdk/requirements.txt" | cksum)
  current "$venv" "$made_of" && return
  echo "Making a virtual environment for the plugins in Python (PyPI: grpcio) …"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  # Includes the message compiler, for the test that the generated code is current; plugins do not contain it.
  tools=$(sed -n 's/^generate = \["\(.*\)"\]$/\1/p' "$sdk/pyproject.toml")
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$sdk/requirements.txt" "$tools" setuptools
  echo "$made_of" >"$venv/.stamp"
}

# python_plugin NAME DIRECTORY
python_plugin() {
  wanted "$1" || return 0
  dir=$out/$1
  from=plugins-examples/$2
  python_environment
  stamp=$(cat "$venv/.stamp")
  if ! current "$dir" "$stamp"; then
    rm -rf "$dir"
    mkdir -p "$dir"
    cp -R "$venv" "$dir/venv"
    # The installers are no longer needed, and a smaller plugin is checked faster.
    "$dir/venv/bin/python" -m pip uninstall --quiet --yes grpcio-tools setuptools pip >/dev/null 2>&1 || true
    find "$dir/venv" -name __pycache__ -type d -prune -exec rm -rf {} +
    echo "$stamp" >"$dir/.stamp"
  fi
  rm -rf "$dir/talon_plugin"
  cp -R "$sdk/talon_plugin" "$dir/"
  find "$dir/talon_plugin" -name __pycache__ -type d -prune -exec rm -rf {} +
  cp "$from"/*.py "$from/plugin.yaml" "$dir/"
}

python_plugin csv-query csv-query
if wanted csv-query; then cp -R plugins-examples/csv-query/data "$out/csv-query/"; fi
python_plugin counter-py counter-py
python_plugin hello-py python/hello
python_plugin language-py language-py
python_plugin inbox-py inbox-py

# lacks NAME PROGRAM …: whether a program is missing that is needed to build the plugin, which is then skipped.
lacks() {
  for_name=$1
  shift
  for program in "$@"; do
    [ -e "$program" ] || command -v "$program" >/dev/null 2>&1 || {
      echo "$for_name: left out, since $program is not installed (tests/scripts/deps.sh test installs it)"
      return 0
    }
  done
  return 1
}

# Go, with Debian's library packages: nothing is downloaded, so modules are not used.
gocode=/usr/share/gocode

# go_plugin NAME DIRECTORY
go_plugin() {
  wanted "$1" || return 0
  dir=$out/$1
  from=plugins-examples/$2
  stamp=$(everything_in "$from"; everything_in plugins-examples/go/talonplugin; go version)
  if ! current "$dir" "$stamp"; then
    echo "$1: building it …"
    rm -rf "$dir" target/go/src
    mkdir -p "$dir" target/go/src
    cp -R plugins-examples/go/talonplugin target/go/src/
    root=$PWD
    (cd "$from" && GO111MODULE=off CGO_ENABLED=0 GOFLAGS='' GOCACHE="$root/target/go/cache" \
      GOPATH="$root/target/go:$gocode" go build -trimpath -ldflags='-s -w' -o "$root/$dir/$1")
    echo "$stamp" >"$dir/.stamp"
  fi
  cp "$from/plugin.yaml" "$dir/"
}

if wanted counter-go hello-go length-go && ! lacks "counter-go, hello-go, length-go" go "$gocode/src/google.golang.org/grpc" "$gocode/src/google.golang.org/protobuf" \
  "$gocode/src/github.com/hashicorp/go-plugin"; then
  go_plugin counter-go counter-go
  go_plugin hello-go go/hello
  go_plugin length-go length-go
fi

# Node, with the packages of the lock file: they are downloaded once, and each plugin gets a copy.
node_sdk=plugins-examples/node
packages=target/node

node_packages() {
  made_of=$(cat "$node_sdk/package.json" "$node_sdk/package-lock.json" | cksum)
  current "$packages" "$made_of" && return
  echo "Getting the packages of the plugins in Node (npm: @grpc/grpc-js) …"
  rm -rf "$packages"
  mkdir -p "$packages"
  cp "$node_sdk/package.json" "$node_sdk/package-lock.json" "$packages/"
  (cd "$packages" && npm ci --silent --ignore-scripts --no-audit --no-fund)
  # Files for editors and debuggers are not copied, as with Python.
  find "$packages/node_modules" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.md' \) -exec rm {} +
  echo "$made_of" >"$packages/.stamp"
}

# node_plugin NAME DIRECTORY
node_plugin() {
  wanted "$1" || return 0
  dir=$out/$1
  from=plugins-examples/$2
  node_packages
  stamp=$(cat "$packages/.stamp")
  if ! current "$dir" "$stamp"; then
    rm -rf "$dir"
    mkdir -p "$dir"
    cp -R "$packages/node_modules" "$packages/package.json" "$dir/"
    echo "$stamp" >"$dir/.stamp"
  fi
  rm -rf "$dir/talon-plugin"
  cp -R "$node_sdk/talon-plugin" "$dir/"
  cp "$from"/*.js "$from/plugin.yaml" "$dir/"
}

if wanted counter-node hello-node redact-node && ! lacks "counter-node, hello-node, redact-node" /usr/bin/node npm; then
  node_plugin counter-node counter-node
  node_plugin hello-node node/hello
  node_plugin redact-node redact-node
fi
