#!/bin/sh
# Installs what a fresh Debian 12 lacks, when it runs as root; otherwise says the exact command and ends.
#   deps.sh build   what building and the demo need
#   deps.sh test    what the tests need on top
#   deps.sh bench   what Talon is measured beside: bubblewrap, and go-plugin with its Go
set -eu
cd "$(dirname "$0")/.."

missing=""
need() { # program, Debian package
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need cc gcc
# The example plugin csv-query is written in Python and gets a virtual environment of its own.
need /usr/bin/python3 python3
[ -x /usr/bin/python3 ] && ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null && missing="$missing python3-venv"
if [ "$1" = test ] || [ "$1" = bench ]; then
  # The other jail in the hostile suite's table.
  need bwrap bubblewrap
  need /usr/bin/go golang-go
  # gRPC as Debian packages it, and what makes the messages. Of the two protobuf libraries that gRPC works with, the one that
  # knows `optional`.
  [ -d /usr/share/gocode/src/google.golang.org/grpc ] || missing="$missing golang-google-grpc-dev"
  [ -d /usr/share/gocode/src/google.golang.org/protobuf ] || missing="$missing golang-github-golang-protobuf-1-5-dev"
  # HashiCorp's own library, for the tests of programs that it serves, and what compiles their messages.
  [ -d /usr/share/gocode/src/github.com/hashicorp/go-plugin ] || missing="$missing golang-github-hashicorp-go-plugin-dev"
  need protoc protobuf-compiler
  need protoc-gen-go protoc-gen-go
  need protoc-gen-go-grpc protoc-gen-go-grpc
fi
if [ "$1" = test ]; then
  # setpriv, setsid and unshare, by which tests run something as another user, in a session or namespace of its own.
  need setpriv util-linux
  need setsid util-linux
  need unshare util-linux
  # A Debian of its own with a systemd of its own, in a container, for the tests of the package and its units.
  need mmdebstrap mmdebstrap
  need systemd-nspawn systemd-container
  # One program of each common runtime is run in the jail: Debian's own, which lie below /usr, where every uid can
  # read them. Java's package without the desktop can compile too.
  need /usr/bin/node nodejs
  # The example counter-node: its packages. Several hundred small Debian packages, which take a minute or two.
  need npm npm
  need /usr/bin/java default-jre-headless
  # The MCP server for git runs it.
  need /usr/bin/git git
  # The plugin that was written from docs/protocol.md alone: HTTP/2 in Perl, and no gRPC.
  ls /usr/share/perl5/Protocol/HTTP2/Server.pm >/dev/null 2>&1 || missing="$missing libprotocol-http2-perl"
  # PyInstaller packs the interpreter's shared library, which it looks into with objdump.
  ls /usr/lib/*/libpython3.*.so.1.0 >/dev/null 2>&1 || missing="$missing libpython3-dev"
  need objdump binutils
  # promtool, which checks the metrics, the alert rules and the dashboard's queries; the server of the package is used for the
  # dashboard's picture alone.
  need promtool prometheus
  # The store's tests start servers of their own; the one that the package sets up is not used.
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
fi

if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "Missing:$missing. Install it with:  sudo apt-get install -y$missing" >&2
    exit 1
  fi
  echo "Installing$missing …"
  # The lists of a fresh image are empty; an old list is as good as a new one when the package is in it.
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 || {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
  }
fi

# What packs a Python program into one file, for the tests of the jail: in an environment of its own, at one version.
packer=target/runtimes/pyinstaller
packer_version=6.22.3
if [ "$1" = test ] && [ "$(cat "$packer/.stamp" 2>/dev/null || true)" != "$packer_version" ]; then
  echo "Installing PyInstaller $packer_version for the tests (PyPI) …"
  rm -rf "$packer"
  /usr/bin/python3 -m venv "$packer"
  "$packer/bin/pip" install --quiet --disable-pip-version-check "pyinstaller==$packer_version"
  echo "$packer_version" >"$packer/.stamp"
fi

# MCP servers and clients by other people, at the versions that the files in tests/mcp say. A stamp in each directory
# says what it was made from, so that the second time costs nothing. No package's own scripts are run.
mcp=target/mcp
node_packages() { # directory below tests/mcp, what is in it
  made_of=$(cksum <"tests/mcp/$1/package-lock.json")
  [ "$(cat "$mcp/$1/.stamp" 2>/dev/null || true)" = "$made_of" ] && return
  echo "Installing $2 for the tests (npm) …"
  rm -rf "${mcp:?}/$1"
  mkdir -p "$mcp/$1"
  cp "tests/mcp/$1/package.json" "tests/mcp/$1/package-lock.json" "$mcp/$1/"
  (cd "$mcp/$1" && npm ci --silent --ignore-scripts --no-audit --no-fund)
  echo "$made_of" >"$mcp/$1/.stamp"
}
if [ "$1" = test ]; then
  node_packages node "two MCP servers"
  node_packages conformance "the MCP conformance suite"
  node_packages node22 "Node 22, which that suite needs"
  # The package is named after the machine; the tests look in one place.
  mkdir -p "$mcp/node22/bin"
  (cd "$mcp/node22/bin" && ln -sf ../node_modules/node-linux-*/bin/node node)
  made_of=$(cksum <tests/mcp/requirements.txt)
  if [ "$(cat "$mcp/python/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing two MCP servers and the official client for the tests (PyPI) …"
    rm -rf "$mcp/python"
    /usr/bin/python3 -m venv "$mcp/python"
    "$mcp/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/mcp/requirements.txt
    echo "$made_of" >"$mcp/python/.stamp"
  fi
fi

if ! command -v cargo >/dev/null 2>&1; then
  echo "Missing: cargo. Install Rust with rustup (https://rustup.rs), then run this again." >&2
  exit 1
fi
if [ "$1" = test ] && ! cargo nextest --version >/dev/null 2>&1; then
  echo "Installing cargo-nextest, the test runner (once, some minutes) …"
  cargo install --quiet --locked cargo-nextest
fi
if [ "$1" = test ] && ! cargo deb --version >/dev/null 2>&1; then
  echo "Installing cargo-deb, which makes the Debian package that is tested (once, some minutes) …"
  cargo install --quiet --locked cargo-deb
fi
