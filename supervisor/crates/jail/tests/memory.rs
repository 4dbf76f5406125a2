//! The memory of a whole tree where no cgroup limits it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use talon_jail::{ExitStatus, JailSpec, Limits, Status};

const MIB: u64 = 1 << 20;

fn in_64_mib(script: &str) -> JailSpec {
    let limits = Limits { memory_bytes: 64 * MIB, ..Limits::default() };
    JailSpec { limits, ..isolated(sh(script)) }
}

fn killed_for_memory(script: &str) {
    let outcome = finish(start(&in_64_mib(script)).unwrap());
    let ExitStatus::OutOfMemory { bytes, limit } = outcome.status else { panic!("{}", outcome.status) };
    assert_eq!(limit, 64 * MIB);
    assert!(bytes > limit, "{bytes}");
    assert!(
        outcome.status.to_string().ends_with("the limit is 64 MiB (limits.memory_bytes)"),
        "{}",
        outcome.status
    );
}

// Promises: JAIL-26
#[test]
fn one_that_takes_too_much_is_killed() {
    killed_for_memory("exec dd if=/dev/zero of=/dev/null bs=100M count=1000000");
}

// Promises: JAIL-26
#[test]
fn many_that_take_too_much_together_are_killed() {
    // Each in a new session, and without a parent.
    let one = "(setsid dd if=/dev/zero of=/dev/null bs=20M count=1000000 &)";
    killed_for_memory(&format!("for i in 1 2 3 4 5; do {one}; done; sleep 1000"));
}

const PYTHON: &str = "/usr/bin/python3";

fn skipped_without_python(test: &str) -> bool {
    let missing = !std::path::Path::new(PYTHON).exists();
    if missing {
        eprintln!("skipped {test}: {PYTHON} is not installed (package python3)");
    }
    missing
}

// Promises: JAIL-37
#[test]
fn one_whose_first_thread_has_ended_is_killed() {
    if skipped_without_python("one_whose_first_thread_has_ended_is_killed") {
        return;
    }
    // A thread takes it; the first one exits (exit, not exit_group), and then its status has no memory any
    // more.
    let script = "import ctypes, threading, time
def take():
    held = []
    while True:
        held.append(b'x' * (1 << 20))
        time.sleep(0.001)
threading.Thread(target=take).start()
ctypes.CDLL(None).syscall(60, 0)";
    if cfg!(target_arch = "x86_64") {
        killed_for_memory(&format!("exec {PYTHON} -c \"{script}\""));
    }
}

// Promises: JAIL-37
#[test]
fn page_tables_count() {
    if skipped_without_python("page_tables_count") {
        return;
    }
    // A page is read every 2 MiB, so that nothing but tables is made: 4 KiB for each.
    let script = "import mmap
held = [mmap.mmap(-1, 1 << 37, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)]
while True:
    for at in range(0, 1 << 37, 2 << 20):
        held[0][at]";
    killed_for_memory(&format!("exec {PYTHON} -c \"{script}\""));
}

// Promises: JAIL-26
#[test]
fn what_lies_in_its_private_directory_counts() {
    // Each of the two would be allowed.
    let file = "dd if=/dev/zero of=/tmp/file bs=1M count=45 2>/dev/null || exit 3";
    killed_for_memory(&format!("{file}; exec dd if=/dev/zero of=/dev/null bs=30M count=1000000"));
}

/// Sixteen pairs in each of eight processes: their buffers can hold 100 MiB.
const SOCKETS: &str = "import os, socket, time
for child in range(8):
    if os.fork() == 0:
        held = [socket.socketpair() for pair in range(16)]
        for mine, other in held:
            mine.setblocking(False)
            try:
                while True:
                    mine.send(b'x' * 4096)
            except BlockingIOError:
                mine.close()
        time.sleep(1000)
time.sleep(1000)";

// Promises: JAIL-42
#[test]
fn buffers_of_sockets_count() {
    if !skipped_without_python("buffers_of_sockets_count") {
        killed_for_memory(&format!("exec {PYTHON} -c \"{SOCKETS}\""));
    }
}

// Promises: JAIL-42
#[test]
fn one_that_locks_too_much_is_killed() {
    if skipped_without_python("one_that_locks_too_much_is_killed") {
        return;
    }
    let script = "import fcntl, time
held = [open('/tmp/locked-%d' % number, 'w') for number in range(50)]
for file in held:
    for byte in range(500):
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * (500 - byte))
while True:
    pass";
    let outcome = finish(start(&in_64_mib(&format!("exec {PYTHON} -c \"{script}\""))).unwrap());
    assert_eq!(outcome.status, ExitStatus::TooManyLocks { limit: 20_000 });
    assert!(outcome.status.to_string().contains("Delegate=yes"), "{}", outcome.status);
}

// Promises: JAIL-42
#[test]
fn some_sockets_and_locks_are_no_offence() {
    if skipped_without_python("some_sockets_and_locks_are_no_offence") {
        return;
    }
    let script = "import fcntl, socket
held = [socket.socketpair() for pair in range(40)]
file = open('/tmp/locked', 'w')
for byte in range(100):
    fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * byte)
print(sum(range(5000000)))";
    let outcome = finish(start(&in_64_mib(&format!("exec {PYTHON} -c \"{script}\""))).unwrap());
    assert_eq!((outcome.status, outcome.stderr.as_str()), (ExitStatus::Code(0), ""));
}

#[test]
fn one_that_stays_below_goes_on() {
    let jailed = start(&in_64_mib(
        "dd if=/dev/zero of=/dev/null bs=20M count=20 2>/dev/null; echo up; exec sleep 1000",
    ))
    .unwrap();
    let Status::StandIn(text) = status(&jailed, "memory-group") else { panic!("it is a stand-in") };
    assert!(text.contains("watched and killed above 64 MiB"), "{text}");
    assert!(text.contains("Delegate=yes"), "{text}");
    assert_eq!(line(&jailed.stdout), "up");
    assert_eq!(jailed.monitor.try_exit_status().unwrap(), None);
    jailed.monitor.signal(15).unwrap();
    assert_eq!(finish(jailed).status, ExitStatus::Signal { signal: 15, core_dumped: false });
}

#[test]
fn without_namespaces_nothing_is_watched_and_that_is_said() {
    let jailed = start(&sh("exit 0")).unwrap();
    let Status::Missing(text) = status(&jailed, "memory-group") else { panic!("there is no watch") };
    assert!(text.contains("only each process is limited"), "{text}");
    finish(jailed);
}
