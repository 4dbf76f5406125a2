//! Nothing is left in the supervisor: its own file, as it counts what the whole process has open.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use talon_jail::{InheritedFds, Program, spawn};

fn open() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> usize {
    let of_tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    of_tasks
        .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default())
        .map(|list| list.split_ascii_whitespace().count())
        .sum()
}

// Promises: LAUNCH-25
#[test]
fn two_hundred_spawns_leave_no_descriptor_and_no_process() {
    let stage = stage();
    let good = sh("exit 0");
    let mut bad = sh("exit 0");
    bad.cwd = "/does/not/exist".into();
    let mut never = sh("exit 0");
    never.program = Program::Descriptor;

    // The first start leaves the zygote, one process that all others share.
    drop(finish(spawn(&stage, &good, &InheritedFds::default(), LONG).unwrap()));
    let before = open();
    for turn in 0..200 {
        match turn % 4 {
            0 => drop(spawn(&stage, &bad, &InheritedFds::default(), LONG).unwrap_err()),
            1 => drop(finish(spawn(&stage, &good, &InheritedFds::default(), LONG).unwrap())),
            _ => drop(spawn(&stage, &good, &InheritedFds::default(), LONG).unwrap()),
        }
    }
    eventually("all is let go of", || {
        // Each attempt reaps what earlier ones left, even one that is refused.
        spawn(&stage, &never, &InheritedFds::default(), LONG).unwrap_err();
        open() == before && children() == 1
    });
    // It ends with the stage, and is reaped by the next start.
    drop(stage);
    let another = common::stage();
    eventually("the zygote is reaped", || {
        spawn(&another, &never, &InheritedFds::default(), LONG).unwrap_err();
        children() == 0
    });
}
