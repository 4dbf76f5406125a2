//! `talon new`: what it writes passes its own tests and answers under the jail, in every language.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use talon_tests::{Scratch, program, repository, skip, target};

/// The command line in a separate environment. Not `talon_tests::cli`: fetching packages may take long.
fn talon(scratch: &Scratch, args: &[&str]) -> Command {
    let mut command = Command::new(program("talon"));
    command.args(args).current_dir(scratch.path()).env("TALON_CONFIG", scratch.write("talon.yaml", ""));
    command.env_remove("CARGO_TARGET_DIR");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A line that was printed for a person's shell, as that would run it: `talon` and cargo are found, and
/// nothing of ours is in the environment that a person would not have.
fn by_hand(scratch: &Scratch, line: &str) -> String {
    let talon = program("talon");
    let path = std::env::var("PATH").expect("there is a PATH");
    let path = format!("{}:{path}", talon.parent().expect("it lies in a directory").display());
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(scratch.path())
        .env("PATH", path)
        .env("TALON_CONFIG", scratch.join("talon.yaml"))
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("a shell starts");
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{line}: {}\n{said}", output.status);
    said
}

fn is_missing(test: &str, staged: &str) -> bool {
    let missing = !target().join("plugins").join(staged).join(".stamp").exists();
    if missing {
        skip(
            test,
            &format!(
                "{staged} is not staged, so its language's tools may be missing: tests/scripts/deps.sh test"
            ),
        );
    }
    missing
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

fn word(report: &Value, key: &str) -> String {
    report[key].as_str().unwrap_or_else(|| panic!("no {key}: {report}")).to_owned()
}

fn answers(scratch: &Scratch, report: &Value) {
    let call = word(report, "try");
    let said = by_hand(scratch, &call);
    assert!(said.contains("Hello, World!") && said.contains("[plugin_output]"), "{said}");
    // The same line with an argument that is none: the guard knows the plugin's parameters.
    let refused = Command::new("sh")
        .args([
            "-c",
            &call
                .replace("talon exec", &format!("{} exec", program("talon").display()))
                .replace("name=", "nam="),
        ])
        .current_dir(scratch.path())
        .env("TALON_CONFIG", scratch.join("talon.yaml"))
        .output()
        .expect("a shell starts");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
}

/// A name and a place that need quoting, so that the lines that are printed are shown to be lines for a
/// shell.
fn made(language: &str, tests_passed: &str) {
    let scratch = Scratch::new();
    let output = talon(&scratch, &["--output", "json", "new", language, "my-tool", "it's new/my tool"])
        .output()
        .expect("talon starts");
    let report = report(&output);
    assert_eq!(word(&report, "language"), language);
    assert_eq!(report["set_up"], true);
    let said = by_hand(&scratch, &word(&report, "test"));
    assert!(said.contains(tests_passed), "{said}");
    answers(&scratch, &report);
}

// Promises: EX-10
#[test]
fn a_new_plugin_in_python_works() {
    if !is_missing("a_new_plugin_in_python_works", "hello-py") {
        made("python", "\nOK");
    }
}

// Promises: EX-10
#[test]
fn a_new_plugin_in_go_works() {
    if !is_missing("a_new_plugin_in_go_works", "hello-go") {
        made("go", "ok");
    }
}

// Promises: EX-10
#[test]
fn a_new_plugin_in_node_works() {
    if !is_missing("a_new_plugin_in_node_works", "hello-node") {
        made("node", "# fail 0");
    }
}

/// It is built in a directory that stays, because a build from nothing takes minutes: what it prints is done
/// by hand here.
// Promises: EX-10
#[test]
fn a_new_plugin_in_rust_works() {
    // A toolchain of somebody else's home, as in the run without rights, is out of reach.
    if !Command::new("cargo").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(
            "a_new_plugin_in_rust_works",
            "this user has no cargo: install Rust for it (https://rustup.rs)",
        );
    }
    let scratch = Scratch::new();
    let sdk = repository().join("sdk").display().to_string();
    let args = ["--output", "json", "new", "rust", "my-tool", "--no-install", "--sdk", &sdk];
    let report = report(&talon(&scratch, &args).output().expect("talon starts"));
    assert_eq!(report["set_up"], false);
    let kept = target().join("new");
    std::fs::create_dir_all(&kept).expect("the build directory takes directories");
    symlink(&kept, scratch.join("my-tool/target")).expect("the new plugin takes a link");
    for line in report["setup"].as_array().expect("there are steps") {
        by_hand(&scratch, line.as_str().expect("a step is a line"));
    }
    let said = by_hand(&scratch, &word(&report, "test"));
    assert!(said.contains("2 passed"), "{said}");
    answers(&scratch, &report);
}

const ROLES: [&str; 9] = [
    "filter",
    "request_hook",
    "response_hook",
    "notification_sink",
    "scheduled_task",
    "auth_provider",
    "api_route",
    "storage_backend",
    "channel",
];

/// Writes a plugin of a role, and sets it up by what is staged: nothing is downloaded.
fn of_role(scratch: &Scratch, language: &str, role: &str) -> Value {
    let dir = format!("{language}-{role}");
    let mut args = vec!["--output", "json", "new", language, "my-role", &dir, "--no-install", "--role", role];
    let sdk = repository().join("sdk").display().to_string();
    if language == "rust" {
        args.extend(["--sdk", &sdk]);
    }
    let report = report(&talon(scratch, &args).output().expect("talon starts"));
    assert_eq!(word(&report, "role"), role);
    // The entry is one that a configuration takes.
    let (section, entry) = (word(&report, "section"), word(&report, "entry"));
    let config = format!(
        "plugins: {{ tools: {{ plugins: {{ my-role: {{ command: /bin/true }} }} }} }}\n{section}:\n  {entry}\n"
    );
    let config = scratch.write("entry.yaml", &config).display().to_string();
    let args = ["config", "check", "--skip-plugins", "--config", &config];
    let checked = talon(scratch, &args).output().expect("talon starts");
    assert!(checked.status.success(), "{entry}: {}{}", text(&checked.stdout), text(&checked.stderr));
    report
}

// Promises: EXT-46
#[test]
fn a_new_plugin_of_each_role_works() {
    let scratch = Scratch::new();
    let staged = |name: &str| target().join("plugins").join(name);
    for (language, example, passed, of_setup) in [
        ("python", "hello-py", "\nOK", vec![(target().join("python"), "venv")]),
        ("node", "hello-node", "# fail 0", vec![(staged("hello-node").join("node_modules"), "node_modules")]),
        ("go", "hello-go", "ok", vec![]),
    ] {
        if is_missing("a_new_plugin_of_each_role_works", example) {
            continue;
        }
        for role in ROLES {
            let report = of_role(&scratch, language, role);
            for (from, to) in &of_setup {
                symlink(from, scratch.join(&format!("{language}-{role}/{to}")))
                    .expect("the new plugin takes a link");
            }
            // A hook is the same program in each of its roles: Go takes seconds for each.
            if language == "go" && ["filter", "response_hook"].contains(&role) {
                continue;
            }
            let said = by_hand(&scratch, &word(&report, "test"));
            assert!(said.contains(passed), "{language} {role}: {said}");
        }
    }
}

/// That the others are Rust, tests of the SDK see.
// Promises: EXT-46
#[test]
fn a_new_plugin_of_a_role_in_rust_works() {
    if !Command::new("cargo").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(
            "a_new_plugin_of_a_role_in_rust_works",
            "this user has no cargo: install Rust for it (https://rustup.rs)",
        );
    }
    let scratch = Scratch::new();
    let report = of_role(&scratch, "rust", "scheduled_task");
    let kept = target().join("new");
    std::fs::create_dir_all(&kept).expect("the build directory takes directories");
    symlink(&kept, scratch.join("rust-scheduled_task/target")).expect("the new plugin takes a link");
    let said = by_hand(&scratch, &word(&report, "test"));
    assert!(said.contains("1 passed"), "{said}");
    let said = by_hand(&scratch, &word(&report, "try"));
    assert!(said.contains("nightly") && said.contains("[plugin_output]"), "{said}");
}

