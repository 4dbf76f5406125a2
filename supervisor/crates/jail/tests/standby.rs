//! The stage that is made ahead: its own file, as it looks at all children of the process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::os::unix::fs::MetadataExt as _;

use common::*;
use rustix::process::{Pid, Signal, kill_process};
use talon_jail::{InheritedFds, spawn};

/// The living children of this process that have this name: a stage has its zygote's until it watches a
/// program.
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

/// The one that is neither of these, once it is there.
fn another(than: &[&str]) -> String {
    let others = || {
        let found = children_named("talon-zygote");
        found.into_iter().filter(|pid| !than.contains(&pid.as_str())).collect::<Vec<_>>()
    };
    eventually("one is made ahead", || others().len() == 1);
    others().remove(0)
}

// Promises: JAIL-41
#[test]
fn the_next_start_takes_it_and_another_is_made() {
    let stage = stage().with_standby();
    let wanted = isolated(sh("echo up; exec sleep 1000"));
    let up = || {
        let jailed = spawn(&stage, &wanted, &InheritedFds::default(), LONG).unwrap();
        assert_eq!(line(&jailed.stdout), "up");
        jailed
    };
    // Without namespaces there is nothing to be had ahead.
    drop(finish(spawn(&stage, &sh("exit 0"), &InheritedFds::default(), LONG).unwrap()));
    let zygotes = children_named("talon-zygote");
    assert_eq!(zygotes.len(), 1, "{zygotes:?}");
    let zygote = &zygotes[0];

    let first = up();
    let spare = another(&[zygote]);
    if !is_root() {
        // What no program of our uid may look into is root's.
        let environment = std::fs::metadata(format!("/proc/{spare}/environ")).unwrap();
        assert_eq!(environment.uid(), 0);
    }
    let second = up();
    assert_eq!(second.monitor.pid().to_string(), spare);
    let report = |jailed: &talon_jail::JailedProgram| {
        jailed.report.iter().map(|line| (line.name.clone(), line.status.clone())).collect::<Vec<_>>()
    };
    assert_eq!(report(&first), report(&second));

    // A killed standby stage does no harm.
    let spare = another(&[zygote]);
    kill_process(Pid::from_raw(spare.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    eventually("it is dead", || is_dead(&spare));
    let third = up();
    assert_ne!(third.monitor.pid().to_string(), spare);
    for jailed in [&first, &second, &third] {
        jailed.monitor.kill_all().unwrap();
        gone(&jailed.monitor);
    }

    // It ends with the stage.
    let spare = another(&[zygote, &spare]);
    drop(stage);
    eventually("both are dead", || is_dead(&spare) && is_dead(zygote));
}
