//! Talon's own contenders: a program that has guard and plugins in itself, and a client of a supervisor.

pub(crate) mod bubblewrap;
mod echo;
mod host;
mod in_process;
mod layers;
mod lines;
mod listeners;
mod many;
mod sanitizer;
mod start;
mod start_true;

use std::path::PathBuf;

use anyhow::Result;
use talon_telemetry::{Format, Settings};

pub use lines::LINES;
pub use listeners::EVENTS;
pub use many::numbered;

/// The plugin that all of them call; `talon-bench-plugin` is its program.
pub const PLUGIN: &str = "says";
/// Its action: so many bytes of text.
pub const ACTION: &str = "say";
/// As long as the ids that clients make up.
pub const CALL_ID: &str = "01JCZ6N8V2K4W5Q7R9T0X1Y3Z5";

/// What one process of these does.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Part {
    /// Starts the plugins of a configuration in this process and makes loads of guarded calls.
    InProcess {
        /// Records numbers and logs as a supervisor does.
        #[arg(long)]
        recorded: bool,
        /// The configuration.
        config: PathBuf,
    },
    /// Makes loads of calls through a supervisor.
    Host {
        /// Its socket.
        socket: PathBuf,
    },
    /// The same, of one of many plugins, which is drawn.
    Many {
        /// Its socket.
        socket: PathBuf,
        /// How many.
        count: usize,
    },
    /// The same, of a plugin that answers what it was sent.
    Echo {
        /// Its socket.
        socket: PathBuf,
        /// The plugin.
        plugin: String,
    },
    /// Makes events and waits until so many listeners have heard them.
    Listeners {
        /// Its socket.
        socket: PathBuf,
        /// How many.
        count: usize,
    },
    /// Has the plugin log and waits until every line was taken.
    Lines {
        /// Its socket.
        socket: PathBuf,
    },
    /// Takes turns at the guard's stack and each of its layers.
    Layers {
        /// Instead at the stack alone, in a process that records and logs as a supervisor does.
        #[arg(long)]
        recorded: bool,
    },
    /// Takes turns at sanitizing, and at what is commonly done instead.
    Sanitizer,
    /// Takes turns at starting plugins in every way there is.
    Start {
        /// How many at once.
        at_once: usize,
    },
    /// Takes turns at starting a program that does nothing.
    StartTrue,
}

/// Makes this process record numbers and log as `talon serve` does, although nobody reads either: each call then has a span, and
/// counts.
fn recording() -> Result<talon_telemetry::Guard> {
    talon::admin::metrics::install();
    // The default of `log.level`, which says nothing of single calls.
    let settings =
        Settings { format: Format::suiting_stderr(), level: "info".to_owned(), ..Settings::default() };
    Ok(talon_telemetry::init(&settings)?)
}

impl Part {
    /// Does it, on one thread like what it is compared with, until it has nothing more to do.
    ///
    /// # Errors
    /// What went wrong.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            match self {
                Self::InProcess { recorded, config } => {
                    let _log = recorded.then(recording).transpose()?;
                    Box::pin(in_process::serve(config)).await
                }
                Self::Host { socket } => crate::worker::serve(host::Calls::to(socket).await?).await,
                Self::Many { socket, count } => {
                    crate::worker::serve(many::Calls::to(socket, count).await?).await
                }
                Self::Echo { socket, plugin } => {
                    crate::worker::serve(echo::Calls::to(socket, plugin).await?).await
                }
                Self::Listeners { socket, count } => {
                    crate::worker::serve(listeners::Fan::of(socket, count).await?).await
                }
                Self::Lines { socket } => crate::worker::serve(lines::Lines::of(socket).await?).await,
                Self::Layers { recorded } => {
                    let _log = recorded.then(recording).transpose()?;
                    let sheets = if recorded { crate::layers::recorded } else { crate::layers::sheets };
                    layers::serve(sheets).await
                }
                Self::Sanitizer => sanitizer::serve().await,
                Self::Start { at_once } => Box::pin(start::serve(at_once)).await,
                Self::StartTrue => start_true::serve().await,
            }
        })
    }
}
