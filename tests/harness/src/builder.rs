//! Configures and starts a supervisor.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::process::Command;

use crate::processes::is_root;
use crate::scratch::{Scratch, program};
use crate::spawn::{WAIT_TIMEOUT, connect, spawn};
use crate::supervisor::{Leftovers, Supervisor};
use crate::uids::Uids;

/// Configures a supervisor.
#[derive(Debug)]
pub struct Builder {
    scratch: Scratch,
    plugins: String,
    lua: String,
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
            lua: String::new(),
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

    /// Adds the Lua scripts of this directory; `more` holds further lines of `plugins.lua`.
    #[must_use]
    pub fn lua(mut self, scripts_dir: &Path, more: &str) -> Self {
        let _ = writeln!(self.lua, "    scripts_dir: {scripts_dir:?}");
        for line in more.lines() {
            let _ = writeln!(self.lua, "    {line}");
        }
        self
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
        if !self.lua.is_empty() {
            let _ = write!(text, "  lua:\n{}", self.lua);
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
        let Ok(Some(client)) = client else { panic!("talon did not come up:\n{}", log.lock()) };
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
