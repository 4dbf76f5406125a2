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
# The user has no cargo: the test runner is told what was built. With the features of the whole workspace: single packages would be
# rebuilt with fewer features.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
cargo metadata --format-version 1 --locked --no-deps >"$scratch/packages"
cargo nextest list --locked --workspace --list-type binaries-only --message-format json >"$scratch/programs"
runner=$(command -v cargo-nextest)
if ! as_nobody test -x "$runner"; then
  cp "$runner" "$scratch/"
  runner=$scratch/cargo-nextest
fi
# The two that are left out read the source tree, which does not depend on the user.
tests="kind(test) & package(talon-tests) - binary(=architecture) - binary(=specification)"
# What is different without rights: how plugins are started, jailed, ended and handed over, which files and sockets are whose, and
# what is said of protections that are missing. The rest takes a quarter of an hour here, and `make long` runs it.
depends_on_user="agent agent_service approvals discovery egress events extensions grants host_api hostile jail_command jail_faults jail_suite
  launch lifecycle logs operator reload runtimes serve_faults service_user setup start_faults state_faults state_isolation takeover units upgrade"
if [ "${1:-}" != all ]; then
  chosen=
  for name in $depends_on_user; do chosen="$chosen${chosen:+ | }binary(=$name)"; done
  tests="$tests & ($chosen)"
fi
# They wait for more than half of their time, and by now the linters are done: on two cores four have room.
cores=$(nproc)
export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$((cores > 4 ? cores : 4))}"
echo "Once more as uid $uid, without any rights:"
as_nobody "$runner" nextest run --cargo-metadata "$scratch/packages" --binaries-metadata "$scratch/programs" \
  -E "($tests) | (kind(test) & package(talon-jail))"
