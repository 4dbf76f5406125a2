#!/bin/sh
# Installs what a fresh Debian 12 lacks if it runs as root; otherwise prints the exact command and exits.
#   deps.sh build        for building what the demo shows
#   deps.sh everything   for building everything: in addition a C++ compiler, for the interpreter of Lua
#   deps.sh test         for the tests, in addition
#   deps.sh bench        what Talon is compared with: bubblewrap, go-plugin with its Go, two interpreters of Lua, and LiteLLM
set -eu
cd "$(dirname "$0")/../.."

missing=""
need() { # program, Debian package
  command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

need cc gcc
[ "$1" = build ] || need c++ g++
# The example plugin csv-query is written in Python and gets its own virtual environment.
need /usr/bin/python3 python3
[ -x /usr/bin/python3 ] && ! /usr/bin/python3 -c 'import ensurepip' 2>/dev/null && missing="$missing python3-venv"
if [ "$1" = test ] || [ "$1" = bench ]; then
  # The other jail in the hostile suite's table.
  need bwrap bubblewrap
  need /usr/bin/go golang-go
  # gRPC as packaged by Debian, and the message compiler. Of the two protobuf libraries that gRPC works with, the one that
  # supports `optional`.
  [ -d /usr/share/gocode/src/google.golang.org/grpc ] || missing="$missing golang-google-grpc-dev"
  [ -d /usr/share/gocode/src/google.golang.org/protobuf ] || missing="$missing golang-github-golang-protobuf-1-5-dev"
  # HashiCorp's own library, for tests of programs that use it, and the compiler of their messages.
  [ -d /usr/share/gocode/src/github.com/hashicorp/go-plugin ] || missing="$missing golang-github-hashicorp-go-plugin-dev"
  need protoc protobuf-compiler
  need protoc-gen-go protoc-gen-go
  need protoc-gen-go-grpc protoc-gen-go-grpc
fi
if [ "$1" = bench ]; then
  need lua5.4 lua5.4
  need luajit luajit
  # With a browser the pages are measured, too.
  [ -x /usr/lib/chromium/chromium ] && need npm npm
fi
if [ "$1" = test ]; then
  # setpriv, setsid and unshare: tests use them to run commands as another user, or in a new session or namespace.
  need setpriv util-linux
  need setsid util-linux
  need unshare util-linux
  # A container with a separate Debian and systemd, for the tests of the package and its units.
  need mmdebstrap mmdebstrap
  need systemd-nspawn systemd-container
  # The tests run one program of each common runtime in the jail. Debian's runtimes are below /usr, where every uid can
  # read them. Java's headless package can compile as well.
  need /usr/bin/node nodejs
  # The packages of the example counter-node: several hundred small Debian packages, which take a minute or two.
  need npm npm
  need /usr/bin/java default-jre-headless
  # Run by the MCP server for git.
  need /usr/bin/git git
  # Shells whose integration `talon shell-init` prints, and an editor whose saving is watched; bash is there.
  need zsh zsh
  need fish fish
  need vim vim
  # A third-party client of the gateway's WebSocket.
  [ -d /usr/lib/python3/dist-packages/websockets ] || missing="$missing python3-websockets"
  # For the plugin that was written from docs/protocol.md alone: HTTP/2 in Perl, without gRPC.
  ls /usr/share/perl5/Protocol/HTTP2/Server.pm >/dev/null 2>&1 || missing="$missing libprotocol-http2-perl"
  # PyInstaller packs the interpreter's shared library, which it inspects with objdump.
  ls /usr/lib/*/libpython3.*.so.1.0 >/dev/null 2>&1 || missing="$missing libpython3-dev"
  need objdump binutils
  # promtool checks the metrics, the alert rules and the dashboard's queries; the package's server is only used for the
  # dashboard's screenshot.
  need promtool prometheus
  # The tests of state in Valkey or Redis start their own server. A machine that has either uses that.
  { command -v valkey-server || command -v redis-server; } >/dev/null 2>&1 || missing="$missing redis-server"
  # The store's tests start their own servers; the one that the package sets up is not used.
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
fi

if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "Missing:$missing. Install it with:  sudo apt-get install -y$missing" >&2
    exit 1
  fi
  echo "Installing$missing …"
  # A fresh image has no package lists; an old list is good enough if it contains the package.
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null 2>&1 || {
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
  }
fi

# PyInstaller packs a Python program into one file, for the tests of the jail: in a separate environment, at a pinned version.
packer=target/runtimes/pyinstaller
packer_version=6.22.3
if [ "$1" = test ] && [ "$(cat "$packer/.stamp" 2>/dev/null || true)" != "$packer_version" ]; then
  echo "Installing PyInstaller $packer_version for the tests (PyPI) …"
  rm -rf "$packer"
  /usr/bin/python3 -m venv "$packer"
  "$packer/bin/pip" install --quiet --disable-pip-version-check "pyinstaller==$packer_version"
  echo "$packer_version" >"$packer/.stamp"
fi

# Third-party MCP servers and clients, at the versions pinned in tests/mcp. A stamp in each directory records its inputs, so
# that repeating this costs nothing. Installation scripts of packages are not run.
mcp=target/mcp
node_packages() { # directory below tests/mcp, what is in it
  made_of=$(cksum <"tests/mcp/$1/package-lock.json")
  [ "$(cat "$mcp/$1/.stamp" 2>/dev/null || true)" = "$made_of" ] && return
  echo "Installing $2 for the tests (npm) …"
  rm -rf "${mcp:?}/$1"
  mkdir -p "$mcp/$1"
  cp "tests/mcp/$1/package.json" "tests/mcp/$1/package-lock.json" "$mcp/$1/"
  # `set -e` does not hold in a function that is called as a condition.
  (cd "$mcp/$1" && npm ci --loglevel=error --ignore-scripts --no-audit --no-fund >/dev/null) || return 1
  echo "$made_of" >"$mcp/$1/.stamp"
}
python_packages() { # directory below target/mcp, file below tests/mcp, what is in it
  made_of=$(cksum <"tests/mcp/$2")
  [ "$(cat "$mcp/$1/.stamp" 2>/dev/null || true)" = "$made_of" ] && return
  echo "Installing $3 for the tests (PyPI) …"
  rm -rf "${mcp:?}/$1"
  /usr/bin/python3 -m venv "$mcp/$1"
  "$mcp/$1/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "tests/mcp/$2"
  echo "$made_of" >"$mcp/$1/.stamp"
}
if [ "$1" = test ]; then
  node_packages node "four MCP servers and the official client"
  node_packages typescript-old "an early version of the official client"
  node_packages conformance "the MCP conformance suite"
  node_packages node22 "Node 22, which that suite needs"
  # Only where somebody has installed the browser, which is 300 MB. Without its servers, the one test of them is skipped by name.
  if [ -x /usr/lib/chromium/chromium ] && ! node_packages browser "two MCP servers for browsers"; then
    echo "deps.sh: npm could not install the MCP servers for browsers, as it says above: the test of them is skipped" >&2
    rm -rf "${mcp:?}/browser"
  fi
  # The package's name contains the architecture; the tests look in one place.
  mkdir -p "$mcp/node22/bin"
  (cd "$mcp/node22/bin" && ln -sf ../node_modules/node-linux-*/bin/node node)
  python_packages python requirements.txt "two MCP servers and the official client"
  python_packages python-old requirements-old.txt "the official client before its version 2"
  python_packages fastmcp requirements-fastmcp.txt "FastMCP 2, for a server that samples"
