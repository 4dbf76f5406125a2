//! What this machine gives, really tried.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;

use talon_jail::{Mode, Status, Tier};

fn namespaces() -> Vec<String> {
    let kinds = ["mnt", "pid", "net", "ipc", "uts", "cgroup", "user"];
    let link = |kind| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
    kinds.map(|kind| link(kind).display().to_string()).to_vec()
}

// Promises: CLI-16
#[test]
fn trying_changes_nothing_of_ours_and_leaves_no_process() {
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = (namespaces(), mounts());
    let machine = talon_jail::probe(&common::stage());
    assert_eq!((namespaces(), mounts()), before);
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    assert_eq!(children, "", "children of this thread");
    assert_eq!(machine.protections.len(), 15);
    assert!(!machine.kernel.is_empty());
}

// Promises: CLI-16
#[test]
fn the_tier_follows_from_the_lines() {
    let machine = talon_jail::probe(&common::stage());
    let holds = |name: &str| {
        let line = machine.protections.iter().find(|line| line.name == name).unwrap();
        line.status == Status::Enforced
    };
    let isolates = holds("namespaces") && holds("filesystem") && holds("network");
    assert_eq!(machine.tier.accepted_by_enforce(), isolates, "{machine:?}");
    assert_eq!(machine.tier <= Tier::Root, isolates && holds("own-uid"), "{machine:?}");
    assert_eq!(machine.tier == Tier::RootCgroup, machine.tier <= Tier::Root && holds("memory-group"));
}

#[test]
fn it_speaks_in_short_sentences() {
    let report = talon_jail::probe(&common::stage()).report();
    for line in &report {
        println!("{}: {:?}", line.name, line.status);
        if let Status::Missing(text) | Status::StandIn(text) = &line.status {
            assert!(text.len() < 200 && !text.contains('\n'), "{text}");
        }
    }
}

/// `talon doctor` takes for granted that a report names whatever is not in force.
// Promises: CLI-18, RULE-7
#[test]
fn a_program_reports_on_each_line() {
    let machine = talon_jail::probe(&common::stage());
    let mut wanted = common::isolated(common::sh("true"));
    for mode in [Mode::BestEffort, Mode::Off] {
        wanted.mode = mode;
        let jailed = common::start(&wanted).unwrap();
        let mut told: Vec<_> = jailed.report.iter().map(|line| line.name.as_str()).collect();
        let mut known: Vec<_> = machine.protections.iter().map(|line| line.name).collect();
        told.sort_unstable();
        known.sort_unstable();
        assert_eq!(told, known, "{mode:?}");
        common::finish(jailed);
    }
}
