//! A watcher in a dry run: what it would send, as it comes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Only a limit for hangs, not an expectation of speed.
const WAIT: Duration = Duration::from_secs(60);

/// A running watcher, and the directory that it watches.
pub(crate) struct Watcher {
    pub(crate) dir: TempDir,
    /// The watched directory, canonical.
    pub(crate) work: PathBuf,
    /// A watched directory outside of all repositories.
    side: PathBuf,
    child: Child,
    observations: Receiver<Value>,
    said: Receiver<String>,
    /// Everything that was said so far.
    pub(crate) heard: Vec<String>,
}

impl Watcher {
    /// Watches an empty directory.
    pub(crate) fn start() -> Self {
        Self::prepared("", |_| ())
    }

    /// Prepares the watched directory first, and adds lines below `shadow:`, which are indented by two.
    pub(crate) fn prepared(config: &str, prepare: impl FnOnce(&Path)) -> Self {
        Self::started_by(&[], config, prepare)
    }

    /// The same, started by another program with these arguments.
    pub(crate) fn started_by(starter: &[&str], config: &str, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let work = dir.path().canonicalize().expect("it is there").join("work");
        let side = work.with_file_name("side");
        for place in [&work, &side] {
            std::fs::create_dir_all(place).expect("it can be made");
        }
        prepare(&work);
        let file = dir.path().join("watch.yaml");
        let watchers = "watchers: { filesystem: { paths: [WORK, SIDE] } }";
        let config =
            if config.contains("watchers:") { config.to_owned() } else { format!("  {watchers}\n{config}") };
        let text = format!("shadow:\n  enabled: true\n{config}")
            .replace("paths: [WORK]", "paths: [WORK, SIDE]")
            .replace("SIDE", side.to_str().expect("text"))
            .replace("WORK", work.to_str().expect("text"));
        std::fs::write(&file, text).expect("it can be written");
        let mut program = starter.to_vec();
        program.push(env!("CARGO_BIN_EXE_talon-watch"));
        let mut child = Command::new(program[0])
            .args(&program[1..])
            .args(["--dry-run", "--config"])
            .arg(&file)
            .env("XDG_RUNTIME_DIR", dir.path())
            .env("HOME", dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (sender, observations) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let (sender, said) = channel();
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                eprintln!("{line}");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut watcher = Self { dir, work, side, child, observations, said, heard: Vec::new() };
        watcher.wait_said("watches ");
        watcher
    }

    /// Waits until it says a line with this text.
    pub(crate) fn wait_said(&mut self, text: &str) -> String {
        if let Some(line) = self.heard.iter().find(|line| line.contains(text)) {
            return line.clone();
        }
        loop {
            let line = self
                .said
                .recv_timeout(WAIT)
                .unwrap_or_else(|error| panic!("{text}: {error}: {:?}", self.heard));
            self.heard.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Everything that it says until it rests for a moment; for lines that are only counted.
    pub(crate) fn said_so_far(&mut self) -> &[String] {
        while let Ok(line) = self.said.try_recv() {
            self.heard.push(line);
        }
        &self.heard
    }

    /// The next observation of a detector, or of a boundary that is wanted; others are passed over.
    pub(crate) fn next(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + WAIT;
        let mut others = Vec::new();
        loop {
            match self.observations.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(observation) if wanted(&observation) => return observation,
                Ok(other) => others.push(other),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("it did not come: {others:#?}")
                }
            }
        }
    }

    /// The next one with this trigger.
    pub(crate) fn trigger(&self, trigger: &str) -> Value {
        self.next(|observation| observation["trigger"] == trigger)
    }

    /// Saves a file that is sure to be a finding, waits for that, and returns all findings that came before.
    pub(crate) fn findings_until_now(&self) -> Vec<Value> {
        let path = self.side.join(format!("sentinel-{}.txt", ulid()));
        std::fs::write(&path, CONFLICT).expect("it can be written");
        let name = path.file_name().and_then(|name| name.to_str()).expect("text").to_owned();
        let mut found = Vec::new();
        loop {
            let observation = self.next(|observation| observation["trigger"] != "");
            if observation["subject"] == name.as_str() {
                return found;
            }
            found.push(observation);
        }
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it is ours")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// A number of a line of /proc/PID/status.
    pub(crate) fn status(&self, key: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix(key)).expect("the key is there");
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number")
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed()).expect("a pid is no zero")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Also one that was stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A conflict, as a detector finds it.
pub(crate) const CONFLICT: &str = "one\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> topic\n";

fn ulid() -> String {
    format!(
        "{:x}",
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after").as_nanos()
    )
}
