//! Start and end of the program, by its exit codes and what it says.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::Signal;

use crate::harness::Watcher;

fn run(dir: &Path, config: &str, arguments: &[&str]) -> Output {
    let file = dir.join("watch.yaml");
    fs::write(&file, config.replace("DIR", dir.to_str().unwrap())).unwrap();
    Command::new(env!("CARGO_BIN_EXE_talon-watch"))
        .arg("--config")
        .arg(file)
        .args(arguments)
        .env("XDG_RUNTIME_DIR", dir)
        .env("HOME", dir)
        .output()
        .unwrap()
}

// Promises: SHADOW-82
#[test]
fn a_check_says_what_is_watched_and_run() {
    let dir = tempfile::tempdir().unwrap();
    let config = "shadow:
  enabled: true
  watchers: { filesystem: { paths: [DIR] }, shell: { historyFile: ~/.history } }
  checkers: [{ directory: DIR, command: [cargo, check] }]
";
    let output = run(dir.path(), config, &["--check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in
        ["the watcher is on", "watches ", "runs    cargo check in ", ".history", "watch.sock for shells"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

// Promises: SHADOW-61, SHADOW-82
#[test]
fn what_cannot_be_used_ends_it_and_what_is_off_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for (config, code, part) in [
        ("", 0, "shadow.enabled is false"),
        ("shadow: { enabled: true }", 2, "paths is empty"),
        ("shadow: { enabled: true, watchers: { filesystem: { paths: [/] } } }", 2, "whole file system"),
        (
            "shadow: { enabled: true, watchers: { filesystem: { paths: [DIR/none] } } }",
            2,
            "cannot be watched",
        ),
        ("shadow: { enbled: true }", 2, "enbled"),
    ] {
        let output = run(dir.path(), config, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{config}: {said}");
        assert!(said.contains(part), "{config}: {said}");
    }
    let missing =
        Command::new(env!("CARGO_BIN_EXE_talon-watch")).args(["--config", "/nonexistent"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

// Promises: SHADOW-82
#[test]
fn a_second_watcher_is_refused_and_the_first_one_ends_in_order() {
    let mut first = Watcher::start();
    let socket = first.dir.path().join("talon/watch.sock");
    assert!(socket.exists());
    let second = Command::new(env!("CARGO_BIN_EXE_talon-watch"))
        .args(["--dry-run", "--config"])
        .arg(first.dir.path().join("watch.yaml"))
        .env("XDG_RUNTIME_DIR", first.dir.path())
        .env("HOME", first.dir.path())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(70));
    assert!(String::from_utf8(second.stderr).unwrap().contains("another talon-watch serves"));
    assert!(socket.exists(), "the first one still serves it");
    first.signal(Signal::TERM);
    assert!(first.wait().success());
    assert!(!socket.exists());
}

#[test]
fn a_second_watcher_is_refused_where_shells_are_not_followed_too() {
    let config = "  watchers: { filesystem: { paths: [WORK] }, shell: { enabled: false } }\n";
    let first = Watcher::prepared(config, |_| ());
    assert!(!first.dir.path().join("talon/watch.sock").exists());
    let second = Command::new(env!("CARGO_BIN_EXE_talon-watch"))
        .args(["--dry-run", "--config"])
        .arg(first.dir.path().join("watch.yaml"))
        .env("XDG_RUNTIME_DIR", first.dir.path())
        .env("HOME", first.dir.path())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(70));
    assert!(String::from_utf8(second.stderr).unwrap().contains("another talon-watch serves"));
}
