//! Namespaces of the program's own, and the monitor as the first process in them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;

use common::*;
use rustix::process::{Signal, pidfd_send_signal};
use talon_jail::{InheritedFds, JailedProgram, Mode, Status};

// Promises: JAIL-13
#[test]
fn it_sees_its_own_numbers_and_the_name_of_every_plugin() {
    let outcome = run(&isolated(sh("echo $$; hostname; readlink /proc/self/ns/net")));
    let lines: Vec<_> = outcome.stdout.lines().collect();
    assert_eq!(lines[..2], ["2", "plugin"]);
    let ours = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_ne!(lines[2], ours.to_string_lossy());
}

// Promises: JAIL-14
#[test]
fn it_cannot_kill_or_stop_its_monitor_whoever_it_is() {
    let jailed =
        start(&isolated(sh("kill -9 1; kill -STOP 1; kill -TERM 1; echo tried; exec sleep 1000"))).unwrap();
    assert_eq!(line(&jailed.stdout), "tried");
    assert!(!is_dead(&jailed.monitor.pid().to_string()));
    jailed.monitor.signal(Signal::TERM.as_raw()).unwrap();
    assert_eq!(finish(jailed).status.to_string(), "killed by SIGTERM");
}

// Promises: JAIL-15
#[test]
fn a_daemon_that_left_its_family_ends_with_it() {
    let script = "setsid sh -c 'setsid sleep 1000 & echo $!' & wait; read line </dev/null; exit 3";
    let jailed = start(&isolated(sh(script))).unwrap();
    line(&jailed.stdout);
    // The pipes end when no process holds them, the daemon included.
    assert_eq!(finish(jailed).status.to_string(), "exit code 3");
}

// Promises: JAIL-15
#[test]
fn everything_ends_with_its_monitor() {
    let jailed = start(&isolated(sh("setsid sleep 1000 & echo up; exec sleep 1000"))).unwrap();
    assert_eq!(line(&jailed.stdout), "up");
    pidfd_send_signal(pidfd(&jailed.monitor.pid().to_string()), Signal::KILL).unwrap();
    assert_eq!(finish(jailed).status.to_string(), "unknown: its monitor was killed");
}

#[test]
fn the_supervisor_knows_it_by_the_number_that_everybody_sees() {
    let jailed = start(&isolated(sh("echo up; exec sleep 1000"))).unwrap();
    line(&jailed.stdout);
    assert_eq!(parent_of(&jailed), jailed.monitor.pid());
}

/// More stages than cores, so that some wait for their turn while their clones run.
// Promises: JAIL-38
#[test]
fn the_monitor_is_known_before_it_says_anything() {
    let stage = stage();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let spec = isolated(sh("exec sleep 1000"));
                    let jailed = talon_jail::spawn(&stage, &spec, &InheritedFds::default(), LONG).unwrap();
                    assert_eq!(parent_of(&jailed), jailed.monitor.pid());
                }
            });
        }
    });
}

fn parent_of(jailed: &JailedProgram) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", jailed.pid)).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Runs the tests' supervisor where user namespaces are forbidden and it has no privileges.
fn without_user_namespaces(arguments: &[&str]) -> String {
    let script = "echo 0 >/proc/sys/user/max_user_namespaces && \
                  exec setpriv --ambient-caps=-all --bounding-set=-all --inh-caps=-all \"$@\"";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-user=1000",
            "--map-group=1000",
            "--keep-caps",
            "sh",
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_jail-fixture"),
        ])
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

// Promises: JAIL-29
#[test]
fn without_user_namespaces_it_is_refused_with_what_to_do() {
    let said = without_user_namespaces(&["--isolated", "/bin/true"]);
    assert!(said.starts_with("namespaces: cannot have namespaces of its own"), "{said}");
    assert!(said.contains("sysctl user.max_user_namespaces"), "{said}");
}

// Promises: JAIL-29
#[test]
fn best_effort_says_what_is_missing_without_user_namespaces() {
    let said = without_user_namespaces(&["--isolated", "--best-effort", "/bin/echo", "runs"]);
    assert!(said.contains("\nruns\n"), "{said}");
    for line in ["namespaces: Missing(", "network: Missing(", "filesystem: Missing("] {
        assert!(said.contains(line), "{said}");
    }
}

#[test]
fn off_means_off_and_says_so() {
    let mut spec = isolated(sh("echo $$; exec sleep 1000"));
    spec.mode = Mode::Off;
    let jailed = start(&spec).unwrap();
    assert_eq!(line(&jailed.stdout), jailed.pid.to_string());
    assert_eq!(status(&jailed, "namespaces"), &Status::Missing("switched off by sandbox.mode: off".into()));
    drop(jailed);
}
