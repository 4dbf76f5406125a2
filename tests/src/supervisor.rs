//! A real `talon serve` for one test.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::Client;
use crate::processes::{alive, descendants, in_uid_range, is_root};
use crate::scratch::{Scratch, program};
use crate::uids::Uids;

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Configures a supervisor.
#[derive(Debug)]
pub struct Builder {
    scratch: Scratch,
    plugins: String,
    tools: String,
    state: String,
    config: String,
    env: Vec<(String, String)>,
    runtime_dir: Option<PathBuf>,
    wrapper: Vec<String>,
    serve_args: Vec<String>,
    wait_settled: bool,
    uids: Uids,
}

/// A running supervisor. Dropping it kills it; [`Supervisor::stop`] ends it properly and checks what it
/// leaves behind.
#[derive(Debug)]
pub struct Supervisor {
    /// Its scratch directory.
    pub scratch: Scratch,
    /// A client of its socket.
    pub client: Client,
    child: Child,
    runtime_dir: PathBuf,
    config: PathBuf,
    uids: Uids,
    log: Arc<Mutex<String>>,
    /// Ends when all of the log is read.
    reader: tokio::task::JoinHandle<()>,
}

/// What a stopped supervisor left behind.
#[derive(Debug)]
pub struct Stopped {
    /// How it ended.
    pub status: ExitStatus,
    /// Processes of its plugins that still live.
    pub processes: Vec<u32>,
    /// Files left in its runtime directory.
    pub sockets: Vec<PathBuf>,
    /// All it logged.
    pub log: String,
    /// What the next one can continue with.
    pub left: Leftovers,
}

/// What a supervisor leaves for the next one: its files, and the uids that own them.
#[derive(Debug)]
pub struct Leftovers {
    scratch: Scratch,
    uids: Uids,
}

/// Another `talon serve` on the files of a running one.
#[derive(Debug)]
pub struct SiblingSupervisor {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: tokio::task::JoinHandle<()>,
}

impl SiblingSupervisor {
    /// Its process id.
    ///
    /// # Panics
    /// When it has been waited for.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("it runs");
    }

    /// What it logged so far.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().expect("no reader panics").clone()
    }

    /// Waits until it has logged this.
    ///
    /// # Panics
    /// When it does not.
    pub async fn wait_log(&self, text: &str) {
        wait_for_log(&self.log, text).await;
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        let waited = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await;
        let status =
            waited.unwrap_or_else(|_| panic!("talon did not end:\n{}", self.log())).expect("it is ours");
        let _ = tokio::time::timeout(WAIT_TIMEOUT, &mut self.reader).await;
        (status, self.log())
    }
}

/// There is no notification of a log line: polls until it is there.
async fn wait_for_log(log: &Mutex<String>, text: &str) {
    let looks = async {
        let mut pause = tokio::time::interval(Duration::from_millis(10));
        while !log.lock().expect("no reader panics").contains(text) {
            pause.tick().await;
        }
    };
    if tokio::time::timeout(WAIT_TIMEOUT, looks).await.is_err() {
        panic!("{text:?} was not logged:\n{}", log.lock().expect("no reader panics"));
    }
}

