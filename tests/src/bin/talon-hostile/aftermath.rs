//! What an attack leaves behind: processes, mounts, files, sockets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{Pid as RustixPid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long processes may take to die. It only has to be longer than on a busy machine; it only passes fully
/// if something stays.
pub(crate) const DYING: Duration = Duration::from_secs(5);

/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The state before an attack.
pub(crate) struct Baseline {
    mounts: BTreeSet<String>,
    files: BTreeSet<String>,
    cgroups: BTreeSet<String>,
    processes: BTreeSet<u32>,
}

impl Baseline {
    /// Records the current state. Existing descendants belong to the harness.
    pub(crate) fn capture() -> Self {
        Self { mounts: mounts(), files: files(), cgroups: cgroups(), processes: family() }
    }

    /// Lists what is there now and was not before. Waits for dying processes, then kills the others.
    pub(crate) fn leftovers(&self, dying: Duration) -> Vec<String> {
        let processes = self.processes_after(dying);
        let mut all = Vec::new();
        if !processes.is_empty() {
            all.push(format!("{} processes", processes.len()));
            processes.iter().for_each(|pid| end(*pid));
            self.processes_after(DYING);
        }
        let new = |what: &str, before: &BTreeSet<String>, now: BTreeSet<String>| {
            now.difference(before).next().map(|first| format!("{what} {first}"))
        };
        all.extend(new("the mount", &self.mounts, mounts()));
        all.extend(new("the file", &self.files, files()));
        all.extend(new("the control group", &self.cgroups, cgroups()));
        all
    }

    /// The processes that live now and did not before, at the latest when the time is over.
    fn processes_after(&self, time: Duration) -> BTreeSet<u32> {
        let deadline = Instant::now() + time;
        loop {
            reap_orphans(&self.processes);
            let left: BTreeSet<u32> = family().difference(&self.processes).copied().collect();
            if left.is_empty() || Instant::now() > deadline {
                return left;
            }
            pause(POLL_INTERVAL);
        }
    }
}

/// Sleeps: there is no notification of the death of a process that is not our child.
pub(crate) fn pause(time: Duration) {
    std::thread::park_timeout(time);
}

fn family() -> BTreeSet<u32> {
    talon_tests::descendants(std::process::id())
}

fn end(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(RustixPid::from_raw) else { return };
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
        let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    }
}

/// Orphans are reparented to us, and stay in the process table until we reap them. Our own living children
/// are left alone; those that have ended were reaped before.
fn reap_orphans(own: &BTreeSet<u32>) {
    loop {
        match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _)) => {
                if u32::try_from(pid.as_raw()).is_ok_and(|pid| own.contains(&pid)) {
                    eprintln!("a process of the harness itself has ended: {pid}");
                }
            }
            _ => return,
        }
    }
}

fn mounts() -> BTreeSet<String> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect()
}

/// The control groups of the suite: others on the machine come and go.
fn cgroups() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    groups(Path::new("/sys/fs/cgroup"), CGROUP_DEPTH, &mut found);
    found
}

/// How deep ours may lie below the root of the hierarchies.
const CGROUP_DEPTH: u32 = 6;

fn groups(below: &Path, depth: u32, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path().display().to_string();
            if path.contains("/talon-") {
                found.insert(path);
            }
            groups(&entry.path(), depth - 1, found);
        }
    }
}

/// All files in the private directories of the outer namespace.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<_> = ["/tmp", "/run", "/dev/shm", "/var/tmp"].map(Into::into).to_vec();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            found.insert(entry.path().display().to_string());
        }
    }
    found
}
