//! The process that all stages are clones of: its own file, as it looks at all children of the process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use rustix::process::{Pid, Signal, kill_process};
use talon_jail::{InheritedFds, spawn};

/// The living children of this process that have this name.
fn children_named(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<String> =
        lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let is_named = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    children.into_iter().filter(|pid| is_named(pid) && !is_dead(pid)).collect()
}

// Promises: LAUNCH-1
#[test]
fn there_is_one_for_all_and_another_when_it_is_gone() {
    let stage = stage();
    assert_eq!(children_named("talon-zygote"), Vec::<String>::new(), "nothing was started yet");
    let wanted = isolated(sh("echo up; exec sleep 1000"));
    // At once, as plugins are when a supervisor starts.
    let running: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| spawn(&stage, &wanted, &InheritedFds::default(), LONG).unwrap()))
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    for jailed in &running {
        assert_eq!(line(&jailed.stdout), "up");
    }
    let zygotes = children_named("talon-zygote");
    assert_eq!(zygotes.len(), 1, "{zygotes:?}");
    assert_eq!(children_named("talon-monitor").len(), running.len(), "each is our own child");

    let pid = Pid::from_raw(zygotes[0].parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    eventually("it is dead", || is_dead(&zygotes[0]));
    let another = spawn(&stage, &wanted, &InheritedFds::default(), LONG).unwrap();
    assert_eq!(line(&another.stdout), "up");
    assert_eq!(children_named("talon-zygote").len(), 1);
    // What runs is not touched by it.
    assert_eq!(children_named("talon-monitor").len(), running.len() + 1);
    for jailed in running.iter().chain([&another]) {
        jailed.monitor.kill_all().unwrap();
        gone(&jailed.monitor);
    }
}
