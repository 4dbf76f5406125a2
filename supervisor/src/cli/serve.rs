//! `talon serve`: the supervisor itself.

use std::path::PathBuf;

use clap::Args;
use talon_plugin::SetupError;

use super::Global;
use super::failure::Failure;
use crate::config::{self, LoadOptions, Loaded};
use crate::exit;
use crate::host::BindError;
use crate::serve::{self, ServeFailure, TakeoverError};
use crate::state::NotOpened;

/// Run the supervisor: start the plugins, keep them alive, and take calls on host.sock.
///
/// It logs to stderr and ends at SIGTERM or SIGINT: calls in flight may finish within the grace period, then the
/// plugins are stopped. A second signal stops them at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon serve
  talon serve --plugin-dir ./plugins --runtime-dir /tmp/talon
  talon serve --config /etc/talon/talon.yaml --set guard.timeout=10s
  TALON_LOG=debug talon serve")]
pub(super) struct ServeArgs {
    /// Where plugins are found; as plugins.tools.plugin_dir.
    #[arg(long, value_name = "DIR")]
    plugin_dir: Option<PathBuf>,
    /// Where the sockets are; as runtime_dir.
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Where what must survive a restart is kept; as state.data_dir.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A value of the configuration; wins over the file and the environment.
    #[arg(long, value_name = "KEY=VALUE", value_parser = super::arguments::key_value)]
    set: Vec<(String, String)>,
    /// End in order at the end of standard input, too: for a program that runs a supervisor of its own.
    #[arg(long)]
    until_stdin_ends: bool,
    /// Take over from the supervisor that runs on the same runtime directory: its plugins run on, and it ends.
    ///
    /// If that comes to nothing, it goes on. Where none runs this is a start like any other.
    #[arg(long)]
    takeover: bool,
}

impl ServeArgs {
    pub(super) fn run(self, global: &Global) -> Result<u8, Failure> {
        // First of all: it changes the environment, which no other thread may look at meanwhile.
        let sockets =
            serve::Sockets::of_process().map_err(|error| Failure::new(exit::CONFIG, error.to_string()))?;
        let mut options = load_options(global);
        let dirs = [
            ("--plugin-dir", "plugins.tools.plugin_dir", self.plugin_dir),
            ("--runtime-dir", "runtime_dir", self.runtime_dir),
            ("--data-dir", "state.data_dir", self.data_dir),
        ];
        for (flag, key, dir) in dirs {
            if let Some(dir) = dir {
                options = options.with(flag, key, dir.to_string_lossy());
            }
        }
        for (key, value) in self.set {
            options = options.with("--set", &key, value);
        }
        let loaded = load(&options)?;
        let unconfined = serve::confine();
        let _telemetry = talon_telemetry::init(&global.telemetry_of(&loaded.config))
            .map_err(|error| Failure::new(exit::CONFIG, error.to_string()))?;
        for note in unconfined {
            tracing::info!("{note}");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers())
            .enable_all()
            .thread_name("talon")
            .build()
            .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?;
        let lifeline = self.until_stdin_ends.then(serve::stdin_ends);
        let beginning = serve::Beginning { lifeline, sockets, takeover: self.takeover };
        runtime.block_on(Box::pin(serve::serve(loaded, beginning))).map_err(|error| failure(&error))?;
        Ok(exit::OK)
    }
}

/// How many threads calls run on: half of the cores, because the other half of a call's work is its client's and its plugin's.
///
/// A thread too many costs more than it helps: each step of a call wakes it up to look for work to steal, and on two cores a
/// lone call with one thread has a third of the changes of thread that it has with two. What takes long runs elsewhere in any
/// case, on the runtime's threads for blocking work.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

/// Where the configuration of a verb comes from.
pub(super) fn load_options(global: &Global) -> LoadOptions {
    LoadOptions { file: global.config.clone(), ..LoadOptions::of_process() }
}

/// Loads the configuration or says all that is wrong with it.
pub(super) fn load(options: &LoadOptions) -> Result<Loaded, Failure> {
    config::load(options).map_err(|errors| {
        let count = errors.problems().len();
        let what = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
        Failure::new(exit::CONFIG, format!("the configuration has {what}:\n{errors}"))
    })
}

fn failure(error: &ServeFailure) -> Failure {
    let code = match error {
        ServeFailure::Setup(SetupError::AlreadyRunning { .. })
        | ServeFailure::Bind(BindError::InUse { .. })
        | ServeFailure::Takeover(TakeoverError::Refused(_))
        | ServeFailure::State(NotOpened { may_pass: true, .. }) => exit::BUSY,
        ServeFailure::Setup(_)
        | ServeFailure::Patterns(_)
        | ServeFailure::StateProgram(_)
        | ServeFailure::Bind(BindError::Group { .. }) => exit::CONFIG,
        _ => exit::FAILED,
    };
    Failure::new(code, error.to_string())
}