impl Leftovers {
    /// The scratch directory.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A supervisor without plugins.
    #[must_use]
    pub fn new() -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("plugins")).expect("the scratch directory takes directories");
        Self::on_leftovers(Leftovers { scratch, uids: Uids::few() })
    }

    /// A supervisor without plugins, on the data of a running one and with its uids, which it must not get.
    #[must_use]
    pub fn sibling_of(supervisor: &Supervisor) -> Self {
        let builder = Self { uids: supervisor.uids.clone(), ..Self::new() };
        builder.state(&format!("data_dir: {}/data", supervisor.scratch.path().display()))
    }

    /// A supervisor without plugins, on what an earlier one left.
    #[must_use]
    pub fn on_leftovers(Leftovers { scratch, uids }: Leftovers) -> Self {
        Self {
            scratch,
            uids,
            plugins: String::new(),
            tools: String::new(),
            state: String::new(),
            config: String::new(),
            env: Vec::new(),
            runtime_dir: None,
            wrapper: Vec::new(),
            serve_args: Vec::new(),
            wait_settled: true,
        }
    }

    /// Reserves uids for this many plugins, if a test's usual range is too small.
    ///
    /// # Panics
    /// For more than a thousand.
    #[must_use]
    pub fn room_for(mut self, plugins: usize) -> Self {
        self.uids = Uids::many(plugins);
        self
    }

    /// Its scratch directory.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Adds a plugin by config; `more` holds further lines of its entry, such as `instances: 2`.
    #[must_use]
    pub fn plugin(mut self, name: &str, command: &Path, args: &[&str], more: &str) -> Self {
        let args: Vec<String> = args.iter().map(|arg| format!("{arg:?}")).collect();
        let _ = writeln!(
            self.plugins,
            "      {name}:\n        command: {command:?}\n        args: [{}]",
            args.join(", ")
        );
        for line in more.lines() {
            let _ = writeln!(self.plugins, "        {line}");
        }
        self
    }

    /// Adds an MCP server by URL.
    #[must_use]
    pub fn url(mut self, name: &str, url: &str, more: &str) -> Self {
        let _ = writeln!(self.plugins, "      {name}:\n        url: {url:?}");
        for line in more.lines() {
            let _ = writeln!(self.plugins, "        {line}");
        }
        self
    }

    /// Adds the misbehaving plugin under its own name.
    #[must_use]
    pub fn misbehave(self, args: &[&str], more: &str) -> Self {
        self.plugin("misbehave", &program("misbehave"), args, more)
    }

    /// Puts a program into the plugin directory.
    #[must_use]
    pub fn installed(self, path: &Path, name: &str) -> Self {
        self.scratch.install(path, &format!("plugins/{name}"));
        self
    }

    /// Puts a link to a plugin into the plugin directory.
    ///
    /// # Panics
    /// When the scratch directory takes none.
    #[must_use]
    pub fn linked(self, path: &Path, name: &str) -> Self {
        std::os::unix::fs::symlink(path, self.scratch.join("plugins").join(name))
            .expect("the scratch directory takes links");
        self
    }

    /// Lines below `plugins.tools`.
    #[must_use]
    pub fn tools(mut self, lines: &str) -> Self {
        for line in lines.lines() {
            let _ = writeln!(self.tools, "    {line}");
        }
        self
    }

    /// Lines below `state`.
    #[must_use]
    pub fn state(mut self, lines: &str) -> Self {
        for line in lines.lines() {
            let _ = writeln!(self.state, "  {line}");
        }
        self
    }

    /// Lines at the top of the config file.
    #[must_use]
    pub fn config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Another runtime directory than the one in the scratch directory.
    #[must_use]
    pub fn runtime_dir(mut self, path: PathBuf) -> Self {
        self.runtime_dir = Some(path);
        self
    }

    /// Runs it through another program, which executes its last arguments.
    #[must_use]
    pub fn wrapped(mut self, command: &[&str]) -> Self {
        self.wrapper = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Further arguments of `talon serve`.
    #[must_use]
    pub fn serve_args(mut self, args: &[&str]) -> Self {
        self.serve_args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// What a refused start left for the next one.
    #[must_use]
    pub fn into_leftovers(self) -> Leftovers {
        Leftovers { scratch: self.scratch, uids: self.uids }
    }

    /// Returns as soon as the socket answers, while plugins still start.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.wait_settled = false;
        self
    }

    /// The config file's text.
    fn text(&self, runtime_dir: &Path) -> String {
        let scratch = self.scratch.path().display();
        let mut text = format!("runtime_dir: {}\nstate:\n", runtime_dir.display());
        if !self.state.contains("data_dir:") {
            let _ = writeln!(text, "  data_dir: {scratch}/data");
        }
        text.push_str(&self.state);
        if is_root() {
            let _ = writeln!(text, "sandbox:\n  uid_range: {}-{}", self.uids.start(), self.uids.end());
        }
        text.push_str(&self.config);
        let _ = write!(text, "plugins:\n  tools:\n    plugin_dir: {scratch}/plugins\n{}", self.tools);
        if !self.plugins.is_empty() {
            let _ = write!(text, "    plugins:\n{}", self.plugins);
        }
        text
    }

    /// Writes the config file without starting the supervisor; returns its path and that of the socket.
    #[must_use]
    pub fn write_config(&self) -> (PathBuf, PathBuf) {
        let runtime_dir = self.runtime_dir.clone().unwrap_or_else(|| self.scratch.join("run"));
        let config = self.scratch.write("talon.yaml", &self.text(&runtime_dir));
        (config, runtime_dir.join("host.sock"))
    }

    /// The command, without the config file.
    fn words(&self) -> Vec<String> {
        let talon = program("talon").display().to_string();
        let mut words = self.wrapper.clone();
        words.extend([talon, "serve".to_owned()]);
        words.extend(self.serve_args.iter().cloned());
        words.push("--config".to_owned());
        words
    }

    /// Starts it and waits until it answers, and by default until every plugin is ready or has
    /// failed.
    ///
    /// # Panics
    /// With its log, when it does not come up.
    pub async fn start(self) -> Supervisor {
        let runtime_dir = self.runtime_dir.clone().unwrap_or_else(|| self.scratch.join("run"));
        let config = self.scratch.write("talon.yaml", &self.text(&runtime_dir));
        let uids = self.uids.clone();
        let log = Arc::new(Mutex::new(String::new()));
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(&config).envs(self.env.iter().map(|(k, v)| (k, v)));
        let (mut child, reader) = spawn(command, &log);
        let socket = runtime_dir.join("host.sock");
        let client = tokio::time::timeout(WAIT_TIMEOUT, connect(&socket, &mut child)).await;
        let Ok(Some(client)) = client else {
            panic!("talon did not come up:\n{}", log.lock().expect("no reader panics"))
        };
        let supervisor =
            Supervisor { scratch: self.scratch, client, child, runtime_dir, config, uids, log, reader };
        if self.wait_settled {
            for plugin in supervisor.client.status().await.plugins {
                supervisor
                    .client
                    .wait_for(&plugin.name, "settled", |p| {
                        let settled =
                            |state: &str| matches!(state, "ready" | "failed" | "stopped" | "refused");
                        settled(&p.state) && p.instances.iter().all(|i| settled(&i.state))
                    })
                    .await;
            }
        }
        supervisor
    }

    /// Writes the config and runs `talon serve` to its end, for starts that are refused.
    pub async fn start_refused(&self) -> Output {
        let runtime_dir = self.runtime_dir.clone().unwrap_or_else(|| self.scratch.join("run"));
        let config = self.scratch.write("talon.yaml", &self.text(&runtime_dir));
        let words = self.words();
        let said = self.scratch.join("refused.log");
        let log = std::fs::File::create(&said).expect("the scratch directory takes files");
        let run = Command::new(&words[0])
            .args(&words[1..])
            .arg(&config)
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .status();
        let ended = tokio::time::timeout(WAIT_TIMEOUT, run).await;
        let stderr = std::fs::read(&said).expect("it was just made");
        let status = ended.unwrap_or_else(|_| {
            panic!("a refused start has not ended:\n{}", String::from_utf8_lossy(&stderr))
        });
        Output { status: status.expect("talon starts"), stdout: Vec::new(), stderr }
    }
}

