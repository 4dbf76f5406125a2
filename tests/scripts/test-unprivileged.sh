#!/bin/sh
# Runs the tests of real processes again as an unprivileged user, as in a developer's shell: plugins then
# share the user's uid, and Talon has to report the missing protections. Only root can switch to such a user.
#   test-unprivileged.sh        those that depend on the user
#   test-unprivileged.sh all    all of them
set -eu
cd "$(dirname "$0")/../.."
. tests/scripts/tools.sh
uid=54321 # Nobody's: below Debian's range for system daemons' dynamic users and above people's.
if [ "$(id -u)" != 0 ]; then
  exit 0 # The run before this one was this one.
fi
as_nobody() { setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME=/tmp TMPDIR=/tmp INSTA_WORKSPACE_ROOT="$PWD" "$@"; }
if ! as_nobody test -x target/debug/talon; then
  echo "SKIPPED test-unprivileged: uid $uid may not read $(pwd), so it cannot run what was built there"
  exit 0
fi
# With the features of the whole workspace: single packages would be rebuilt with fewer features.
binaries=$(cargo nextest list --locked --workspace --list-type binaries-only --message-format json |
  /usr/bin/python3 -c 'import json, sys
# What is different without rights: how plugins are started, jailed, ended and handed over, which files and sockets are whose, and
# what is said of protections that are missing. The rest takes a quarter of an hour here, and `make long` runs it.
depends_on_user = {
    "agent", "agent_service", "approvals", "discovery", "egress", "events", "extensions", "grants", "host_api", "hostile", "jail_command",
    "jail_faults", "jail_suite", "launch", "lifecycle", "logs", "operator", "reload", "runtimes", "serve_faults", "service_user", "setup",
    "start_faults", "state_faults", "state_isolation", "takeover", "units", "upgrade",
}
# These two read the source tree, which does not depend on the user.
of_source = {"architecture", "specification"}
tests = {binary["binary-id"]: binary["binary-path"] for binary in json.load(sys.stdin)["rust-binaries"].values() if binary["kind"] == "test"}
processes = {name.removeprefix("talon-tests::"): path for name, path in tests.items() if name.startswith("talon-tests::")}
unknown = depends_on_user - processes.keys()
if unknown:
    sys.exit(f"test-unprivileged.sh names test programs that are not there: {sorted(unknown)}")
chosen = processes.keys() - of_source if sys.argv[1] == "all" else depends_on_user
print(*(path for name, path in tests.items() if name.startswith("talon-jail::")), *(processes[name] for name in sorted(chosen)), sep="\n")
' "${1:-}") || exit 1
echo "Once more as uid $uid, without any rights:"
failed=
flaky=
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for binary in $binaries; do
  as_nobody "$binary" --quiet --test-threads 2 >"$log" 2>&1 && passed=yes || passed=no
  cat "$log"
  [ "$passed" = no ] || continue
  # What failed is run once more by itself, as nextest does (.config/nextest.toml), and named below either way.
  tests=$(sed -n '/^failures:$/,$ s/^    \([a-zA-Z0-9_:]*\)$/\1/p' "$log" | sort -u)
  # shellcheck disable=SC2086
  if [ -n "$tests" ] && as_nobody "$binary" --quiet --test-threads 1 --exact $tests; then
    flaky="$flaky $tests"
  else
    failed="$failed $binary"
  fi
done
[ -z "$flaky" ] || echo "FLAKY as uid $uid, passed the second time:" $flaky >&2
[ -z "$failed" ] || {
  echo "Failed as uid $uid:$failed" >&2
  exit 1
}
