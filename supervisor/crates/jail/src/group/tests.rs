use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::find::{CgroupBase, SUPERVISOR};
use super::groups::is_valid_name;
use super::*;
use crate::exit::ExitStatus;
use crate::spec::Limits;

/// A directory that looks like a new group; its files take what is written.
pub(super) fn group_like(dir: &Path, files: &[&str]) {
    fs::create_dir_all(dir).unwrap();
    for file in files {
        fs::write(dir.join(file), "").unwrap();
    }
}

const ALL_FILES: &[&str] = &[
    "memory.max",
    "memory.high",
    "memory.swap.max",
    "memory.oom.group",
    "pids.max",
    "cpu.weight",
    "cpu.max",
    "io.weight",
];

pub(super) fn text(dir: &Path, file: &str) -> String {
    fs::read_to_string(dir.join(file)).unwrap()
}

#[test]
fn every_limit_is_written() {
    let root = tempfile::tempdir().unwrap();
    group_like(root.path(), ALL_FILES);
    let limits = Limits {
        memory_bytes: 1 << 30,
        nproc: 256,
        cpu_percent: Some(150),
        memory_high_bytes: Some(9 << 20),
        ..Limits::default()
    };
    let lacking = limits::apply(root.path(), &limits, &find::CONTROLLERS).unwrap();
    assert_eq!(lacking, Vec::<String>::new());
    for (file, expected) in [
        ("memory.max", "1073741824"),
        ("memory.high", "9437184"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "1"),
        ("pids.max", "258"),
        ("cpu.weight", "50"),
        ("cpu.max", "150000 100000"),
        ("io.weight", "50"),
    ] {
        assert_eq!(text(root.path(), file), expected, "{file}");
    }
}

#[test]
fn what_is_not_offered_is_named() {
    let root = tempfile::tempdir().unwrap();
    group_like(root.path(), &["memory.max", "memory.high", "memory.oom.group", "pids.max"]);
    let limits = Limits { nproc: u64::MAX, cpu_percent: Some(50), ..Limits::default() };
    let lacking = limits::apply(root.path(), &limits, &["memory", "pids", "io"]).unwrap();
    assert_eq!(
        lacking,
        [
            "memory.swap.max: not offered by this kernel",
            "cpu.weight: the controller cpu is not available here",
            "io.weight: not offered by this kernel",
            "cpu.max: the controller cpu is not available here",
        ]
    );
    assert_eq!(text(root.path(), "pids.max"), u64::MAX.to_string());
}

#[test]
fn names_that_could_be_something_else_are_refused() {
    for name in ["", ".", "..", "a/b", "memory.max", "a b", "ä", "a\0", &"x".repeat(65)] {
        assert!(!is_valid_name(name), "{name:?}");
    }
    for name in ["web-fetch", "a@1", "C++", "0_", &"x".repeat(64)] {
        assert!(is_valid_name(name), "{name:?}");
    }
    let groups = Groups {
        base: "/nonexistent".into(),
        moved: false,
        dir: "/nonexistent".into(),
        controllers: Vec::new(),
    };
    let refusal = groups.create("cgroup.procs", &Limits::default()).unwrap_err().to_string();
    assert!(refusal.contains("cannot name a cgroup (use"), "{refusal}");
    let refusal = groups.create("plugin", &Limits::default()).unwrap_err().to_string();
    assert!(refusal.contains("/nonexistent/plugin"), "{refusal}");
}

#[test]
fn a_base_that_refuses_is_left_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    group_like(root.path(), &["cgroup.procs"]);
    group_like(&root.path().join(SUPERVISOR), &["cgroup.procs"]);
    let place = CgroupBase { base: root.path().into(), must_move: true, controllers: vec!["memory", "pids"] };
    // It has no cgroup.subtree_control.
    let refusal = Groups::open_in(&place, "label").unwrap_err().to_string();
    assert!(refusal.contains("cannot enable the controller"), "{refusal}");
    assert!(refusal.contains("Delegate=yes"), "{refusal}");
    assert_eq!(text(&root.path().join(SUPERVISOR), "cgroup.procs"), "0");
    assert_eq!(text(root.path(), "cgroup.procs"), "0", "we went back");
    assert!(!root.path().join("talon-label").exists());
    assert!(Groups::open_in(&place, "a/b").unwrap_err().to_string().contains("cannot name"));
}

#[test]
fn what_is_not_needed_may_be_missing() {
    let root = tempfile::tempdir().unwrap();
    group_like(root.path(), &["cgroup.procs", "cgroup.subtree_control"]);
    group_like(&root.path().join("talon-x"), &["cgroup.subtree_control"]);
    let place =
        CgroupBase { base: root.path().into(), must_move: false, controllers: vec!["memory", "pids", "io"] };
    let groups = Groups::open_in(&place, "x").unwrap();
    assert_eq!(groups.controllers(), ["memory", "pids", "io"]);
    assert_eq!(text(root.path(), "cgroup.procs"), "", "no process was moved");
    assert!(!root.path().join(SUPERVISOR).exists());
}

