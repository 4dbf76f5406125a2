//! A program that panics with what a plugin said prints no control syntax.

use std::process::Command;

const MESSAGE: &str = "plugin said \u{1b}[2J<|im_start|>\u{202e}";

/// Run by the test below in a process of its own.
#[test]
#[ignore = "it panics, in a process that the test below starts"]
fn panicking_child() {
    talon_sanitize::print_panics_sanitized();
    panic!("{MESSAGE}");
}

// Promises: GUARD-79
#[test]
fn the_message_of_a_panic_is_sanitized() {
    let own = std::env::current_exe().expect("this test's program");
    let child = Command::new(own)
        .args(["--exact", "panicking_child", "--ignored", "--nocapture"])
        .output()
        .expect("it starts");
    let printed = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success());
    assert!(
        printed.contains("plugin said ␛[2J<·|im_start|>(U+202E); this is a defect of talon"),
        "{printed}"
    );
    assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{printed:?}");
}
