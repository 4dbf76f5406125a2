//! A Valkey or Redis server of this machine.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use talon_tests::{Scratch, skip};

/// The server, if this machine has one.
fn server_program() -> Option<PathBuf> {
    let dirs = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
    let programs = ["valkey-server", "redis-server"];
    let paths = programs.iter().flat_map(|name| dirs.map(|dir| Path::new(dir).join(name)));
    paths.into_iter().find(|path| path.is_file())
}

/// A server on a unix socket, with its data in a directory.
pub(crate) struct Server {
    child: Child,
    program: PathBuf,
    pub(crate) dir: PathBuf,
    settings: Vec<String>,
}

impl Server {
    /// One that keeps what it acknowledges, or says so otherwise with other `settings`.
    pub(crate) fn start(test: &str, scratch: &Scratch, settings: &[&str]) -> Option<Self> {
        let Some(program) = server_program() else {
            skip(test, "no valkey-server or redis-server: tests/scripts/deps.sh test installs one");
            return None;
        };
        let dir = scratch.join("valkey");
        std::fs::create_dir_all(&dir).expect("the scratch directory takes directories");
        let settings: Vec<String> = settings.iter().map(|word| (*word).to_owned()).collect();
        let child = Self::run(&program, &dir, &settings);
        Some(Self { child, program, dir, settings })
    }

    fn run(program: &Path, dir: &Path, settings: &[String]) -> Child {
        let log = std::fs::File::create(dir.join("log")).expect("the directory takes files");
        Command::new(program)
            .current_dir(dir)
            .args(["--port", "0", "--unixsocketperm", "777", "--save", "", "--appendonly", "yes"])
            .args(["--appendfsync", "always", "--unixsocket"])
            .arg(dir.join("socket"))
            .arg("--dir")
            .arg(dir)
            .args(settings)
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .expect("the server starts")
    }

    /// Limits its memory: with a limit of one byte it takes no further writes, with 0 all.
    pub(crate) fn limit_memory(&self, bytes: u64) {
        self.say(&format!("CONFIG SET maxmemory {bytes}\r\n"), "+OK\r\n");
    }

    /// Says something to it, as it is written on the wire, and waits for the last answer, which ends like this.
    pub(crate) fn say(&self, lines: &str, end: &str) {
        let mut stream = UnixStream::connect(self.dir.join("socket")).expect("it listens");
        stream.write_all(lines.as_bytes()).expect("it reads");
        let (mut heard, mut buffer) = (Vec::new(), [0; 1 << 16]);
        while !heard.ends_with(end.as_bytes()) {
            let count = stream.read(&mut buffer).expect("it answers");
            assert!(count > 0, "it closed the connection");
            heard.extend_from_slice(&buffer[..count]);
            let keep = heard.len().min(1 << 10);
            heard.drain(..heard.len() - keep);
        }
    }

    /// Adds settings, for the next start.
    pub(crate) fn add_settings(&mut self, settings: &[&str]) {
        self.settings.extend(settings.iter().map(|word| (*word).to_owned()));
    }

    /// Kills it and starts it again on its data.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
        self.child = Self::run(&self.program, &self.dir, &self.settings);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
