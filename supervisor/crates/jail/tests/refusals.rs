//! What cannot be started says which step failed, and what to do about it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::*;
use talon_jail::{Identity, JailSpec, Program, SpawnError, Stage};

/// The step and the reason.
fn refusal(spec: &JailSpec) -> (String, String) {
    match start(spec) {
        Err(SpawnError::Step { step, reason }) => (step, reason),
        Err(other) => panic!("not a step: {other}"),
        Ok(_) => panic!("it was started"),
    }
}

fn file(directory: &Path, name: &str, mode: u32, content: &str) -> PathBuf {
    let path = directory.join(name);
    File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&path)
        .unwrap()
        .write_all(content.as_bytes())
        .unwrap();
    path
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

// Promises: LAUNCH-23
#[test]
fn a_bad_working_directory() {
    let mut wanted = sh("exit 0");
    wanted.cwd = "/does/not/exist".into();
    let (step, reason) = refusal(&wanted);
    assert_eq!(step, "directory");
    assert!(reason.starts_with("cannot enter /does/not/exist: No such file or directory ("), "{reason}");
    wanted.cwd = "/bin/sh".into();
    assert!(refusal(&wanted).1.contains("must be a directory"));
}

#[test]
fn a_working_directory_that_its_uid_may_not_enter() {
    if skipped_without_root("a_working_directory_that_its_uid_may_not_enter") {
        return;
    }
    let directory = directory();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let mut wanted = sh("exit 0");
    wanted.cwd = directory.path().into();
    wanted.identity = Some(nobody(7));
    let (step, reason) = refusal(&wanted);
    assert_eq!(step, "directory");
    assert!(reason.contains("Permission denied"), "{reason}");
}

// Promises: LAUNCH-23
#[test]
fn a_program_that_is_missing_or_no_program() {
    let directory = directory();
    let cases = [
        (directory.path().join("missing"), "does not exist"),
        (file(directory.path(), "plain", 0o644, "#!/bin/sh\n"), "chmod +x"),
        (file(directory.path(), "interpreter", 0o755, "#!/no/such/interpreter\n"), "does not exist"),
        (file(directory.path(), "garbage", 0o755, "\u{1}\u{2}garbage"), "#!"),
        (directory.path().to_owned(), "chmod +x"),
    ];
    for (path, advice) in cases {
        let (step, reason) = refusal(&spec(&[path.to_str().unwrap()]));
        assert_eq!(step, "program");
        assert!(reason.contains(path.to_str().unwrap()) && reason.contains(advice), "{reason}");
    }
}

#[test]
fn a_script_by_path_runs_and_by_descriptor_is_refused() {
    let directory = directory();
    let script = file(directory.path(), "script", 0o755, "#!/bin/sh\necho ran\n");
    let mut wanted = spec(&[script.to_str().unwrap()]);
    assert_eq!(run(&wanted).stdout, "ran\n");
    wanted.program = Program::Descriptor;
    let open = File::open(&script).unwrap();
    let Err(SpawnError::Step { step, reason }) =
        talon_jail::spawn(&stage(), &wanted, &with_program(&open), LONG)
    else {
        panic!("it was started");
    };
    assert_eq!(step, "program");
    assert!(reason.contains("script") && reason.contains("view"), "{reason}");
}

#[test]
fn a_spec_that_contradicts_itself_starts_nothing() {
    let mut wanted = sh("exit 0");
    wanted.program = Program::Descriptor;
    assert!(matches!(start(&wanted), Err(SpawnError::Spec(_))));
    let mut wanted = sh("exit 0");
    wanted.identity = Some(Identity { uid: 0, gid: 0 });
    assert!(matches!(start(&wanted), Err(SpawnError::Spec(_))));
}

#[test]
fn arguments_that_are_too_long() {
    let mut wanted = sh("exit 0");
    wanted.argv.push("x".repeat(200_000).into());
    let (step, reason) = refusal(&wanted);
    assert_eq!(step, "program");
    assert!(reason.contains("too long"), "{reason}");
    wanted.argv.push("x".repeat(4 << 20).into());
    assert!(matches!(start(&wanted), Err(SpawnError::SpecTooLarge { .. })));
}

/// Runs the tests' supervisor as an ordinary user, even if root runs the tests.
fn as_ordinary_user(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jail-fixture"));
    if is_root() {
        command.uid(54_321).gid(54_321);
    }
    let output = command.args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

// Promises: RULE-5
#[test]
fn a_uid_that_an_ordinary_user_cannot_give_is_refused() {
    let (started, text) = as_ordinary_user(&["--uid", "70003", "/bin/true"]);
    assert!(!started);
    assert_eq!(
        text,
        "identity: cannot become uid 70003: Operation not permitted (run as root, or set sandbox.mode to best-effort)\n"
    );
}

// Promises: RULE-6
#[test]
fn best_effort_runs_without_the_uid_and_says_so() {
    let (started, text) = as_ordinary_user(&["--uid", "70003", "--best-effort", "/usr/bin/id", "-u"]);
    assert!(started, "{text}");
    assert!(text.contains("own-uid: Missing(\"cannot become uid 70003"), "{text}");
    assert!(text.contains("process-tree: StandIn("), "{text}");
    assert!(!text.contains("\n70003\n"), "{text}");
}

#[test]
fn an_ordinary_user_gets_a_jail_whose_lacks_are_named() {
    let (started, text) = as_ordinary_user(&["/bin/sh", "-c", "grep NoNewPrivs /proc/self/status"]);
    assert!(started, "{text}");
    assert!(text.contains("\nNoNewPrivs:\t1\n"), "{text}");
    for line in ["no-new-privs: Enforced", "capabilities: Enforced", "rlimits: Enforced", "own-uid: Missing("]
    {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}

// Promises: LAUNCH-23
#[test]
fn a_uid_that_has_all_its_processes_already() {
    if skipped_without_root("a_uid_that_has_all_its_processes_already") {
        return;
    }
    let mut wanted = sh("echo up; exec sleep 1000");
    wanted.identity = Some(nobody(8));
    let first = start(&wanted).unwrap();
    line(&first.stdout);
    wanted.limits.nproc = 0;
    let (step, reason) = refusal(&wanted);
    assert_eq!(step, "program");
    assert!(reason.contains("as many processes as it may"), "{reason}");
}

// Promises: LAUNCH-24
#[test]
fn a_stage_that_ends_without_a_word() {
    let stage = Stage::from_image(File::open("/bin/true").unwrap()).unwrap();
    let refused =
        talon_jail::spawn(&stage, &sh("exit 0"), &talon_jail::InheritedFds::default(), LONG).unwrap_err();
    assert!(matches!(refused, SpawnError::StageLost { .. }), "{refused}");
}

#[test]
fn the_stage_started_by_hand_explains_itself() {
    let output = Command::new(env!("CARGO_BIN_EXE_jail-fixture")).arg0("talon-jail-stage").output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("only `talon` starts this"), "{text}");
}
