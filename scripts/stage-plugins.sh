#!/bin/sh
# Puts the example plugins, ready to run, below target/plugins: the Rust ones as binaries, csv-query as a
# directory with its virtual environment and generated messages.
set -eu
cd "$(dirname "$0")/.."
profile=${1:-debug}
out=target/plugins
mkdir -p "$out"

for name in hello code-search web-fetch; do
  if ! cmp -s "target/$profile/$name" "$out/$name"; then
    # A new file under the old name: a running plugin keeps the old one.
    cp "target/$profile/$name" "$out/.$name.new"
    mv "$out/.$name.new" "$out/$name"
  fi
done

# Debian's own interpreter where there is one: it lies below /usr, where every uid can read it.
python=/usr/bin/python3
[ -x "$python" ] || python=$(command -v python3)
csv=$out/csv-query
stamp=$(cat plugins-examples/csv-query/requirements.txt proto/opentalon/plugin/v1/plugin.proto | cksum)
if [ "$(cat "$csv/.stamp" 2>/dev/null || true)" != "$stamp" ]; then
  echo "csv-query: making its virtual environment (PyPI: grpcio) …"
  rm -rf "$csv"
  mkdir -p "$csv"
  "$python" -m venv "$csv/venv"
  "$csv/venv/bin/pip" install --quiet --disable-pip-version-check -r plugins-examples/csv-query/requirements.txt
  "$csv/venv/bin/python" -m grpc_tools.protoc -I proto \
    --python_out="$csv" --grpc_python_out="$csv" proto/opentalon/plugin/v1/plugin.proto
  # The compiler has done its work, and a plugin that ships less is checked faster.
  "$csv/venv/bin/pip" uninstall --quiet --yes grpcio-tools setuptools >/dev/null 2>&1 || true
  find "$csv/venv" -name __pycache__ -type d -prune -exec rm -rf {} +
  echo "$stamp" >"$csv/.stamp"
fi
cp -R plugins-examples/csv-query/main.py plugins-examples/csv-query/plugin.yaml plugins-examples/csv-query/data "$csv/"
