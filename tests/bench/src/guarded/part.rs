//! The roles of `talon-bench-guarded`, one a process.

use std::path::PathBuf;

use anyhow::Result;
use talon_telemetry::{Format, Settings};

use super::{echo, host, in_process, layers, lines, listeners, lua, many, sanitizer, start, start_true};

/// The role of one process.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Part {
    /// Starts the plugins of a configuration in this process and runs loads of guarded calls.
    InProcess {
        /// Records numbers and logs as a supervisor does.
        #[arg(long)]
        recorded: bool,
        /// The configuration.
        config: PathBuf,
    },
    /// Runs loads of calls through a supervisor.
    Host {
        /// Its socket.
        socket: PathBuf,
    },
    /// The same, to a random one of many plugins.
    Many {
        /// Its socket.
        socket: PathBuf,
        /// How many.
        count: usize,
    },
    /// The same, to a plugin that returns what it was sent.
    Echo {
        /// Its socket.
        socket: PathBuf,
        /// The plugin.
        plugin: String,
    },
    /// Causes events and waits until all listeners have received them.
    Listeners {
        /// Its socket.
        socket: PathBuf,
        /// How many.
        count: usize,
    },
    /// Makes the plugin log and waits until every line was read.
    Lines {
        /// Its socket.
        socket: PathBuf,
    },
    /// Measures a Lua hook in the machine of `talon-lua`, and in other interpreters, in turns.
    LuaMachine {
        /// The programs of the interpreters.
        rivals: Vec<PathBuf>,
    },
    /// Measures a Lua hook through guard and jail, and what scripts take, in turns.
    LuaPlugin {
        /// A configuration with `plugins.lua`.
        config: PathBuf,
        /// Its directory of scripts.
        scripts_dir: PathBuf,
        /// Fewer calls.
        #[arg(long)]
        quick: bool,
    },
    /// Measures the guard's stack and each of its layers in turns.
    Layers {
        /// Measures only the whole stack, in a process that records metrics and logs as a supervisor does.
        #[arg(long)]
        recorded: bool,
    },
    /// Measures sanitizing, and common alternatives, in turns.
    Sanitizer,
    /// Measures starting plugins by each method in turns.
    Start {
        /// How many at once.
        at_once: usize,
    },
    /// Measures starting a program that does nothing in turns.
    StartTrue,
}

/// Makes this process record metrics and log as `talon serve` does, although no one reads either: each call
/// then has a span, and is counted.
fn recording() -> Result<talon_telemetry::TelemetryGuard> {
    talon_supervisor::admin::metrics::install();
    // The default of `log.level`, which does not log single calls.
    let settings = Settings { format: Format::for_stderr(), level: "info".to_owned(), ..Settings::default() };
    Ok(talon_telemetry::init(&settings)?)
}

impl Part {
    /// Runs it, on one thread like the contenders it is compared with, until its work is done.
    ///
    /// # Errors
    /// Why it failed.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self {
                Self::InProcess { recorded, config } => {
                    let _log = recorded.then(recording).transpose()?;
                    Box::pin(in_process::serve(config)).await
                }
                Self::Host { socket } => crate::worker::serve(host::HostCaller::to(socket).await?).await,
                Self::Many { socket, count } => {
                    crate::worker::serve(many::ManyPluginsCaller::to(socket, count).await?).await
                }
                Self::Echo { socket, plugin } => {
                    crate::worker::serve(echo::EchoCaller::to(socket, plugin).await?).await
                }
                Self::Listeners { socket, count } => {
                    crate::worker::serve(listeners::EventFanOut::of(socket, count).await?).await
                }
                Self::Lines { socket } => crate::worker::serve(lines::LogCaller::of(socket).await?).await,
                Self::LuaMachine { rivals } => lua::serve_machine(rivals).await,
                Self::LuaPlugin { config, scripts_dir, quick } => {
                    Box::pin(lua::serve_plugin(config, scripts_dir, quick)).await
                }
                Self::Layers { recorded } => {
                    let _log = recorded.then(recording).transpose()?;
                    let sheets =
                        if recorded { crate::layers::recorded_tables } else { crate::layers::layer_tables };
                    layers::serve(sheets).await
                }
                Self::Sanitizer => sanitizer::serve().await,
                Self::Start { at_once } => Box::pin(start::serve(at_once)).await,
                Self::StartTrue => start_true::serve().await,
            }
        })
    }
}
