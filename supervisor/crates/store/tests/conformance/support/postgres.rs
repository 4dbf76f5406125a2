//! A PostgreSQL server of a test's own, from Debian's packages: on a socket in a scratch directory, gone with
//! the test.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::{runtime, skip};

/// `nobody`: the server refuses to run as root.
const UNPRIVILEGED: u32 = 65534;

pub(crate) struct Server {
    programs: PathBuf,
    scratch: TempDir,
    process: Option<Child>,
    databases: AtomicU32,
    /// What else the server is started with, in the form `name=value`.
    settings: Vec<String>,
    port: u16,
}

impl Server {
    /// `None` if there is no PostgreSQL here, which is said.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(programs) = programs() else {
            skip(test, "there is no PostgreSQL (apt-get install postgresql)");
            return None;
        };
        let scratch = tempfile::tempdir().unwrap();
        if nix::unistd::geteuid().is_root() {
            chown(scratch.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        }
        let mut server = Self {
            programs,
            scratch,
            process: None,
            databases: AtomicU32::new(0),
            settings: Vec::new(),
            port: 5432,
        };
        let mut initdb = server.command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=talon", "--encoding=UTF8", "--locale=C"]);
        initdb.arg("--pgdata").arg(server.data());
        let done = initdb.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        server.run();
        Some(server)
    }

    /// Starts the server itself, and waits until it answers.
    pub(crate) fn run(&mut self) {
        let log = fs::File::create(self.scratch.path().join("log")).unwrap();
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data()).arg("-k").arg(self.scratch.path());
        postgres.args(["-c", "listen_addresses=", "-c", "max_connections=40", "-c", "shared_buffers=16MB"]);
        // The machine never stops in a test: what a process wrote is there for the next one without waiting for the disk.
        postgres.args(["-c", "fsync=off", "-c", "full_page_writes=off"]);
        for setting in &self.settings {
            postgres.args(["-c", setting]);
        }
        let mut process = postgres.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let url = self.url("postgres");
        let up = runtime().block_on(async {
            let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
            for _ in 0..1500 {
                tick.tick().await;
                if tokio_postgres::connect(&url, tokio_postgres::NoTls).await.is_ok() {
                    return true;
                }
            }
            false
        });
        if !up {
            let _gone = process.kill();
            panic!("{}", fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default());
        }
        self.process = Some(process);
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // To the server: end now, with all its processes.
            let pid = nix::unistd::Pid::from_raw(process.id().cast_signed());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT).unwrap();
            process.wait().unwrap();
        }
    }

    /// The address of a new, empty database.
    pub(crate) fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Whether an extension can be created.
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        let control = self.programs.parent().and_then(Path::file_name).map(|version| {
            Path::new("/usr/share/postgresql").join(version).join("extension").join(format!("{name}.control"))
        });
        control.is_some_and(|control| control.is_file())
    }

    /// Runs SQL beside the store.
    pub(crate) fn execute(&self, database: &str, sql: &str) {
        let url = self.url(database);
        runtime().block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap();
        });
    }

    fn url(&self, database: &str) -> String {
        format!("host={} port={} user=talon dbname={database}", self.scratch.path().display(), self.port)
    }

    /// Starts it again, so that it also listens at a port of this machine; with a certificate and its key,
    /// also with TLS.
    pub(crate) fn listen(&mut self, identity: Option<(&str, &str)>) -> u16 {
        self.stop();
        // Free a moment ago; the kernel does not give the same to another soon.
        self.port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        self.settings = vec!["listen_addresses=127.0.0.1".into(), format!("port={}", self.port)];
        if let Some((certificate, key)) = identity {
            for (name, text) in [("ssl_cert_file", certificate), ("ssl_key_file", key)] {
                let file = self.scratch.path().join(name);
                fs::write(&file, text).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
                if nix::unistd::geteuid().is_root() {
                    chown(&file, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
                }
                self.settings.push(format!("{name}={}", file.display()));
            }
            self.settings.push("ssl=on".into());
        }
        self.run();
        self.port
    }

    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// A program of PostgreSQL's that ends with this test, also when the test is killed.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        if nix::unistd::geteuid().is_root() {
            command.args([format!("--reuid={UNPRIVILEGED}"), format!("--regid={UNPRIVILEGED}")]);
            command.arg("--clear-groups");
        }
        command.args(["--pdeathsig", "KILL"]).arg(self.programs.join(program));
        command.current_dir(self.scratch.path()).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
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
