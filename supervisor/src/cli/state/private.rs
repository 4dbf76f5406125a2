//! A `talon-state` of this command's own, for as long as it runs: state where no supervisor keeps it, and the agent's
//! sessions and memory, which no supervisor opens.
//!
//! It is run as under a supervisor, in the same jail and with the same uid, by a registry without plugins. So neither a
//! hostile file that it is given to read nor a hostile database is any nearer to the user of this command than to a
//! supervisor. It ends with this process, however that does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_jail::{Mode, Stage};
use talon_plugin::service::{Home, Service};
use talon_plugin::{Events, LogLimits, PluginName, Registry, Settings};
use talon_proto::state::{Open, Postgres, open};
use talon_sanitize::Raw;
use tonic::transport::{Channel, Endpoint};

use super::super::failure::Failure;
use super::scratch;
use crate::config::Quota;
use crate::exit;
use crate::host::{FRAME_BYTES, WINDOW_BYTES};
use crate::service::KeeperState;
use crate::state::{self, Keeper};

/// How long it may take to end once it is let go: it gives itself 5 s to finish what it has begun, and the database has to
/// be closed. Then it is killed, which a database survives.
const END_WITHIN: Duration = Duration::from_secs(15);
/// How many of its last lines are shown if it fails.
const SHOWN_LINES: usize = 20;

/// What is opened, and by whom.
pub(super) struct Wanted {
    pub(super) name: PluginName,
    pub(super) program: PathBuf,
    pub(super) home: Home,
    pub(super) mode: Mode,
    pub(super) open: Open,
}

/// The running program. Dropping it lets it finish and waits for that, so connections to it are to be dropped before.
pub(super) struct Private {
    registry: Registry,
    keeper: Keeper,
    service: Service,
    /// Why only a restore is possible; empty where all is.
    problem: String,
    // Its private directory lies below, and goes with it.
    _dir: tempfile::TempDir,
}

impl Private {
    /// Starts the program and has it open the database. Needs a runtime with threads of its own: dropping blocks.
    pub(super) async fn start(wanted: Wanted) -> Result<(Self, Channel), Failure> {
        let Wanted { name, program, home, mode, open } = wanted;
        let server = match &open.engine {
            Some(open::Engine::Postgres(Postgres { url })) => Some(url.clone()),
            _ => None,
        };
        let for_restore = open.for_restore;
        let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
        let dir = scratch::dir()?;
        let settings = Settings {
            runtime_dir: dir.path().join("run"),
            log_dir: None,
            // For what plugins need; there are none. The home was prepared in the real one.
            data_dir: dir.path().join("data"),
            uid_range: home.identity.map(|identity| identity.uid..=identity.uid),
            start_concurrency: 1,
            env_allow_list: vec!["PATH".to_owned()],
            log_limits: LogLimits::default(),
            state: None,
        };
        let stage = Arc::new(Stage::from_current_exe().map_err(|error| failed(&error))?);
        let events = Events::new();
        let registry = Registry::new(settings, stage, events.clone()).map_err(|error| failed(&error))?;
        let keeper = Keeper::new(open, Arc::new(|_: &PluginName| Quota::default()), events);
        let spec = state::service(name, program, home, mode, server.as_deref());
        let service = registry.service(spec, Arc::new(keeper.clone()));
        let mut private = Self { registry, keeper, service, problem: String::new(), _dir: dir };
        if let Err(refused) = private.keeper.opened().await {
            return Err(if refused.may_pass {
                let what_to_do = "if a supervisor has it, name its socket with --socket or stop it; if it is another command, \
                                  wait for its end";
                Failure::new(exit::BUSY, format!("{refused}\n{what_to_do}"))
            } else {
                private.failure(&refused)
            });
        }
        let status = private.keeper.status();
        if status.state == KeeperState::Unavailable {
            let problem = status.problem.map(|problem| problem.to_string()).unwrap_or_default();
            if !for_restore {
                let text = format!("{} does not answer: {problem}", status.place);
                return Err(Failure::new(exit::HOST_FAULT, text));
            }
            private.problem = problem;
        }
        let channel = Endpoint::from_static("http://talon-state.invalid")
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_frame_size(FRAME_BYTES)
            .connect_with_connector_lazy(private.keeper.connector());
        Ok((private, channel))
    }

    /// Why only a restore is possible; empty where all is.
    pub(super) fn problem(&self) -> &str {
        &self.problem
    }

    /// What it means that the program answers no more.
    pub(super) fn ended(&mut self, how: &str) -> Failure {
        self.failure(&Raw::from(how).line())
    }

    fn failure(&self, how: &dyn std::fmt::Display) -> Failure {
        let lines = self.service.logs().recent;
        let shown = lines.iter().skip(lines.len().saturating_sub(SHOWN_LINES));
        let log: String = shown.map(|line| format!("\n  {}", line.text)).collect();
        let log = if log.is_empty() { log } else { format!("\nwhat talon-state said:{log}") };
        Failure::failed(format!("{how}{log}"))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let ends = self.registry.shutdown(END_WITHIN);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(ends));
    }
}
