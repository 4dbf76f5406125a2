//! Programs that get another supervisor.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::*;
use talon_jail::{AdoptError, ExitStatus, JailedProgram, Monitor, MonitorParts, ProcessIdentity};

/// A program that says its number and then waits.
fn started() -> (JailedProgram, String) {
    let jailed = start(&sh("trap 'echo heard; exit 7' USR1; echo $$; while :; do sleep 0.05; done")).unwrap();
    let pid = line(&jailed.stdout);
    (jailed, pid)
}

// Promises: HANDOVER-11
#[test]
fn a_monitor_obeys_the_one_that_adopted_it() {
    let (jailed, pid) = started();
    let parts = jailed.monitor.share().unwrap();
    assert_eq!(parts.program.pid.to_string(), pid);
    let adopted = Monitor::adopt(parts).unwrap();
    assert_eq!(adopted.pid(), jailed.monitor.pid());
    jailed.monitor.release();
    // A handle that was released is no handle.
    jailed.monitor.kill_all().unwrap();
    drop(jailed.monitor);
    adopted.signal(10).unwrap();
    assert_eq!(line(&jailed.stdout), "heard");
    assert_eq!(ended(&adopted), ExitStatus::Code(7));
    gone(&adopted);
}

// Promises: HANDOVER-2
#[test]
fn sharing_changes_nothing_and_what_was_shared_keeps_it_alive() {
    let (jailed, pid) = started();
    let parts = jailed.monitor.share().unwrap();
    drop(parts);
    assert!(!is_dead(&pid));
    let parts = jailed.monitor.share().unwrap();
    jailed.monitor.release();
    drop(jailed.monitor);
    assert!(!is_dead(&pid));
    // The last lifeline, which no supervisor adopted.
    drop(parts);
    eventually("it dies", || is_dead(&pid));
}

#[test]
fn dropping_the_one_that_adopted_it_kills_it() {
    let (jailed, pid) = started();
    let adopted = Monitor::adopt(jailed.monitor.share().unwrap()).unwrap();
    jailed.monitor.release();
    drop(jailed.monitor);
    drop(adopted);
    eventually("it dies", || is_dead(&pid));
}

// Promises: HANDOVER-4
#[test]
fn whoever_is_somebody_else_than_was_said_is_refused_and_killed() {
    let wrong: [fn(&mut MonitorParts); 5] = [
        |parts| parts.monitor.started += 1,
        |parts| parts.program.started -= 1,
        |parts| parts.program.uid += 1,
        |parts| parts.program.pid = 1,
        |parts| std::mem::swap(&mut parts.pidfd, &mut parts.program_pidfd),
    ];
    for make_wrong in wrong {
        let (jailed, pid) = started();
        let mut parts = jailed.monitor.share().unwrap();
        make_wrong(&mut parts);
        let error = Monitor::adopt(parts).unwrap_err();
        assert!(matches!(error, AdoptError::DifferentProcess { .. }), "{error}");
        eventually("it dies", || is_dead(&pid));
        gone(&jailed.monitor);
    }
}

// Promises: HANDOVER-4
#[test]
fn a_control_socket_that_is_none_is_refused() {
    let (jailed, pid) = started();
    let parts = jailed.monitor.share().unwrap();
    let (pipe, _) = std::io::pipe().unwrap();
    let parts = MonitorParts { control: pipe.into(), ..parts };
    assert!(matches!(Monitor::adopt(parts), Err(AdoptError::Control)));
    eventually("its program is killed by its pidfd", || is_dead(&pid));
    gone(&jailed.monitor);
}

// Promises: HANDOVER-6
#[test]
fn what_has_ended_is_neither_shared_nor_adopted() {
    let (jailed, _) = started();
    let parts = jailed.monitor.share().unwrap();
    jailed.monitor.kill_all().unwrap();
    gone(&jailed.monitor);
    assert!(jailed.monitor.share().is_err());
    assert!(matches!(Monitor::adopt(parts), Err(AdoptError::Unknown { who: "monitor", .. })));
}

#[test]
fn who_somebody_is_can_be_written_down() {
    let (jailed, _) = started();
    let who = jailed.monitor.share().unwrap().monitor;
    let text = serde_json::to_string(&who).unwrap();
    assert_eq!(serde_json::from_str::<ProcessIdentity>(&text).unwrap(), who);
    jailed.monitor.kill_all().unwrap();
    gone(&jailed.monitor);
}
