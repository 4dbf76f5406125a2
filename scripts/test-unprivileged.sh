#!/bin/sh
# The tests of real processes once more, as a user without any rights, as in a developer's shell: plugins then
# share the user's uid, and what that costs has to be said. Only root can become such a user.
set -eu
cd "$(dirname "$0")/.."
uid=54321 # Nobody's: below Debian's range for system daemons' dynamic users and above people's.
if [ "$(id -u)" != 0 ]; then
  exit 0 # The run before this one was this one.
fi
as_nobody() { setpriv --reuid "$uid" --regid "$uid" --clear-groups env HOME=/tmp TMPDIR=/tmp INSTA_WORKSPACE_ROOT="$PWD" "$@"; }
if ! as_nobody test -x target/debug/talon; then
  echo "SKIPPED test-unprivileged: uid $uid may not read $(pwd), so it cannot run what was built there"
  exit 0
fi
# Of the whole workspace, as it was built: single packages would be built anew with fewer features.
binaries=$(cargo nextest list --locked --workspace --list-type binaries-only --message-format json |
  /usr/bin/python3 -c 'import json, sys
for binary in json.load(sys.stdin)["rust-binaries"].values():
    # These two read the source tree, which is the same for everybody.
    if binary["kind"] == "test" and binary["binary-id"].startswith(("talon-tests::", "talon-jail::")) and binary["binary-name"] not in ("architecture", "specification"):
        print(binary["binary-path"])')
echo "Once more as uid $uid, without any rights:"
for binary in $binaries; do
  # One second try, as the runner before this one has it, and said as loudly.
  as_nobody "$binary" --quiet --test-threads 2 || {
    echo "FLAKY, tried once more: $binary"
    as_nobody "$binary" --quiet --test-threads 2
  }
done