/// Starts it, with a reader of its log.
fn spawn(mut command: Command, log: &Arc<Mutex<String>>) -> (Child, tokio::task::JoinHandle<()>) {
    let says = command.as_std().get_envs().any(|(name, _)| name == "TALON_LOG");
    if !says {
        command.env("TALON_LOG", "info");
    }
    let mut child = command
        .env_remove("XDG_RUNTIME_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    let kept = log.clone();
    let reader = tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            let mut kept = kept.lock().expect("no reader panics");
            kept.push_str(&line);
            kept.push('\n');
        }
    });
    (child, reader)
}

/// There is no notification of a new socket: connects until it answers or the
/// process has ended.
async fn connect(socket: &Path, child: &mut Child) -> Option<Client> {
    let mut pause = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Ok(client) = Client::connect(socket).await {
            return Some(client);
        }
        if matches!(child.try_wait(), Ok(Some(_))) {
            return None;
        }
        pause.tick().await;
    }
}

impl Supervisor {
    /// Its process id.
    ///
    /// # Panics
    /// When it has been waited for.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Its `host.sock`.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime_dir.join("host.sock")
    }

    /// Its `agent.sock`.
    #[must_use]
    pub fn agent_socket(&self) -> PathBuf {
        self.runtime_dir.join("agent.sock")
    }

    /// Its `admin.sock`.
    #[must_use]
    pub fn admin(&self) -> PathBuf {
        self.runtime_dir.join("admin.sock")
    }

    /// Its runtime directory.
    #[must_use]
    pub fn runtime_dir(&self) -> &Path {
        &self.runtime_dir
    }

    /// Its config file.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// What it logged so far.
    ///
    /// # Panics
    /// Never: the reader does not panic.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().expect("no reader panics").clone()
    }

    /// The living processes of its plugins (with their monitors if they run under the same uid), without
    /// the supervisor's services.
    #[must_use]
    pub fn plugin_processes(&self) -> Vec<u32> {
        let all: Vec<u32> =
            if is_root() { in_uid_range(&self.uids) } else { descendants(self.pid()).into_iter().collect() };
        // The supervisor's own processes: its services, and the jail's stage processes.
        let service = |pid: u32| {
            matches!(
                crate::processes::name(pid).as_deref(),
                Some("talon-state" | "talon-agent" | "talon-test-agent" | "talon-zygote")
            )
        };
        let monitors = |pid: u32| descendants(pid).into_iter().any(service);
        all.into_iter().filter(|pid| !service(*pid) && !monitors(*pid)).collect()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).expect("it runs");
    }

    /// Waits until it has logged this.
    ///
    /// # Panics
    /// When it does not.
    pub async fn wait_log(&self, text: &str) {
        wait_for_log(&self.log, text).await;
    }

    /// Closes our end of its log.
    pub async fn close_log(&mut self) {
        let reader = std::mem::replace(&mut self.reader, tokio::spawn(async {}));
        reader.abort();
        // Only its end matters, because it was aborted.
        let _ = reader.await;
    }

    /// Starts another `talon serve` on the same files.
    #[must_use]
    pub fn start_sibling(&self, args: &[&str]) -> SiblingSupervisor {
        let log = Arc::new(Mutex::new(String::new()));
        let mut command = Command::new(program("talon"));
        command.args(["serve", "--config"]).arg(&self.config).args(args);
        let (child, reader) = spawn(command, &log);
        SiblingSupervisor { child, log, reader }
    }

    /// Waits until this one has ended well and its sibling serves; returns the sibling, and this one's log.
    ///
    /// # Panics
    /// When it does not end, or the sibling does not answer afterwards.
    pub async fn succeeded_by(self, other: SiblingSupervisor) -> (Self, String) {
        let SiblingSupervisor { mut child, log, reader } = other;
        let old = SiblingSupervisor { child: self.child, log: self.log, reader: self.reader };
        let (status, said) = old.ended().await;
        assert!(status.success(), "{status}:\n{said}");
        let socket = self.runtime_dir.join("host.sock");
        let client = tokio::time::timeout(WAIT_TIMEOUT, connect(&socket, &mut child)).await;
        let Ok(Some(client)) = client else {
            panic!("no supervisor answers:\n{}", log.lock().expect("no reader panics"))
        };
        let Self { scratch, runtime_dir, config, uids, .. } = self;
        (Self { scratch, client, child, runtime_dir, config, uids, log, reader }, said)
    }

    /// Ends it with SIGTERM, and waits only for its own end: its plugins may keep running.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn hands_over(self) -> (ExitStatus, String, Leftovers) {
        self.signal(Signal::SIGTERM);
        let old = SiblingSupervisor { child: self.child, log: self.log, reader: self.reader };
        let (status, said) = old.ended().await;
        (status, said, Leftovers { scratch: self.scratch, uids: self.uids })
    }

    /// Runs the command line against it.
    pub async fn cli(&self, args: &[&str]) -> Output {
        let socket = self.socket();
        let mut all = vec!["--socket", socket.to_str().expect("our paths are text")];
        all.extend(args);
        cli(&all).await
    }

    /// Ends it as an operator does and checks what it leaves behind.
    pub async fn stop(self) -> Stopped {
        self.end(Signal::SIGTERM).await
    }

    /// Ends it with a signal and checks what it leaves behind.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn end(mut self, signal: Signal) -> Stopped {
        let family = descendants(self.pid());
        self.signal(signal);
        let waited = tokio::time::timeout(WAIT_TIMEOUT, self.child.wait()).await;
        let status =
            waited.unwrap_or_else(|_| panic!("talon did not end:\n{}", self.log())).expect("it is ours");
        // Its children die a moment later: they are watched until they are gone.
        let watch = async {
            let mut pause = tokio::time::interval(Duration::from_millis(10));
            while family.iter().any(|pid| alive(*pid)) || !in_uid_range_of(&self.uids).is_empty() {
                pause.tick().await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(20), watch).await;
        // Normally no process outlives it that could hold its log open.
        let _ = tokio::time::timeout(WAIT_TIMEOUT, &mut self.reader).await;
        let mut processes: Vec<u32> = family.into_iter().filter(|pid| alive(*pid)).collect();
        processes.extend(in_uid_range_of(&self.uids));
        let (sockets, log) = (sockets_below(&self.runtime_dir), self.log());
        let left = Leftovers { scratch: self.scratch, uids: self.uids };
        Stopped { status, processes, sockets, log, left }
    }
}

/// Without root the plugins share our uid, and only the process tree identifies them.
fn in_uid_range_of(uids: &RangeInclusive<u32>) -> Vec<u32> {
    if is_root() { in_uid_range(uids) } else { Vec::new() }
}

/// All sockets in a directory and those below it.
#[must_use]
pub fn sockets_below(directory: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::FileTypeExt;
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_socket() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// Runs the command line.
pub async fn cli(args: &[&str]) -> Output {
    cli_with(args, &[]).await
}

/// Runs the command line with variables in its environment.
///
/// # Panics
/// When it does not end.
pub async fn cli_with(args: &[&str], env: &[(&str, &str)]) -> Output {
    let run = Command::new(program("talon"))
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(WAIT_TIMEOUT, run).await.expect("the command ends").expect("talon starts")
}
