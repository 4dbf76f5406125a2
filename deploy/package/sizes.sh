#!/bin/sh
# The sizes of the installed programs without symbols, and the shared libraries that they need, as a table in Markdown.
#   sizes.sh BUILT     the directory of the programs, as target/release
set -eu
built=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "| program | MiB | shared libraries |"
echo "|---|---|---|"
for name in talon talon-state talon-agent talon-gateway talon-mcp talon-mcp-bridge talon-framed-bridge talon-service-bridge talon-top talon-watch talon-lua webhook mail valkey telegram slack chat-webhook; do
  strip --strip-unneeded -o "$scratch/$name" "$built/$name"
  size=$(stat -c %s "$scratch/$name")
  libraries=$(objdump -p "$built/$name" | awk '$1 == "NEEDED" { printf "%s`%s`", (n++ ? ", " : ""), $2 }')
  awk -v name="$name" -v size="$size" -v libraries="$libraries" \
    'BEGIN { printf "| `%s` | %.1f | %s |\n", name, size / 1048576, libraries }'
done
