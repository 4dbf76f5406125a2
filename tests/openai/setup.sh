#!/bin/sh
# Installs the clients that the gateway's OpenAI dialect is tested with below target/openai: Python's into a virtual environment, Node's
# into node_modules, and the scripts of Node beside it. Fetches nothing if they are there in these versions; exits with 2 if they
# cannot be fetched.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
into=${CARGO_TARGET_DIR:-$here/../../target}/openai
mkdir -p "$into"
cd "$into"
# One test at a time.
exec 9>lock
flock 9
# Node finds packages beside the scripts.
cp "$here"/*.mjs .
wanted=$(cat "$here/requirements.txt" "$here/package-lock.json" | sha256sum)
[ "$(cat installed 2>/dev/null || true)" = "$wanted" ] && exit 0
cp "$here/package.json" "$here/package-lock.json" .
{
  /usr/bin/python3 -m venv venv &&
    venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r "$here/requirements.txt" &&
    npm ci --no-fund --no-audit --silent
} >install.log 2>&1 || {
  tail -n 3 install.log >&2
  exit 2
}
echo "$wanted" >installed
