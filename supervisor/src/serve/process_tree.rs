//! Whether a process is a plugin, or was started by one.
//!
//! A plugin that shares our uid would otherwise be an administrator on `host.sock`. This check stops a plugin
//! that connects itself or through its children. It does not stop one that makes an unrelated process of the
//! same uid act for it; only a separate uid does.

use std::collections::BTreeSet;
use std::fs;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid};

/// How many ancestors are followed. No shell session nests deeper; a process that does counts as a plugin's.
const MAX_GENERATIONS: usize = 256;

/// How often a walk is repeated if an ancestor ended meanwhile.
const WALKS: usize = 3;

/// Whether `pid` is a descendant of this process, or of one of these monitors, which were another
/// supervisor's children. If this is unknown because the process has ended, the answer is true.
pub(super) fn is_ours(pid: i32, monitors: &BTreeSet<u32>) -> bool {
    // A process of a foreign pid namespace has no number here, so it is not our child.
    pid > 0 && (0..WALKS).find_map(|_| walk(Pid::from_raw(pid), monitors)).unwrap_or(true)
}

fn walk(mut pid: Pid, monitors: &BTreeSet<u32>) -> Option<bool> {
    let is_monitor = |pid: Pid| monitors.contains(&pid.as_raw().cast_unsigned());
    for _ in 0..MAX_GENERATIONS {
        if pid == getpid() || is_our_child(pid) || is_monitor(pid) {
            return Some(true);
        }
        match parent(pid) {
            Some(parent) if parent.as_raw() <= 1 => return Some(false),
            Some(parent) => pid = parent,
            // It exists, but is hidden: even with /proc mounted with hidepid, our own children are visible.
            None if kill(pid, None) != Err(Errno::ESRCH) => return Some(false),
            None => return None,
        }
    }
    Some(true)
}

/// Asks the kernel, which also answers for a child that has ended, without reaping it.
fn is_our_child(pid: Pid) -> bool {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(pid), look).is_ok()
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid …`, where the name may contain anything.
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn number(pid: u32) -> i32 {
        i32::try_from(pid).unwrap()
    }

    #[test]
    fn we_and_those_below_us_are_ours_and_our_parent_is_not() {
        let none = BTreeSet::new();
        assert!(is_ours(getpid().as_raw(), &none));
        assert!(!is_ours(nix::unistd::getppid().as_raw(), &none));
        assert!(!is_ours(1, &none));
        assert!(!is_ours(0, &none));
        // A shell with a child: a grandchild of ours.
        let mut shell = Command::new("sh")
            .args(["-c", "cat & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(is_ours(number(shell.id()), &none));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(shell.stdout.take().unwrap()), &mut line)
            .unwrap();
        assert!(is_ours(line.trim().parse().unwrap(), &none));
        // A descendant of an inherited monitor is ours whatever its own parent is.
        let parent = nix::unistd::getppid().as_raw();
        assert!(is_ours(parent, &BTreeSet::from([parent.cast_unsigned()])));
        drop(shell.stdin.take());
        let pid = shell.id();
        shell.wait().unwrap();
        // It has ended, so its ancestors are unknown.
        assert!(is_ours(number(pid), &none));
    }
}