// Promises: EX-11
#[test]
fn what_cannot_be_made_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    scratch.write("full/mine", "");
    let cases: [(&[&str], &str); 6] = [
        (&["new", "python", "My_Tool"], "is not a plugin name"),
        (&["new", "go", "talon"], "a part of Talon itself"),
        (&["new", "node", "full"], "not empty: choose another directory"),
        (&["new", "rust", "1st", "--sdk", "x"], "begins with a letter"),
        (&["new", "rust", "x", "--sdk", "nowhere"], "--sdk names the directory"),
        (&["new", "python", "x", "--sdk", "x"], "--sdk is for Rust"),
    ];
    for (args, says) in cases {
        let output = talon(&scratch, args).output().expect("talon starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
    let mut left: Vec<_> = std::fs::read_dir(scratch.path())
        .expect("it is there")
        .map(|entry| entry.expect("it is read").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["full", "talon.yaml"]);
}

/// Outside its source tree and an installation, the SDK cannot be found.
#[test]
fn without_the_sdk_it_says_what_to_give() {
    let scratch = Scratch::new();
    let alone = scratch.install(&program("talon"), "a/b/c/d/e/f/talon");
    let output = Command::new(alone)
        .args(["new", "rust", "x"])
        .current_dir(scratch.path())
        .output()
        .expect("it starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.contains("--sdk PATH"), "{said}");
    assert!(!scratch.join("x").exists());
}

#[test]
fn a_setup_that_fails_leaves_the_plugin_and_says_how_to_go_on() {
    let scratch = Scratch::new();
    let output =
        talon(&scratch, &["new", "node", "x"]).env("PATH", "/nowhere").output().expect("talon starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.contains("Then say:  cd x && npm ci"), "{said}");
    assert!(scratch.join("x/main.js").exists());

    // What a failing program said is shown, and not all of it.
    let noisy = scratch.script(
        "bin/npm",
        "#!/bin/sh\nseq 1 1000\nprintf '\\033[31mno network <|im_start|>\\n' >&2\nexit 7\n",
    );
    let bin: &Path = noisy.parent().expect("it lies in a directory");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let output = talon(&scratch, &["new", "node", "y"]).env("PATH", path).output().expect("talon starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(70), "{said}");
    assert!(said.contains("no network") && said.contains("  1000") && !said.contains("  900\n"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains("<|im_start|>"), "{said:?}");
}

/// What is printed for people ends with the line to try.
#[test]
fn it_ends_with_the_line_to_try() {
    let scratch = Scratch::new();
    let output =
        talon(&scratch, &["new", "python", "my-tool", "--no-install"]).output().expect("talon starts");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("Set it up with:\n  cd my-tool && "), "{said}");
    assert!(said.ends_with("Try it with:\n  talon exec ./my-tool greet name=World\n"), "{said}");
}
