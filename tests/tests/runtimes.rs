//! Programs of every common runtime, in the jail that plugins get by default: what they lean on works in it,
//! from threads to their compilers.
//!
//! The programs lie in `tests/runtimes/`. Each tries one thing after the other, says what works, and fails at
//! the first that does not. `tests/scripts/deps.sh test` installs the runtimes; without one its test is
//! skipped by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use talon_jail::{Access, ExitStatus, Network, Status};
use talon_tests::{JailedFixture, Outcome, Scratch, repository, skip, target};

/// What a program says last.
const DONE: &str = "all of it works\n";

/// The first of the uids of these tests, far from those of supervisors under test. Each test has the next.
const FIRST_UID: u32 = 91_000;

/// Room for what PyInstaller unpacks: 8 MiB packed are 20 MiB unpacked here, and larger programs exist.
const UNPACKED_BYTES: u64 = 256 << 20;

const PYTHON: &str = "/usr/bin/python3";
const NODE: &str = "/usr/bin/node";
const GO: &str = "/usr/bin/go";
const JAVA: &str = "/usr/bin/java";

fn strict(test: u32, argv: &[&Path]) -> JailedFixture {
    JailedFixture::new(FIRST_UID + test, "strict", Network::None, argv)
}

fn source(name: &str) -> PathBuf {
    repository().join("tests/runtimes").join(name)
}

/// Copies a program to a separate directory that every uid can read.
fn copied(scratch: &Scratch, name: &str) -> PathBuf {
    let text = std::fs::read_to_string(source(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    scratch.write(&format!("program/{name}"), &text)
}

fn is_missing(test: &str, program: impl AsRef<Path>, package: &str) -> bool {
    let missing = !program.as_ref().exists();
    if missing {
        let program = program.as_ref().display();
        skip(test, &format!("there is no {program} (tests/scripts/deps.sh test installs {package})"));
    }
    missing
}

/// Runs something that prepares a program, outside of the jail.
fn prepare(scratch: &Scratch, program: impl AsRef<Path>, change: impl FnOnce(&mut Command) -> &mut Command) {
    let mut command = Command::new(program.as_ref());
    // Of a build machine's settings for these tools none is wanted.
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", scratch.path()).current_dir(scratch.path());
    let output = change(&mut command).output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn all_works(outcome: &Outcome) {
    let Outcome { stdout, stderr, status, report } = outcome;
    let whole = *status == ExitStatus::Code(0) && stdout.ends_with(DONE);
    assert!(whole, "{status}\n{stdout}\n{stderr}\n{report:#?}");
    // It ran in the jail and not beside it.
    for name in ["namespaces", "filesystem", "network", "system-calls"] {
        let held = report.iter().any(|line| line.name == name && matches!(line.status, Status::Enforced));
        assert!(held, "{name}: {report:#?}");
    }
    // Of a directory that was granted it can only say that sockets in it are not covered, on most kernels.
    let landlock = report.iter().find(|line| line.name == "landlock").map(|line| &line.status);
    assert!(matches!(landlock, Some(Status::Enforced | Status::StandIn(_))), "{report:#?}");
}

// Promises: JAIL-30
#[test]
fn python_in_a_virtual_environment() {
    let test = "python_in_a_virtual_environment";
    if is_missing(test, PYTHON, "python3") {
        return;
    }
    let scratch = Scratch::new();
    let venv = scratch.join("program/venv");
    prepare(&scratch, PYTHON, |command| command.args(["-m", "venv"]).arg(&venv));
    // A package as pip installs it, made here so that nothing is downloaded.
    let wheel = scratch.join("greeting-1.0-py3-none-any.whl");
    prepare(&scratch, PYTHON, |command| command.arg(source("wheel.py")).arg(&wheel));
    let offline = ["install", "--quiet", "--no-index", "--disable-pip-version-check"];
    prepare(&scratch, venv.join("bin/pip"), |command| command.args(offline).arg(&wheel));
    let program = copied(&scratch, "python.py");
    let jail = strict(0, &[&venv.join("bin/python"), &program]);
    all_works(&jail.with_view(&scratch.join("program"), Access::Execute).run());
}

// Promises: JAIL-30
#[test]
fn node() {
    if is_missing("node", NODE, "nodejs") {
        return;
    }
    let scratch = Scratch::new();
    let program = copied(&scratch, "node.js");
    let jail = strict(1, &[Path::new(NODE), &program]);
    all_works(&jail.with_view(&scratch.join("program"), Access::Read).run());
}

// Promises: JAIL-30
#[test]
fn go() {
    if is_missing("go", GO, "golang-go") {
        return;
    }
    let scratch = Scratch::new();
    let program = scratch.join("program/main");
    // Without cgo, as most plugins are built: the runtime then makes its threads and calls itself.
    prepare(&scratch, GO, |command| {
        let command = command.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=mod").env("GOPROXY", "off");
        command.args(["build", "-o"]).arg(&program).arg(source("main.go"))
    });
    all_works(&strict(2, &[&program]).with_view(&scratch.join("program"), Access::Execute).run());
}

// Promises: JAIL-30
#[test]
fn java() {
    if is_missing("java", JAVA, "default-jre-headless") {
        return;
    }
    let scratch = Scratch::new();
    // Compiled in the jail, which is the largest Java program at hand.
    let program = copied(&scratch, "Main.java");
    let jail = strict(3, &[Path::new(JAVA), &program]);
    all_works(&jail.with_view(&scratch.join("program"), Access::Read).run());
}

/// One file that unpacks itself into TMPDIR and runs from there.
// Promises: JAIL-30
#[test]
fn pyinstaller_works_with_tmp_exec_and_says_what_it_lacks_without() {
    let test = "pyinstaller_works_with_tmp_exec_and_says_what_it_lacks_without";
    let packer = target().join("runtimes/pyinstaller/bin/pyinstaller");
    if is_missing(test, &packer, "pyinstaller from PyPI") {
        return;
    }
    let scratch = Scratch::new();
    let program = scratch.join("program/onefile");
    prepare(&scratch, packer, |command| {
        let command = command.env("PYINSTALLER_CONFIG_DIR", scratch.join("cache"));
        let command = command.args(["--onefile", "--log-level", "ERROR", "--name", "onefile", "--distpath"]);
        let command = command.arg(scratch.join("program")).arg("--workpath").arg(scratch.join("work"));
        command.arg("--specpath").arg(scratch.path()).arg(source("onefile.py"))
    });
    let jail = || strict(4, &[&program]).with_view(&scratch.join("program"), Access::Execute);
    all_works(&jail().tmp_exec(UNPACKED_BYTES).run());

    let outcome = jail().run();
    assert!(matches!(outcome.status, ExitStatus::Code(code) if code != 0), "{outcome:#?}");
    assert!(!outcome.stdout.contains("works"), "{outcome:#?}");
    // The words of the dynamic linker, about a TMPDIR from which nothing may be executed.
    assert!(outcome.stderr.contains("failed to map segment"), "{outcome:#?}");
}