/// A group whose events say this.
fn group_with(dir: &Path, events: &[(&str, &str)]) -> Group {
    group_like(dir, &["cgroup.procs"]);
    for (file, text) in events {
        fs::write(dir.join(file), text).unwrap();
    }
    let procs = File::options().write(true).open(dir.join("cgroup.procs")).unwrap();
    Group { dir: dir.into(), procs, memory_bytes: 64 << 20, missing_limits: Vec::new(), released: false }
}

// Promises: METRIC-7
#[test]
fn events_are_read_and_explain_an_end() {
    let root = tempfile::tempdir().unwrap();
    let killed = ExitStatus::Signal { signal: 9, core_dumped: false };
    let calm = group_with(&root.path().join("calm"), &[("memory.events", "oom 3\noom_kill 0\n")]);
    assert_eq!((calm.oom_kills(), calm.pids_refused(), calm.memory_current()), (0, 0, None));
    assert_eq!(calm.explain(killed), killed);
    let events = [
        ("memory.events", "low 0\nhigh 90\nmax 7\noom 1\noom_kill 4\noom_group_kill 1\n"),
        ("pids.events", "max 12\n"),
        ("memory.current", "4096\n"),
        ("pids.current", "3\n"),
        ("cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n"),
        ("cgroup.events", "populated 0\nfrozen 0\n"),
    ];
    let full = group_with(&root.path().join("full"), &events);
    assert_eq!((full.oom_kills(), full.pids_refused(), full.memory_current()), (4, 12, Some(4096)));
    assert_eq!((full.cpu_time(), full.pids_current()), (Some(Duration::from_micros(1500)), Some(3)));
    assert_eq!((calm.cpu_time(), calm.pids_current()), (None, None));
    let cause = ExitStatus::OutOfMemory { bytes: 64 << 20, limit: 64 << 20 };
    assert_eq!(full.explain(killed), cause);
    assert_eq!(full.explain(ExitStatus::MonitorLost), cause);
    assert_eq!(full.explain(ExitStatus::Code(3)), ExitStatus::Code(3));
    let asked = ExitStatus::Signal { signal: 15, core_dumped: false };
    assert_eq!(full.explain(asked), asked);
}

#[test]
fn empty_leftovers_are_removed_and_only_those() {
    let root = tempfile::tempdir().unwrap();
    for dir in ["a/below/deep", "b", "used"] {
        fs::create_dir_all(root.path().join(dir)).unwrap();
    }
    // A directory with a file in it cannot be removed, as a group with a process cannot.
    fs::write(root.path().join("used/member"), "").unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    let left = remove::all_below(root.path(), &[]).unwrap_err().to_string();
    assert!(left.contains("used is in use"), "{left}");
    assert!(!root.path().join("a").exists() && !root.path().join("b").exists());
    fs::remove_file(root.path().join("used/member")).unwrap();
    let used = root.path().join("used");
    assert_eq!(remove::all_below(root.path(), &[&used]).unwrap(), 0, "it is taken over");
    assert!(used.exists());
    assert_eq!(remove::all_below(root.path(), &[]).unwrap(), 1);
    assert_eq!(remove::all_below(root.path(), &[]).unwrap(), 0);
}

#[test]
fn without_an_order_for_all_each_process_is_killed() {
    let root = tempfile::tempdir().unwrap();
    let mut children: Vec<_> = (0..3)
        .map(|_| Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
        .collect();
    let list: String = children.iter().map(|child| format!("{}\n", child.id())).collect();
    group_like(root.path(), &["pids.max"]);
    fs::write(root.path().join("cgroup.procs"), list).unwrap();
    remove::kill(root.path()).unwrap();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    assert_eq!(text(root.path(), "pids.max"), "0", "nothing new could start meanwhile");
}

#[test]
fn a_group_that_does_not_end_is_left_and_named() {
    let root = tempfile::tempdir().unwrap();
    let stuck = root.path().join("stuck");
    group_like(&stuck, &["cgroup.kill"]);
    fs::write(stuck.join("cgroup.events"), "populated 1\n").unwrap();
    assert!(!remove::is_empty_by(&stuck, Instant::now()));
    fs::write(stuck.join("cgroup.events"), "populated 0\nfrozen 0\n").unwrap();
    assert!(remove::is_empty_by(&stuck, Instant::now()));
    let left = remove::all_below(root.path(), &[]).unwrap_err().to_string();
    assert!(left.contains("stuck is in use"), "{left}");
    assert_eq!(text(&stuck, "cgroup.kill"), "1");
}

#[test]
fn looking_says_the_same_as_opening_would() {
    // Whatever this machine has, it is a list with what is needed, or a sentence with what to do.
    match available_controllers() {
        Ok(controllers) => assert!(controllers.starts_with(&["memory", "pids"]), "{controllers:?}"),
        Err(lacking) => assert!(lacking.to_string().ends_with(')'), "{lacking}"),
    }
}