fi

# What the times of schedules are compared with.
schedule=target/schedule
if [ "$1" = test ]; then
  made_of=$(cksum <tests/schedule/requirements.txt)
  if [ "$(cat "$schedule/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing croniter for the tests (PyPI) …"
    rm -rf "$schedule"
    /usr/bin/python3 -m venv "$schedule"
    "$schedule/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/schedule/requirements.txt
    echo "$made_of" >"$schedule/.stamp"
  fi
fi

# What looks at the gateway's pages: Playwright, and axe-core for accessibility, which has no dependencies. They use Debian's Chromium, and
# only where somebody has installed that.
pages=target/pages
if { [ "$1" = test ] || [ "$1" = bench ]; } && [ -x /usr/lib/chromium/chromium ]; then
  made_of=$(cat tests/pages/requirements.txt tests/pages/package-lock.json | cksum)
  if [ "$(cat "$pages/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing Playwright and axe-core for the tests (PyPI, npm) …"
    rm -rf "$pages"
    mkdir -p "$pages/node"
    /usr/bin/python3 -m venv "$pages/python"
    "$pages/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/pages/requirements.txt
    cp tests/pages/package.json tests/pages/package-lock.json "$pages/node/"
    (cd "$pages/node" && npm ci --silent --ignore-scripts --no-audit --no-fund)
    echo "$made_of" >"$pages/.stamp"
  fi
fi

# What holds the gateway against its own OpenAPI document and against RFC 6455.
gateway=target/gateway
if [ "$1" = test ]; then
  made_of=$(cksum <tests/gateway/requirements.txt)
  if [ "$(cat "$gateway/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing schemathesis and wsproto for the tests (PyPI) …"
    rm -rf "$gateway"
    /usr/bin/python3 -m venv "$gateway"
    "$gateway/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/gateway/requirements.txt
    echo "$made_of" >"$gateway/.stamp"
  fi
fi

# The clients of others that the gateway's OpenAI dialect is tested with (PyPI, npm).
if [ "$1" = test ]; then
  tests/openai/setup.sh
fi

# The mail server that the mail sink is tested with.
sinks=target/sinks
if [ "$1" = test ]; then
  made_of=$(cksum <tests/sinks/requirements.txt)
  if [ "$(cat "$sinks/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing aiosmtpd for the tests (PyPI) …"
    rm -rf "$sinks"
    /usr/bin/python3 -m venv "$sinks"
    "$sinks/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/sinks/requirements.txt
    echo "$made_of" >"$sinks/.stamp"
  fi
fi

# HTTP clients of Python and Node, which the tests run behind the egress proxy, at the versions pinned in tests/egress. gRPC for
# Python is for docs/write-a-client.md, OpenTelemetry's packages are for tests/otel.
egress=target/egress
if [ "$1" = test ]; then
  made_of=$(cat tests/egress/requirements.txt tests/egress/package-lock.json | cksum)
  if [ "$(cat "$egress/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing HTTP clients for the tests (PyPI, npm) …"
    rm -rf "$egress"
    mkdir -p "$egress/node"
    /usr/bin/python3 -m venv "$egress/python"
    "$egress/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/egress/requirements.txt
    cp tests/egress/package.json tests/egress/package-lock.json "$egress/node/"
    (cd "$egress/node" && npm ci --silent --ignore-scripts --no-audit --no-fund)
    echo "$made_of" >"$egress/.stamp"
  fi
fi

# The APIs of model providers as others understand them, at the version pinned in tests/providers. It has no dependencies.
providers=target/providers
if [ "$1" = test ]; then
  made_of=$(cksum <tests/providers/package-lock.json)
  if [ "$(cat "$providers/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing a server of model providers' APIs for the tests (npm) …"
    rm -rf "$providers"
    mkdir -p "$providers"
    cp tests/providers/package.json tests/providers/package-lock.json "$providers/"
    (cd "$providers" && npm ci --silent --ignore-scripts --no-audit --no-fund)
    echo "$made_of" >"$providers/.stamp"
  fi
fi

# The compiler that sdk/gateway-ts is checked with.
typescript=target/typescript
if [ "$1" = test ]; then
  made_of=$(cksum <tests/typescript/package-lock.json)
  if [ "$(cat "$typescript/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing TypeScript for the tests (npm) …"
    rm -rf "$typescript"
    mkdir -p "$typescript"
    cp tests/typescript/package.json tests/typescript/package-lock.json "$typescript/"
    (cd "$typescript" && npm ci --silent --ignore-scripts --no-audit --no-fund)
    echo "$made_of" >"$typescript/.stamp"
  fi
fi

# LiteLLM's proxy, beside which the gateway is measured: it has hundreds of megabytes, and no test needs it.
litellm=target/litellm
if [ "$1" = bench ]; then
  made_of=$(cksum <tests/bench/requirements.txt)
  if [ "$(cat "$litellm/.stamp" 2>/dev/null || true)" != "$made_of" ]; then
    echo "Installing LiteLLM for the benchmarks (PyPI) …"
    rm -rf "$litellm"
    /usr/bin/python3 -m venv "$litellm"
    "$litellm/bin/pip" install --quiet --disable-pip-version-check --no-deps -r tests/bench/requirements.txt
    echo "$made_of" >"$litellm/.stamp"
  fi
fi

if ! command -v cargo >/dev/null 2>&1; then
  echo "Missing: cargo. Install Rust with rustup (https://rustup.rs), then run this again." >&2
  exit 1
fi
if [ "$1" = test ]; then
  . tests/scripts/tools.sh
  # The test runner, and what makes the Debian package that is tested.
  cargo_tool nextest
  cargo_tool deb
fi
