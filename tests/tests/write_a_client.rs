//! `docs/write-a-client.md`: its clients in three languages, run as they are printed.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use talon_tests::{Builder, Scratch, Supervisor, program, repository, skip, target};

const PAGE: &str = "docs/write-a-client.md";

/// The first block of a language below a heading.
fn block(heading: &str, language: &str) -> String {
    let page = std::fs::read_to_string(repository().join(PAGE)).expect("the page is there");
    let section = page.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let section = section.split("\n## ").next().expect("there is a first part");
    let text = section
        .split(&format!("```{language}\n"))
        .nth(1)
        .unwrap_or_else(|| panic!("{heading}: no {language}"));
    text.split("\n```").next().expect("it ends").to_owned() + "\n"
}

/// The commands of a heading's shell block, without those whose first words say that they install something.
fn commands(heading: &str, without: &[&str]) -> String {
    let joined = block(heading, "sh").replace("\\\n", " ");
    let kept = joined.lines().filter(|line| !without.iter().any(|word| line.contains(word)));
    kept.collect::<Vec<_>>().join("\n")
}

fn is_missing(test: &str, needs: &[&Path]) -> bool {
    let lacks = needs.iter().find(|path| !path.exists());
    if let Some(path) = lacks {
        let path = path.display();
        skip(test, &format!("there is no {path} (tests/scripts/deps.sh test installs it)"));
    }
    lacks.is_some()
}

async fn serving() -> Supervisor {
    Builder::new().plugin("hello", &program("hello"), &[], "").start().await
}

/// A directory with the contract, as a client's author has it.
fn workplace() -> Scratch {
    let scratch = Scratch::new();
    symlink(repository().join("proto"), scratch.join("proto")).expect("the scratch directory takes links");
    scratch
}

/// Runs a command of the page in the workplace; it must succeed.
fn run(
    scratch: &Scratch,
    supervisor: &Supervisor,
    script: &str,
    change: impl FnOnce(&mut Command),
) -> String {
    let mut command = Command::new("sh");
    command
        .args(["-e", "-c", script])
        .current_dir(scratch.path())
        .env("TALON_HOST_SOCKET", supervisor.socket());
    change(&mut command);
    let output = command.output().expect("a shell starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{stderr}");
    String::from_utf8(output.stdout).expect("it prints text")
}

const SAID: &str = "hello ready\nHello, Ada!\n";

// Promises: OTHER-15
#[tokio::test]
async fn python() {
    let venv = target().join("egress/python/bin");
    if is_missing("python", &[&venv.join("python")]) {
        return;
    }
    let (supervisor, scratch) = (serving().await, workplace());
    scratch.write("client.py", &block("Python", "python"));
    let path = format!("{}:/usr/bin:/bin", venv.display());
    let said = run(&scratch, &supervisor, &commands("Python", &["pip install"]), |command| {
        command.env("PATH", &path);
    });
    assert_eq!(said, SAID);
    // What the page says of the authority is still so: without it there is no answer.
    let without = block("Python", "python").replace("options=options", "options=[]");
    scratch.write("client.py", &without);
    let script = "! python client.py 2>error.txt && cat error.txt";
    let said = run(&scratch, &supervisor, script, |command| {
        command.env("PATH", &path);
    });
    assert!(said.contains("grpc.RpcError") || said.contains("_InactiveRpcError"), "{said}");
}

// Promises: OTHER-15
#[tokio::test]
async fn go() {
    const LIBRARIES: &str = "/usr/share/gocode";
    let grpc = Path::new(LIBRARIES).join("src/google.golang.org/grpc");
    let needs = ["/usr/bin/go", "/usr/bin/protoc", "/usr/bin/protoc-gen-go", "/usr/bin/protoc-gen-go-grpc"];
    let mut needs: Vec<&Path> = needs.iter().map(Path::new).collect();
    needs.push(&grpc);
    if is_missing("go", &needs) {
        return;
    }
    let (supervisor, scratch) = (serving().await, workplace());
    scratch.write("client.go", &block("Go", "go"));
    // Debian's libraries are in a GOPATH, where an import's path is that below `src`.
    let script = format!("mkdir src\n{}\ngo run client.go", commands("Go", &[]));
    let said = run(&scratch, &supervisor, &script, |command| {
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", scratch.path())
            .env("TALON_HOST_SOCKET", supervisor.socket())
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0")
            .env("GOCACHE", target().join("go/cache"))
            .env("GOPATH", format!("{}:{LIBRARIES}", scratch.path().display()));
    });
    assert_eq!(said, SAID);
}

// Promises: OTHER-15
#[tokio::test]
async fn node() {
    let modules = target().join("node/node_modules");
    if is_missing("node", &[Path::new("/usr/bin/node"), &modules.join("@grpc/grpc-js")]) {
        return;
    }
    let (supervisor, scratch) = (serving().await, workplace());
    scratch.write("client.js", &block("Node", "js"));
    symlink(&modules, scratch.join("node_modules")).expect("the scratch directory takes links");
    let said = run(&scratch, &supervisor, &commands("Node", &["npm install"]), |_| {});
    assert_eq!(said, SAID);
}
