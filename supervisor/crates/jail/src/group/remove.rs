//! Kills and removes cgroups, with a limit on each wait.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::control_file::{value_of, write};
use super::error::GroupError;

/// How long a killed cgroup may take to become empty. Milliseconds are usual; a process that takes longer
/// waits for a disk or a network, possibly without end.
const GROUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The same for everything that an earlier supervisor left. All are killed before any is waited for, so their
/// ends overlap.
const ALL_TIMEOUT: Duration = Duration::from_secs(5);

/// How many directories one tree of cgroups may have; a larger one is not touched. We make no cgroups below a
/// program's, and a program sees none of them, unless it runs without a private view.
const TREE_MAX: usize = 1024;

/// How often the processes of a cgroup are listed and killed on a kernel without `cgroup.kill`. No process
/// can be started meanwhile, so the second round finds what the first one missed.
const KILL_ROUNDS: usize = 4;

/// Kills and removes one cgroup, if that can be done in time.
pub(super) fn group(dir: &Path) {
    if empty_tree(dir).is_err() {
        let _ = kill(dir);
        if is_empty_by(dir, Instant::now() + GROUP_TIMEOUT) {
            let _ = empty_tree(dir);
        }
    }
}

/// Kills and removes every cgroup directly below `dir` except those in `except`; an error names one that
/// could not be removed.
pub(super) fn all_below(dir: &Path, except: &[&Path]) -> Result<usize, GroupError> {
    let mut groups =
        subgroups(dir).map_err(|source| GroupError::Directory { path: dir.to_owned(), source })?;
    groups.retain(|group| !except.contains(&group.as_path()));
    for group in &groups {
        let _ = kill(group);
    }
    let deadline = Instant::now() + ALL_TIMEOUT;
    let mut removed = 0;
    let mut left = None;
    for group in groups {
        is_empty_by(&group, deadline);
        match empty_tree(&group) {
            Ok(()) => removed += 1,
            Err(_) => left = Some(group),
        }
    }
    left.map_or(Ok(removed), |group| Err(GroupError::InUse(group)))
}

/// Sends SIGKILL to everything in and below a cgroup.
pub(super) fn kill(dir: &Path) -> io::Result<()> {
    match write(&dir.join("cgroup.kill"), "1") {
        // Kernels before 5.14.
        Err(error) if error.kind() == io::ErrorKind::NotFound => kill_each(dir),
        other => other,
    }
}

/// Kills processes one by one. New processes are forbidden meanwhile, or a program that forks fast could
/// escape.
fn kill_each(dir: &Path) -> io::Result<()> {
    for group in tree(dir)? {
        let _ = write(&group.join("pids.max"), "0");
        for _ in 0..KILL_ROUNDS {
            let members = members(&group)?;
            let held: Vec<_> = members
                .iter()
                .filter_map(|pid| Some((*pid, pidfd_open(*pid, PidfdFlags::empty()).ok()?)))
                .collect();
            // A process that is still a member now was one when its pidfd was opened: a pid is not reused
            // while its process exists.
            let still = self::members(&group)?;
            for (_, pidfd) in held.iter().filter(|(pid, _)| still.contains(pid)) {
                let _ = pidfd_send_signal(pidfd, Signal::KILL);
            }
            if members.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

fn members(dir: &Path) -> io::Result<Vec<Pid>> {
    let list = fs::read_to_string(dir.join("cgroup.procs"))?;
    Ok(list.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect())
}

/// Waits until no live process is in or below a cgroup. The kernel notifies pollers of it.
pub(super) fn is_empty_by(dir: &Path, deadline: Instant) -> bool {
    let Ok(mut events) = File::open(dir.join("cgroup.events")) else { return false };
    loop {
        let mut text = String::new();
        if events.rewind().and_then(|()| events.read_to_string(&mut text)).is_err() {
            return false;
        }
        if value_of(&text, "populated") == Some(0) {
            return true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return false };
        let mut polled = [PollFd::new(&events, PollFlags::PRI)];
        if !retry_on_intr(|| poll(&mut polled, Some(&timeout))).is_ok_and(|ready| ready > 0) {
            return false;
        }
    }
}

/// Removes a cgroup and those below it, if none has processes.
pub(super) fn empty_tree(dir: &Path) -> io::Result<()> {
    for group in tree(dir)?.iter().rev() {
        fs::remove_dir(group)?;
    }
    Ok(())
}

/// A cgroup and all below it, parents before children.
fn tree(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![dir.to_owned()];
    let mut next = 0;
    while let Some(group) = found.get(next) {
        let below = subgroups(group)?;
        if found.len() + below.len() > TREE_MAX {
            return Err(io::Error::other(format!("more than {TREE_MAX} groups are below it")));
        }
        found.extend(below);
        next += 1;
    }
    Ok(found)
}

fn subgroups(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut below = Vec::new();
    for entry in fs::read_dir(dir)?.take(TREE_MAX * 2) {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        }
    }
    Ok(below)
}
