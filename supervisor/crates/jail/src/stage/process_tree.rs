//! The processes below the monitor.

use std::fs;

use rustix::process::{Pid, getpid};

/// Our live and unreaped children. As the monitor is a subreaper, a process whose parent ends appears here,
/// so killing the children repeatedly reaches every process of the tree.
pub(super) fn children() -> Vec<Pid> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list.split_ascii_whitespace().filter_map(parse).collect(),
        // A kernel without CONFIG_PROC_CHILDREN.
        Err(_) => scan(),
    }
}

/// The same, by checking every process's parent.
fn scan() -> Vec<Pid> {
    let own = getpid();
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| parse(entry.file_name().to_str()?))
        .filter(|pid| parent(*pid) == Some(own))
        .collect()
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name in parentheses may contain anything, including parentheses and incomplete characters.
    let stat = String::from_utf8_lossy(&stat);
    let (_, after_name) = stat.rsplit_once(") ")?;
    parse(after_name.split_ascii_whitespace().nth(1)?)
}

fn parse(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn both_ways_find_a_child() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert!(children().contains(&pid));
        assert!(scan().contains(&pid));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
