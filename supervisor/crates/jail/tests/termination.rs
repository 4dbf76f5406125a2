//! How programs end, and that nothing of them is left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::{Command, Stdio};

use common::*;
use rustix::process::{Signal, pidfd_send_signal};
use talon_jail::ExitStatus;

// Promises: LAUNCH-22
#[test]
fn a_signal_is_reported_exactly() {
    for (name, signal) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("USR1", 10)] {
        let outcome = run(&sh(&format!("kill -{name} $$; sleep 1000")));
        assert_eq!(outcome.status, ExitStatus::Signal { signal, core_dumped: false });
    }
    // 128 + n is an exit code like any other.
    assert_eq!(run(&sh("exit 137")).status, ExitStatus::Code(137));
}

// Promises: LAUNCH-22
#[test]
fn the_exit_is_reported_once_and_remembered() {
    let jailed = start(&sh("read x < /proc/self/fd/0; exec sleep 1000")).unwrap();
    assert_eq!(jailed.monitor.try_exit_status().unwrap(), None);
    jailed.monitor.signal(15).unwrap();
    let killed = ExitStatus::Signal { signal: 15, core_dumped: false };
    assert_eq!(ended(&jailed.monitor), killed);
    gone(&jailed.monitor);
    assert_eq!(jailed.monitor.try_exit_status().unwrap(), Some(killed));
    jailed.monitor.signal(15).unwrap();
    jailed.monitor.kill_all().unwrap();
}

// Promises: LAUNCH-17
#[test]
fn a_signal_reaches_the_program_and_its_group() {
    let jailed = start(&sh("trap 'wait; exit 7' USR1; sh -c 'trap \"echo child; exit\" USR1; echo up; while :; do sleep 0.05; done' & wait; wait")).unwrap();
    assert_eq!(line(&jailed.stdout), "up");
    jailed.monitor.signal(10).unwrap();
    assert_eq!(line(&jailed.stdout), "child");
    assert_eq!(ended(&jailed.monitor), ExitStatus::Code(7));
    gone(&jailed.monitor);
}

#[test]
fn numbers_that_are_no_standard_signal_are_refused() {
    let jailed = start(&sh("exec sleep 1000")).unwrap();
    for number in [-9, 0, 32, 65, 1000] {
        assert!(jailed.monitor.signal(number).is_err(), "{number}");
    }
    jailed.monitor.kill_all().unwrap();
    gone(&jailed.monitor);
}

#[test]
fn the_monitor_is_deaf_to_signals_for_the_supervisor() {
    let jailed = start(&sh("trap 'exit 7' USR1; echo up; while :; do sleep 0.05; done")).unwrap();
    line(&jailed.stdout);
    let monitor = pidfd(&jailed.monitor.pid().to_string());
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::PIPE] {
        pidfd_send_signal(&monitor, signal).unwrap();
    }
    jailed.monitor.signal(10).unwrap();
    assert_eq!(ended(&jailed.monitor), ExitStatus::Code(7));
    gone(&jailed.monitor);
}

/// Starts a daemon that has left its session, its group and its parent, and prints its number.
const DAEMON: &str = "setsid sh -c 'setsid sleep 1000 & echo $!'";

// Promises: LAUNCH-19
#[test]
fn a_daemon_dies_with_the_program_and_lets_go_of_its_pipes() {
    let outcome = run(&sh(&format!("{DAEMON}; exit 3")));
    assert_eq!(outcome.status, ExitStatus::Code(3));
    assert!(is_dead(&outcome.stdout), "the daemon lives");
}

// Promises: LAUNCH-19
#[test]
fn a_daemon_of_another_uid_dies_too() {
    if skipped_without_root("a_daemon_of_another_uid_dies_too") {
        return;
    }
    let mut wanted = sh(&format!("{DAEMON}; exit 3"));
    wanted.identity = Some(nobody(3));
    let outcome = run(&wanted);
    assert_eq!(outcome.status, ExitStatus::Code(3));
    assert!(is_dead(&outcome.stdout), "the daemon lives");
}

#[test]
fn kill_all_ends_a_program_that_ignores_sigterm_and_its_daemon() {
    let jailed = start(&sh(&format!("trap '' TERM; {DAEMON}; exec sleep 1000"))).unwrap();
    let daemon = line(&jailed.stdout);
    jailed.monitor.signal(15).unwrap();
    assert!(!is_dead(&daemon));
    jailed.monitor.kill_all().unwrap();
    assert_eq!(ended(&jailed.monitor), ExitStatus::Signal { signal: 9, core_dumped: false });
    gone(&jailed.monitor);
    assert!(is_dead(&daemon) && is_dead(&jailed.pid.to_string()));
}

