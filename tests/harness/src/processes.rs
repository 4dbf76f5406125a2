//! The processes of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Whether this test runs as root.
#[must_use]
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Prints why a test is skipped. On CI, where everything has to run, it is a failure.
///
/// # Panics
/// When the environment says that this is CI and the test runs as root.
pub fn skip(test: &str, reason: &str) {
    assert!(!(std::env::var_os("CI").is_some() && is_root()), "{test} would be skipped on CI: {reason}");
    eprintln!("SKIPPED {test}: {reason}");
}

/// The most memory that a process ever had resident.
///
/// # Panics
/// When there is no such process.
#[must_use]
pub fn peak_memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}

/// The name of a process, if it is there.
#[must_use]
pub(crate) fn name(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim_end().to_owned())
}

/// What a process is and what it waits for, for the message of a failed test.
#[must_use]
pub(crate) fn describe(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let fields = ["Name:", "State:", "PPid:", "Uid:", "NSpid:", "SigBlk:"];
    let fields = status.lines().filter(|line| fields.iter().any(|field| line.starts_with(field)));
    let fields: Vec<&str> = fields.collect();
    let wait_channel = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let stack = fs::read_to_string(format!("/proc/{pid}/stack")).unwrap_or_default();
    format!("{pid}: {} wchan: {wait_channel}\n{stack}", fields.join(", "))
}

struct Process {
    pid: u32,
    parent: u32,
    uid: u32,
    state: char,
}

fn processes() -> Vec<Process> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read(pid: u32) -> Option<Process> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next())
    };
    Some(Process {
        pid,
        parent: field("PPid:")?.parse().ok()?,
        uid: field("Uid:")?.parse().ok()?,
        state: field("State:")?.chars().next()?,
    })
}

/// A zombie holds no resources any more; only its pid is kept until its parent reaps it.
fn is_running(process: &Process) -> bool {
    !matches!(process.state, 'Z' | 'X')
}

/// Whether a process exists and is not a zombie.
#[must_use]
pub fn alive(pid: u32) -> bool {
    read(pid).as_ref().is_some_and(is_running)
}

/// Polls until a condition holds that has no notification.
///
/// # Panics
/// When it does not.
pub async fn until(what: &str, mut wanted: impl FnMut() -> bool) {
    let mut pause = tokio::time::interval(Duration::from_millis(10));
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !wanted() {
            pause.tick().await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("there was never {what}"));
}

/// The living processes of a range of uids.
#[must_use]
pub fn in_uid_range(range: &RangeInclusive<u32>) -> Vec<u32> {
    processes().iter().filter(|p| is_running(p) && range.contains(&p.uid)).map(|p| p.pid).collect()
}

/// The living descendants of a process, without the process.
#[must_use]
pub fn descendants(root: u32) -> BTreeSet<u32> {
    let all = processes();
    let mut family = BTreeSet::from([root]);
    loop {
        let before = family.len();
        let children: Vec<u32> =
            all.iter().filter(|p| is_running(p) && family.contains(&p.parent)).map(|p| p.pid).collect();
        family.extend(children);
        if family.len() == before {
            break;
        }
    }
    family.remove(&root);
    family
}
