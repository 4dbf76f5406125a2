//! A private PostgreSQL server for a test, from Debian's packages: on a loopback port, removed with the test.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use talon_harness::is_root;

/// The uid of Debian's unprivileged user: the server refuses to run as root.
const UNPRIVILEGED: u32 = 65534;

/// A server that is ready to be started, with an empty database.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    scratch: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Postgres {
    /// Prepares a server.
    ///
    /// # Errors
    /// Why there is none here.
    ///
    /// # Panics
    /// When its directory cannot be used.
    pub fn prepare() -> Result<Self, &'static str> {
        let programs = programs().ok_or("there is no PostgreSQL (apt-get install postgresql)")?;
        if !matches!(nix::unistd::User::from_uid(nix::unistd::geteuid()), Ok(Some(_))) {
            return Err("PostgreSQL does not run as a user without a name, as this one is");
        }
        let scratch = tempfile::Builder::new().prefix("talon-pg-").tempdir_in("/tmp");
        let scratch = scratch.expect("/tmp takes a directory");
        if is_root() {
            chown(scratch.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED))
                .expect("root may give its directory away");
        }
        // Free a moment ago, and the kernel assigns others first.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
        let port = port.expect("a port is free").port();
        let server = Self { programs, scratch, port, process: None };
        let mut initdb = server.command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=talon", "--encoding=UTF8", "--locale=C"]);
        let done = initdb.arg("--pgdata").arg(server.data()).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(server)
    }

    /// Starts the server. It answers a moment later.
    ///
    /// # Panics
    /// When it does not start.
    pub fn run(&mut self) {
        let log = fs::File::create(self.scratch.path().join("log")).expect("it is our directory");
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data()).arg("-k").arg(self.scratch.path());
        postgres.args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        postgres.args(["-c", "max_connections=40", "-c", "shared_buffers=16MB"]);
        self.process = Some(postgres.stdout(Stdio::null()).stderr(log).spawn().expect("it starts"));
    }

    /// Ends it at once, as a crash does.
    ///
    /// # Panics
    /// When it is not our process any more.
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Immediate shutdown of the server with all its processes.
            kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGQUIT).expect("it runs");
            process.wait().expect("it is ours");
        }
    }

    /// The address of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgresql://talon@127.0.0.1:{}/postgres", self.port)
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }

    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// A PostgreSQL program that ends with this test, even if the test is killed.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        if is_root() {
            command.args([format!("--reuid={UNPRIVILEGED}"), format!("--regid={UNPRIVILEGED}")]);
            command.arg("--clear-groups");
        }
        command.args(["--pdeathsig", "KILL"]).arg(self.programs.join(program));
        command.current_dir(self.scratch.path()).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The newest version that is installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(Path::new("/usr/lib/postgresql")).ok()?;
    let mut found: Vec<(u32, PathBuf)> = versions
        .flatten()
        .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin"))))
        .filter(|(_, programs)| programs.join("initdb").is_file() && programs.join("postgres").is_file())
        .collect();
    found.sort_unstable();
    found.pop().map(|(_, programs)| programs)
}
