#!/bin/sh
# Puts the example plugins, ready to run, below target/plugins: those in Rust as binaries, the others as directories
# with all they need. A stamp in each says what it was made from, so that the second time is quick.
set -eu
cd "$(dirname "$0")/.."
profile=${1:-debug}
out=target/plugins
plugin_proto=opentalon/plugin/v1/plugin.proto
state_proto=talon/state/v1/state.proto
mkdir -p "$out"

for name in hello code-search web-fetch notes; do
  if ! cmp -s "target/$profile/$name" "$out/$name"; then
    # A new file under the old name: a running plugin keeps the old one.
    cp "target/$profile/$name" "$out/.$name.new"
    mv "$out/.$name.new" "$out/$name"
  fi
done

# current DIR STAMP: whether DIR was made from this.
current() {
  [ "$(cat "$1/.stamp" 2>/dev/null || true)" = "$2" ]
}

# Python. Debian's own interpreter where there is one: it lies below /usr, where every uid can read it. The plugins
# have the same packages: one environment is filled, and each gets a copy.
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3)
venv=target/python
requirements=plugins-examples/csv-query/requirements.txt

python_environment() {
  made_of=$(cksum <"$requirements")
  current "$venv" "$made_of" && return
  echo "Making a virtual environment for the plugins in Python (PyPI: grpcio) …"
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  echo "$made_of" >"$venv/.stamp"
}

# python_plugin NAME PROTO …
python_plugin() {
  name=$1
  shift
  dir=$out/$name
  stamp=$(cd proto && cat "../$requirements" "$@" | cksum)
  if ! current "$dir" "$stamp"; then
    python_environment
    rm -rf "$dir"
    mkdir -p "$dir"
    cp -R "$venv" "$dir/venv"
    "$dir/venv/bin/python" -m grpc_tools.protoc -I proto --python_out="$dir" --grpc_python_out="$dir" "$@"
    # The compiler has done its work, and a plugin that ships less is checked faster.
    "$dir/venv/bin/python" -m pip uninstall --quiet --yes grpcio-tools setuptools pip >/dev/null 2>&1 || true
    find "$dir/venv" -name __pycache__ -type d -prune -exec rm -rf {} +
    echo "$stamp" >"$dir/.stamp"
  fi
  cp "plugins-examples/$name/main.py" "plugins-examples/$name/plugin.yaml" "$dir/"
}

python_plugin csv-query "$plugin_proto"
cp -R plugins-examples/csv-query/data "$out/csv-query/"
python_plugin counter-py "$plugin_proto" "$state_proto"

# lacks NAME PROGRAM …: whether a program is missing that the plugin is made with; then it is left out.
lacks() {
  for_name=$1
  shift
  for program in "$@"; do
    [ -e "$program" ] || command -v "$program" >/dev/null 2>&1 || {
      echo "$for_name: left out, since $program is not installed (scripts/deps.sh test installs it)"
      return 0
    }
  done
  return 1
}

# Go, with the libraries that Debian packages: nothing is downloaded, so there are no modules.
gocode=/usr/share/gocode
if ! lacks counter-go go protoc protoc-gen-go protoc-gen-go-grpc \
  "$gocode/src/google.golang.org/grpc" "$gocode/src/google.golang.org/protobuf"; then
  dir=$out/counter-go
  stamp=$(cat plugins-examples/counter-go/*.go "proto/$plugin_proto" "proto/$state_proto" | cksum; go version)
  if ! current "$dir" "$stamp"; then
    echo "counter-go: building it …"
    messages=target/go/src
    rm -rf "$dir" "$messages"
    mkdir -p "$dir" "$messages"
    packages="M$plugin_proto=talon/example/plugin,M$state_proto=talon/example/state"
    for proto in "$plugin_proto" "$state_proto"; do
      protoc -I proto --go_out="$packages:$messages" --go-grpc_out="$packages:$messages" "$proto"
    done
    root=$PWD
    (cd plugins-examples/counter-go && GO111MODULE=off CGO_ENABLED=0 GOFLAGS='' GOCACHE="$root/target/go/cache" \
      GOPATH="$root/target/go:$gocode" go build -trimpath -ldflags='-s -w' -o "$root/$dir/counter-go")
    echo "$stamp" >"$dir/.stamp"
  fi
  cp plugins-examples/counter-go/plugin.yaml "$dir/"
fi

# Node, with the packages that its lock file names.
if ! lacks counter-node /usr/bin/node npm; then
  from=plugins-examples/counter-node
  dir=$out/counter-node
  stamp=$(cat "$from/package-lock.json" "proto/$plugin_proto" "proto/$state_proto" | cksum)
  if ! current "$dir" "$stamp"; then
    echo "counter-node: getting its packages (npm: @grpc/grpc-js) …"
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$from/package.json" "$from/package-lock.json" "$dir/"
    (cd "$dir" && npm ci --silent --ignore-scripts --no-audit --no-fund)
    # What is for editors and debuggers stays behind, as with Python.
    find "$dir/node_modules" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.md' \) -exec rm {} +
    for proto in "$plugin_proto" "$state_proto"; do
      mkdir -p "$dir/proto/${proto%/*}"
      cp "proto/$proto" "$dir/proto/$proto"
    done
    echo "$stamp" >"$dir/.stamp"
  fi
  cp "$from"/*.js "$from/plugin.yaml" "$dir/"
fi
