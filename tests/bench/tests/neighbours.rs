//! The busy neighbours as real processes: they burn, they end, and a run does not take a quiet machine for a
//! busy one.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use talon_bench::driver::cpu_seconds;
use talon_bench::neighbours::Neighbours;

/// Only a limit for hangs, not an expectation of speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn burner() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talon-bench-stock"));
    command.arg("burn");
    command
}

/// Waits until the processes have taken some CPU time.
fn wait_until_burning(pids: &[u32]) {
    let begin = Instant::now();
    while pids.iter().any(|pid| cpu_seconds(*pid).expect("it runs") == 0.0) {
        assert!(begin.elapsed() < PATIENCE, "they take no CPU time");
        std::thread::yield_now();
    }
}

// Promises: SPEED-8
#[test]
fn neighbours_burn_cores_until_the_suite_ends() {
    let neighbours = Neighbours::start(2, burner).expect("they start");
    let pids = neighbours.pids();
    assert_eq!(pids.len(), 2);
    wait_until_burning(&pids);
    let cores = neighbours.end().expect("all of them ran to the end");
    assert!(cores > 0.0, "{cores}");
    for pid in pids {
        assert!(!Path::new("/proc").join(pid.to_string()).exists(), "{pid} still runs");
    }
}

// Promises: SPEED-8
#[test]
fn a_neighbour_that_ended_early_fails_the_suite() {
    let script = || {
        let mut command = Command::new("sh");
        // Says that it is ready, and ends: there is nothing to read.
        command.args(["-c", "exec <&-; echo ready"]);
        command
    };
    let neighbours = Neighbours::start(1, script).expect("it says that it is ready");
    let stat = Path::new("/proc").join(neighbours.pids()[0].to_string()).join("stat");
    let begin = Instant::now();
    // A zombie: it has ended and was not reaped.
    while !std::fs::read_to_string(&stat).expect("it was not reaped").contains(") Z") {
        assert!(begin.elapsed() < PATIENCE, "it does not end");
        std::thread::yield_now();
    }
    let error = neighbours.end().expect_err("the machine was quiet");
    assert!(error.to_string().contains("ended before the suite did"), "{error}");
}

#[test]
fn a_neighbour_ends_with_its_parent() {
    let mut child = burner()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it was just built");
    // What the kernel does when the parent dies.
    drop(child.stdin.take());
    assert!(child.wait().expect("it is our child").success());
}
