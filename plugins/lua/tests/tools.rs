//! The commands for authors.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn talon_lua(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_talon-lua")).args(args).output().expect("it runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn cookbook() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins-examples/lua")
}

// Promises: LUA-50
#[test]
fn check_names_the_functions_and_what_is_wrong() {
    let dir = tempfile::tempdir().expect("a directory");
    let good = talon_lua(&["check", cookbook().to_str().expect("text")]);
    assert!(good.status.success(), "{}", err(&good));
    assert!(out(&good).contains("on_call.lua: on_event, task"), "{}", out(&good));
    let bad = dir.path().join("bad.lua");
    std::fs::write(&bad, "function filter(ctx)\n  return = 1\nend").expect("written");
    let checked = talon_lua(&["check", bad.to_str().expect("text")]);
    assert!(!checked.status.success() && err(&checked).contains("bad.lua:2:"), "{}", err(&checked));
}

// Promises: LUA-51
#[test]
fn run_shows_what_a_call_changed() {
    let file = cookbook().join("smart_preprocess.lua");
    let file = file.to_str().expect("text");
    let ran =
        talon_lua(&["run", file, "pre_hook", "--message", "Guten Tag", "--llm", "de", "--llm", "Good day"]);
    let expected = "- message: Guten Tag\n+ message: Good day\n+ metadata.original_language: de\n";
    assert_eq!((out(&ran).as_str(), ran.status.success()), (expected, true), "{}", err(&ran));
    let file = cookbook().join("on_call.lua");
    let ran = talon_lua(&[
        "run",
        file.to_str().expect("text"),
        "task",
        "--kv",
        "count=1",
        "--kv",
        "event/1=critical: x",
    ]);
    let expected =
        "- kv count: 1.0\n- kv event/1: \"critical: x\"\n1 events since yesterday:\n- critical: x\n";
    assert_eq!(out(&ran), expected, "{}", err(&ran));
    let wrong = talon_lua(&["run", file.to_str().expect("text"), "hok"]);
    assert!(!wrong.status.success() && err(&wrong).contains("pre_hook"), "{}", err(&wrong));
}

// Promises: LUA-52
#[test]
fn test_writes_tap_and_junit_and_fails_if_a_test_does() {
    let passed = talon_lua(&["test", cookbook().to_str().expect("text")]);
    assert!(passed.status.success(), "{}{}", out(&passed), err(&passed));
    assert!(out(&passed).contains("filter.lua test_drops_blocked_words"), "{}", out(&passed));
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("a.lua"), "function filter(ctx) end").expect("written");
    std::fs::write(dir.path().join("a_test.lua"), "function test_a() expect(1, 2) end").expect("written");
    let failed = talon_lua(&["test", "--format", "junit", dir.path().to_str().expect("text")]);
    assert!(!failed.status.success() && out(&failed).contains("expected 2, got 1"), "{}", out(&failed));
    let none = talon_lua(&["test", "/nonexistent.lua"]);
    assert!(!none.status.success() && err(&none).contains("there are no tests"), "{}", err(&none));
}

// Promises: LUA-63
#[test]
fn one_long_operation_ends_the_command() {
    let dir = tempfile::tempdir().expect("a directory");
    // No interrupt comes in a move, and this one is long.
    let hang = "while true do table.move({ 1 }, 1, 2e9, 2, {}) end";
    let file = dir.path().join("hang.lua");
    std::fs::write(&file, format!("function filter(ctx)\n    {hang}\nend")).expect("written");
    let ran = talon_lua(&["run", file.to_str().expect("text"), "filter"]);
    assert!(!ran.status.success() && err(&ran).contains("filter: the time limit passed"), "{}", err(&ran));
}

// Promises: LUA-62
#[test]
fn results_are_values_for_programs() {
    let file = cookbook().join("filter.lua");
    let file = file.to_str().expect("text");
    let value = |output: &Output| -> serde_json::Value {
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", out(output)))
    };
    let checked = value(&talon_lua(&["check", "--format", "json", file]));
    assert_eq!(checked["scripts"][0]["functions"][0], "filter", "{checked}");
    let tested = value(&talon_lua(&["test", "--format", "json", file]));
    assert_eq!(tested["tests"][0]["passed"], true, "{tested}");
    let ran = value(&talon_lua(&["run", "--format", "json", "--message", "buy spam", file, "filter"]));
    assert_eq!(ran["outcome"]["drop"]["reason"], "blocked word: spam", "{ran}");
    let failed = value(&talon_lua(&["run", "--format", "json", file, "task"]));
    assert_eq!((&failed["outcome"], &failed["error"]["kind"]), (&().into(), &"returned".into()), "{failed}");
}
