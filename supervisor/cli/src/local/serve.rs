//! `talon serve`: runs the supervisor.

use std::path::PathBuf;

use clap::Args;
use talon_plugin::SetupError;
use talon_supervisor::config::OverlayUse;
use talon_supervisor::host::BindError;
use talon_supervisor::serve::{self, ServeFailure, TakeoverError};
use talon_supervisor::state::StateOpenError;

use crate::exit;
use crate::failure::Failure;
use crate::global::Global;
use crate::local::configuration;
use crate::runtime::{not_started, run};

/// Run the supervisor: start the plugins, keep them running, and accept calls on host.sock.
///
/// Logs to stderr and exits on SIGTERM or SIGINT: calls in flight may finish within the grace period, then
/// the plugins are stopped. A second signal stops them at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon serve
  talon serve --plugin-dir ./plugins --runtime-dir /tmp/talon
  talon serve --config /etc/talon/talon.yaml --set guard.timeout=10s
  TALON_LOG=debug talon serve")]
pub(crate) struct ServeArgs {
    /// The directory with plugins; overrides plugins.tools.plugin_dir.
    #[arg(long, value_name = "DIR")]
    plugin_dir: Option<PathBuf>,
    /// The directory for sockets; overrides runtime_dir.
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// The directory for persistent data; overrides state.data_dir.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A configuration value; overrides the file and the environment.
    #[arg(long, value_name = "KEY=VALUE", value_parser = crate::arguments::key_value)]
    set: Vec<(String, String)>,
    /// Also exit in an orderly way at the end of standard input: for a program that runs a private
    /// supervisor.
    #[arg(long)]
    until_stdin_ends: bool,
    /// Take over from the supervisor that uses the same runtime directory: its plugins keep running, and it
    /// exits.
    ///
    /// If the takeover fails, the old supervisor continues. If none is running, this is a normal start.
    #[arg(long)]
    takeover: bool,
    /// Run for one user: exit after `user.idle_exit` (30m) without a client or a call. Where this machine gives users no
    /// jail, plugins are refused as always, and the agent answers without them.
    #[arg(long)]
    for_user: bool,
    /// Ignore what administrators changed while Talon ran (overlay.yaml in state.data_dir), and let nothing be changed.
    #[arg(long)]
    no_overlay: bool,
}

impl ServeArgs {
    pub(crate) fn run(self, global: &Global) -> Result<u8, Failure> {
        // Must come first: it changes the environment, which is unsafe while other threads read it.
        let sockets = serve::InheritedSockets::of_process()
            .map_err(|error| Failure::new(exit::CONFIG, error.to_string()))?;
        let mut options = configuration::load_options(global);
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
        if self.no_overlay {
            options.overlay = OverlayUse::Ignore;
        }
        for (key, value) in self.set {
            options = options.with("--set", &key, value);
        }
        let loaded = configuration::load(&options)?;
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
            .map_err(not_started)?;
        let lifeline = self.until_stdin_ends.then(serve::stdin_lifeline);
        let beginning =
            serve::StartOptions { lifeline, sockets, takeover: self.takeover, for_user: self.for_user };
        run(runtime, Box::pin(serve::serve(loaded, beginning))).map_err(|error| failure(&error))?;
        Ok(exit::OK)
    }
}

/// The number of threads for calls: half of the cores, because the client and the plugin do the other half of
/// a call's work.
///
/// An extra thread costs more than it helps: each step of a call wakes it to look for work to steal, and on
/// two cores a single call has a third of the context switches with one thread that it has with two. Slow
/// work runs on the runtime's threads for blocking work anyway.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

fn failure(error: &ServeFailure) -> Failure {
    let code = match error {
        ServeFailure::Setup(SetupError::AlreadyRunning { .. })
        | ServeFailure::Bind(BindError::InUse { .. })
        | ServeFailure::Takeover(TakeoverError::Refused(_))
        | ServeFailure::State(StateOpenError { may_pass: true, .. }) => exit::BUSY,
        ServeFailure::Setup(_)
        | ServeFailure::Patterns(_)
        | ServeFailure::StateProgram(_)
        | ServeFailure::Bind(BindError::Group { .. }) => exit::CONFIG,
        _ => exit::FAILED,
    };
    Failure::new(code, error.to_string())
}
