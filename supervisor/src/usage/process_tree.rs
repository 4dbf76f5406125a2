//! Finds the descendants of a process, where no cgroup tracks them.

use std::fs;

/// Maximum number of processes of one plugin that are summed. `sandbox` allows a plugin 256 by default;
/// further ones are missing in the sum.
const MAX_PER_TREE: usize = 1024;
/// Maximum number of threads of one process whose children are read: each thread has its own list.
const MAX_THREADS: usize = 1024;

/// The process `root` and all its visible descendants.
pub(super) fn descendants(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        let room = MAX_PER_TREE.saturating_sub(found.len());
        found.extend(children(pid).take(room));
    }
    found
}

fn children(pid: u32) -> impl Iterator<Item = u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().take(MAX_THREADS);
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| {
        list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    // Promises: METRIC-7
    #[test]
    fn grandchildren_are_found() {
        // A background process without its own stdin would end at once.
        let mut shell = Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = shell.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        assert_eq!(descendants(shell.id()), [shell.id(), grandchild]);
        let all = descendants(std::process::id());
        assert!(all.contains(&shell.id()) && all.contains(&grandchild), "{all:?}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
