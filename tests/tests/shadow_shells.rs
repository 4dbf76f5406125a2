//! `talon shell-init` in real shells on a terminal, and what `talon watch --dry-run` makes of their commands.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use talon_tests::{Terminal, program};
use tempfile::TempDir;

/// Only a limit for hangs, not an expectation of speed.
const WAIT: Duration = Duration::from_secs(60);

/// A watcher of one directory, and a shell in it.
struct Shell {
    dir: TempDir,
    watcher: Child,
    observations: Receiver<Value>,
    terminal: Terminal,
}

impl Shell {
    async fn start(shell: &[&str], settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let work = work(&dir);
        std::fs::create_dir(&work).expect("it can be made");
        let config = dir.path().join("watch.yaml");
        let text = format!(
            "shadow: {{ enabled: true, watchers: {{ filesystem: {{ paths: [{}] }} }} }}\n",
            work.display()
        );
        std::fs::write(&config, text).expect("it can be written");
        let mut watcher = Command::new(program("talon"))
            .args(["watch", "--dry-run", "--file"])
            .arg(&config)
            .env("XDG_RUNTIME_DIR", dir.path())
            .env("HOME", dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (sender, observations) = channel();
        let stdout = BufReader::new(watcher.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).expect("JSON"));
            }
        });
        // The socket is served before the files are watched, which is said.
        let mut said = BufReader::new(watcher.stderr.take().expect("a pipe")).lines();
        let ready = said.by_ref().map_while(Result::ok).any(|line| line.contains("watches 0 files"));
        assert!(ready, "the watcher ended");
        std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| eprintln!("{line}")));

        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).env("XDG_RUNTIME_DIR", dir.path()).env("HOME", dir.path());
        let terminal = Terminal::start(&mut command, 200, 40);
        let shell = Self { dir, watcher, observations, terminal };
        for line in settings {
            shell.run(&line.replace("TALON", program("talon").to_str().expect("text")));
        }
        shell.run(&format!("cd {}", work.display()));
        shell.run("echo rea''dy");
        shell.terminal.wait_for("the shell", |text| text.lines().any(|line| line.trim() == "ready")).await;
        shell
    }

    fn run(&self, line: &str) {
        self.terminal.press(&format!("{line}\r"));
    }

    /// The observations until the one with this trigger and subject.
    fn until(&self, trigger: &str, subject: &str) -> Vec<Value> {
        let mut found = Vec::new();
        loop {
            let observation = self.observations.recv_timeout(WAIT).unwrap_or_else(|error| {
                panic!("{trigger} of {subject}: {error}: {found:#?}\n{}", self.terminal.contents())
            });
            let is_last = observation["trigger"] == trigger && observation["subject"] == subject;
            found.push(observation);
            if is_last {
                return found;
            }
        }
    }

    fn check(&self) {
        (0..3).for_each(|_| self.run("sh -c 'exit 7'"));
        let found = self.until("repeated_failure", "sh -c 'exit 7'");
        let last = found.last().expect("it is not empty");
        assert_eq!((&last["exit_code"], &last["kind"]), (&7.into(), &"command".into()));
        assert_eq!(last["excerpt"], "sh -c 'exit 7'");
        assert_eq!(last["directory"], work(&self.dir).to_str().expect("text"));
        assert!(last["duration_ms"].as_u64().is_some_and(|ms| ms < 60_000), "{last}");
        // Commands that begin with a space are the person's own.
        (0..4).for_each(|_| self.run(" sh -c 'exit 8'"));
        // Secrets stay here.
        (0..3).for_each(|_| self.run("false --token abcd1234efgh"));
        let found = self.until("repeated_failure", "false --token [redacted: secret option]");
        let text = format!("{found:?}");
        assert!(!text.contains("exit 8") && !text.contains("abcd1234"), "{text}");
        // A test that fails after an edit.
        std::fs::write(work(&self.dir).join("a.rs"), "fn main() {}").expect("it can be written");
        self.edited();
        self.run("make test");
        let found = self.until("test_failed", "make test");
        assert_eq!(found.last().expect("it is not empty")["boundary"], "test_end");
    }

    /// A ghost that waits is shown before the next prompt, and once.
    async fn check_ghost(&self) {
        let ghost = "talon: Tests fail. Fix them?  [talon shadow show 01K0]";
        std::fs::write(self.dir.path().join("talon/ghosts"), format!("{ghost}\n"))
            .expect("it can be written");
        self.run("clear");
        self.run("echo o''ne");
        self.run("echo t''wo");
        let wanted = |text: &str| text.contains(ghost) && text.lines().any(|line| line.trim() == "two");
        let shown = self.terminal.wait_for("the ghost", wanted).await;
        assert_eq!(shown.matches(ghost).count(), 1, "{shown}");
    }

    /// Waits until the watcher has seen what was saved: a finding that is saved later comes later.
    fn edited(&self) {
        let conflict = "<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n";
        std::fs::write(work(&self.dir).join("b.rs"), conflict).expect("it can be written");
        self.until("conflict_markers", "b.rs");
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.watcher.kill();
        let _ = self.watcher.wait();
    }
}

fn work(dir: &TempDir) -> PathBuf {
    dir.path().canonicalize().expect("it is there").join("work")
}

/// Debian has it; a machine without it says so.
fn is_installed(shell: &str) -> bool {
    let is_there =
        ["/usr/bin", "/bin", "/usr/local/bin"].iter().any(|dir| Path::new(dir).join(shell).exists());
    if !is_there {
        eprintln!("skipped: no {shell}; tests/scripts/deps.sh test installs it");
    }
    is_there
}

// Promises: SHADOW-78, SHADOW-74, SHADOW-83
#[tokio::test]
async fn bash_reports_its_commands() {
    // As Debian sets it: repeated commands and those with a space are not in the history.
    let settings = ["HISTCONTROL=ignoreboth", "PROMPT_COMMAND='true'", "eval \"$(TALON shell-init bash)\""];
    let shell = Shell::start(&["bash", "--norc", "-i"], &settings).await;
    shell.check();
    shell.check_ghost().await;
}

// Promises: SHADOW-78
#[tokio::test]
async fn bash_reports_beside_other_prompt_commands() {
    let settings = ["PROMPT_COMMAND=(true 'false')", "eval \"$(TALON shell-init bash)\"", "PS0=\"$PS0\""];
    Shell::start(&["bash", "--norc", "-i"], &settings).await.check();
}

// Promises: SHADOW-78, SHADOW-74, SHADOW-83
#[tokio::test]
async fn zsh_reports_its_commands() {
    if is_installed("zsh") {
        let settings = ["setopt hist_ignore_space hist_ignore_dups", "eval \"$(TALON shell-init zsh)\""];
        let shell = Shell::start(&["zsh", "-f", "-i"], &settings).await;
        shell.check();
        shell.check_ghost().await;
    }
}

// Promises: SHADOW-78, SHADOW-74, SHADOW-83
#[tokio::test]
async fn fish_reports_its_commands() {
    if is_installed("fish") {
        let shell = Shell::start(&["fish", "--no-config", "-i"], &["TALON shell-init fish | source"]).await;
        shell.check();
        shell.check_ghost().await;
    }
}
