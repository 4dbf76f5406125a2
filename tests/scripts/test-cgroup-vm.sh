#!/bin/sh
# Runs the cgroup tests on a machine with all controllers, which containers and many build machines lack: boots
# Debian's kernel (6.1) under software emulation with a root file system in memory, and runs the tests there as root,
# as root in a delegated group, and as an ordinary user in a delegated group, and the hostile suite's hogs as root.
# Takes two or three minutes.
#   test-cgroup-vm.sh     VM_TESTS="memory namespaces" names further test binaries of talon-jail to run;
#                         those that need more than busybox will fail
# Needs Debian 12 or newer. As root it installs what it lacks; otherwise it prints the exact command and exits.
set -eu
cd "$(dirname "$0")/../.."

tests=${VM_TESTS:-memory}
timeout=400 # Seconds. The run takes a quarter of it on two cores; a machine that hangs is ended.
uid=54321   # Nobody's: below Debian's range for system daemons' dynamic users and above people's.
vm=$(pwd)/target/vm

missing=""
for need in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio setpriv:util-linux; do
  command -v "${need%%:*}" >/dev/null 2>&1 || missing="$missing ${need##*:}"
done
if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "Missing:$missing. Install it with:  sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
  fi
  echo "Installing$missing …"
  apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
fi

mkdir -p "$vm"
work=$(mktemp -d "$vm/work.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM

# The kernel, once. Its package is only unpacked.
if [ ! -f "$vm/vmlinuz" ]; then
  package() { apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^  Depends: \(linux-image-.*\)/\1/p'; }
  if [ -z "$(package)" ]; then
    apt-get update -qq
  fi
  kernel=$(package)
  echo "Downloading $kernel …"
  (cd "$work" && apt-get download -qq "$kernel" 2>"$work/apt.log") || { cat "$work/apt.log" >&2; exit 1; }
  dpkg-deb -x "$work/$kernel"_*.deb "$work/kernel"
  cp "$work"/kernel/boot/vmlinuz-* "$vm/vmlinuz"
fi

# The tests, with the libraries that they load. They expect their helper at its build path.
tests/scripts/progress.sh "Building the tests" cargo build --locked -p talon-jail --tests --bins
built=$(cargo test --locked -p talon-jail --no-run --message-format json 2>/dev/null | /usr/bin/python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["kind"] in (["test"], ["bin"]):
        print(message["target"]["kind"][0], message["target"]["name"], message["executable"])')
root="$work/root"
mkdir -p "$root/bin" "$root/usr" "$root/tests" "$root/tmp" "$root/proc" "$root/sys" "$root/dev" "$root/new" "$root/etc"
ln -s ../bin "$root/usr/bin"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $("$root/bin/busybox" --list); do
  [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
add() { # from, to: a program with its libraries, without what a debugger needs
  mkdir -p "$root/$(dirname "$2")"
  rm -f "$root/$2"
  strip -o "$root/$2" "$1"
  chmod 755 "$root/$2"
  for library in $(ldd "$1" | grep -o '/[^ ]*'); do
    [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"; }
  done
}
# Busybox has its own versions of these with fewer options, and its shell prefers them.
for program in sh setpriv unshare; do
  add "$(readlink -f "$(command -v $program)")" bin/$program
done
chmod 1777 "$root/tmp"
echo "$built" | while read -r kind name path; do
  case "$kind: groups $tests " in
    bin:*) add "$path" "$path" ;;
    *" $name "*) add "$path" "tests/$name" ;;
  esac
done
# The hostile suite, and the files and directories that it mounts over.
tests/scripts/progress.sh "Building the hostile suite" cargo build --locked -p talon-tests --bin talon-hostile
add "${CARGO_TARGET_DIR:-target}/debug/talon-hostile" tests/talon-hostile
cc -std=gnu11 -O1 -pthread -o "$work/attack" tests/jail/attacks/*.c -lrt
add "$work/attack" tests/attack
mkdir -p "$root/run" "$root/root" "$root/home" "$root/var/tmp"
touch "$root/etc/shadow" "$root/etc/resolv.conf"
for test in groups $tests; do
  [ -x "$root/tests/$test" ] || { echo "talon-jail has no test binary $test" >&2; exit 1; }
done

cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin
# pivot_root, which jails use, does not work on the kernel's initial root; so everything moves to a second one.
mount -t tmpfs -o mode=755 root /new
cp -a /bin /etc /home /init2 /lib* /root /run /tests /tmp /usr /var /new
for directory in /*; do
  [ -e "/new$directory" ] || [ "$directory" = /new ] || cp -a "$directory" /new
done
exec switch_root /new /init2
INIT
cat >"$root/init2" <<INIT
#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
tests="$tests" uid=$uid
INIT
cat >>"$root/init2" <<'INIT'
groups=/sys/fs/cgroup
echo "+memory +pids +cpu +io" >$groups/cgroup.subtree_control
failed=0

# The cgroup that systemd sets up for a service with Delegate=yes and User=.
delegated() { # name, owner, command…
  group=$groups/$1
  mkdir "$group"
  chown "$2:$2" "$group" "$group/cgroup.procs" "$group/cgroup.threads" "$group/cgroup.subtree_control"
  shift 2
  sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}

run() { # what it is, command…
  echo "== $1"
  shift
  "$@" 2>&1 || failed=1
}

needed="env HOME=/tmp TALON_TEST_GROUPS=required" # Nothing may be skipped.
as_user="setpriv --reuid $uid --regid $uid --clear-groups"
run "groups, as root in the root of the hierarchy" $needed /tests/groups --test-threads 1
run "groups, as root in a delegated group" delegated root 0 $needed /tests/groups --test-threads 1
run "groups, as uid $uid in a delegated group" delegated user "$uid" $as_user $needed /tests/groups --test-threads 1
run "groups, as uid $uid without a group of its own, so that each is skipped" \
  $as_user /tests/groups --nocapture --test-threads 1 >/tmp/skipped
cat /tmp/skipped
[ "$(grep -c 'skipped .* not delegated' /tmp/skipped)" -gt 1 ] || failed=1
for test in $tests; do
  run "$test, as root" /tests/$test --test-threads 1
  run "$test, as uid $uid" $as_user env HOME=/tmp /tests/$test --test-threads 1
done
# The tests that depend on cgroups. With them, memory that no process has mapped is limited as well.
run "the hostile suite's hogs, as root" /tests/talon-hostile --attacks /tests/attack --column "root none" \
  --only memory-,fork-bomb,thread-bomb,cpu-hog,write-cgroups,daemon --table /tmp/table.md --verbose
grep -q '^- memory-group: enforced' /tmp/table.md || failed=1
echo "talon-vm: up $(cut -d' ' -f1 /proc/uptime) s, kernel $(uname -r), controllers $(cat $groups/cgroup.controllers)"
echo "talon-vm: result $failed"
poweroff -f
INIT
chmod 755 "$root/init" "$root/init2"
(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$work/initrd"

echo "Booting $(du -h "$work/initrd" | cut -f1) under software emulation …"
timeout "$timeout" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1024 -nodefaults -no-reboot -display none \
  -serial stdio -kernel "$vm/vmlinuz" -initrd "$work/initrd" \
  -append "console=ttyS0 loglevel=2 panic=-1 rdinit=/init cgroup_no_v1=all" </dev/null | tr -d '\r' | tee "$vm/serial.log"
if ! grep -q '^talon-vm: result 0$' "$vm/serial.log"; then
  echo "The tests failed in the virtual machine; its output is in target/vm/serial.log" >&2
  exit 1
fi