#[test]
fn dropping_the_monitor_ends_everything() {
    let jailed = start(&sh(&format!("{DAEMON}; exec sleep 1000"))).unwrap();
    let all = [line(&jailed.stdout), jailed.pid.to_string(), jailed.monitor.pid().to_string()];
    let handles = all.each_ref().map(|pid| pidfd(pid));
    drop(jailed);
    for handle in &handles {
        assert!(readable(handle));
    }
}

// Promises: JAIL-15, LAUNCH-18
#[test]
fn nothing_outlives_a_supervisor_that_was_killed() {
    let mut identities = vec![vec![]];
    if is_root() {
        identities.push(vec!["--uid".to_owned(), nobody(4).uid.to_string()]);
    }
    for options in identities {
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_jail-fixture"))
            .args(options)
            .args(["/bin/sh", "-c", &format!("{DAEMON}; trap '' TERM HUP; exec sleep 1000")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = supervisor.stdout.take().unwrap().into();
        let first = line(&output);
        while !line(&output).is_empty() {}
        let daemon = line(&output);
        let (program, monitor) = first.split_once(' ').unwrap();
        let handles = [program, monitor, &daemon].map(pidfd);
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        for handle in &handles {
            assert!(readable(handle), "somebody outlived the supervisor");
        }
    }
}

// Promises: LAUNCH-20
#[test]
fn a_killed_monitor_takes_the_program_along_and_is_reported() {
    let jailed = start(&sh("sleep 1000 & echo $!; wait")).unwrap();
    let child = pidfd(&line(&jailed.stdout));
    let program = pidfd(&jailed.pid.to_string());
    pidfd_send_signal(jailed.monitor.pidfd(), Signal::KILL).unwrap();
    assert_eq!(ended(&jailed.monitor), ExitStatus::MonitorLost);
    gone(&jailed.monitor);
    assert!(readable(&program));
    assert!(readable(&child), "the rest of the group lives");
}

// Promises: LAUNCH-20
#[test]
fn a_stopped_monitor_does_not_save_its_program() {
    let jailed = start(&sh(&format!("{DAEMON}; exec sleep 1000"))).unwrap();
    let daemon = pidfd(&line(&jailed.stdout));
    pidfd_send_signal(jailed.monitor.pidfd(), Signal::STOP).unwrap();
    jailed.monitor.kill_all().unwrap();
    assert_eq!(ended(&jailed.monitor), ExitStatus::Signal { signal: 9, core_dumped: false });
    gone(&jailed.monitor);
    assert!(readable(&daemon));
}

#[test]
fn a_stopped_program_dies_all_the_same() {
    let jailed = start(&sh("kill -STOP $$")).unwrap();
    eventually("stopped", || {
        std::fs::read_to_string(format!("/proc/{}/stat", jailed.pid)).unwrap().contains(") T ")
    });
    jailed.monitor.kill_all().unwrap();
    gone(&jailed.monitor);
}

#[test]
fn a_thousand_orphans_are_reaped_while_the_program_runs() {
    let script = "i=0; while [ $i -lt 1000 ]; do (/bin/true &); i=$((i+1)); done; echo done; exec sleep 1000";
    let mut wanted = sh(script);
    wanted.identity = is_root().then(|| nobody(5));
    let jailed = start(&wanted).unwrap();
    assert_eq!(line(&jailed.stdout), "done");
    let monitor = jailed.monitor.pid();
    eventually("only the program is left", || {
        let children = std::fs::read_to_string(format!("/proc/{monitor}/task/{monitor}/children")).unwrap();
        children.trim() == jailed.pid.to_string()
    });
    jailed.monitor.kill_all().unwrap();
    gone(&jailed.monitor);
}

/// How many living processes a uid has.
fn alive(uid: u32) -> usize {
    let line = format!("Uid:\t{uid}\t");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok())
        .filter(|status| status.contains(&line) && !status.contains("State:\tZ"))
        .count()
}

// Promises: LAUNCH-19
#[test]
fn chains_of_processes_that_never_stand_still_are_ended() {
    if skipped_without_root("chains_of_processes_that_never_stand_still_are_ended") {
        return;
    }
    // Each link starts the next one and ends; the first of each chain has a new session.
    let mut wanted = sh("f() { setsid sh -c \"$0\" \"$0\" & }; f; f; f; f; exec sleep 1000");
    wanted.argv.push("sleep 0.01; sh -c \"$0\" \"$0\" & exit".into());
    let uid = nobody(6).uid;
    wanted.identity = Some(nobody(6));
    let jailed = start(&wanted).unwrap();
    eventually("all chains move", || alive(uid) >= 5);
    jailed.monitor.kill_all().unwrap();
    gone(&jailed.monitor);
    assert_eq!(alive(uid), 0);
}
