#!/bin/sh
# Runs a command and shows activity: on a terminal the command's own progress, elsewhere a line every
# ten seconds. Prints the whole output if the command fails.
#   progress.sh "What is being done" COMMAND [ARG …]
set -eu
what=$1
shift
if [ -t 2 ]; then
  echo "$what …"
  exec "$@"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "$what …"
"$@" >"$log" 2>&1 &
pid=$!
start=$(date +%s)
shown=0
while kill -0 "$pid" 2>/dev/null; do
  sleep 1
  seconds=$(($(date +%s) - start))
  if [ $((seconds - shown)) -ge 10 ]; then
    shown=$seconds
    echo "  $seconds s: $(tail -n 1 "$log" | cut -c 1-70)"
  fi
done
if ! wait "$pid"; then
  cat "$log" >&2
  exit 1
fi
echo "  done after $(($(date +%s) - start)) s"
