//! A private `talon-state` process for the duration of this command: for state without a running supervisor,
//! and for the agent's sessions and memory, which no supervisor opens.
//!
//! It runs as under a supervisor, in the same jail and with the same uid, managed by a registry without
//! plugins. So a malicious import file or database gets no more access to this user's account than to a
//! supervisor. The process is stopped when this one exits for any reason.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use talon_jail::{Mode, Stage};
use talon_plugin::service::{Home, Service};
use talon_plugin::{Events, LogLimits, Registry, Settings};
use talon_plugin_config::PluginName;
use talon_proto::state::{Open, Postgres, open};
use talon_sanitize::Raw;
use talon_supervisor::config::Quota;
use talon_supervisor::service::ManagedServiceState;
use talon_supervisor::state::{self, StateSupervisor};
use tonic::transport::Channel;

use super::scratch;
use crate::exit;
use crate::failure::Failure;

/// How long the program may take to stop: it allows itself 5 s to finish its work, and the database has to
/// be closed. Then it is killed, which a database survives.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// How many of its last log lines are shown on failure.
const SHOWN_LINES: usize = 20;

/// What to open, and with which program.
pub(super) struct OpenRequest {
    pub(super) name: PluginName,
    pub(super) program: PathBuf,
    pub(super) home: Home,
    pub(super) mode: Mode,
    pub(super) open: Open,
}

/// The running program. Dropping it stops the program and waits, so connections to it have to be dropped
/// first.
pub(super) struct PrivateStateService {
    registry: Registry,
    supervisor: StateSupervisor,
    service: Service,
    /// Why only a restore is possible; empty if everything is.
    problem: String,
    // The process's private directory is below this one and is deleted with it.
    _dir: tempfile::TempDir,
}

impl PrivateStateService {
    /// Starts the program and lets it open the database. Needs a multi-threaded runtime, because dropping
    /// blocks.
    pub(super) async fn start(wanted: OpenRequest) -> Result<(Self, Channel), Failure> {
        let OpenRequest { name, program, home, mode, open } = wanted;
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
            // For plugins, of which there are none. The home was prepared in the real data directory.
            data_dir: dir.path().join("data"),
            uid_range: home.identity.map(|identity| identity.uid..=identity.uid),
            start_concurrency: 1,
            frames: Default::default(),
            env_allow_list: vec!["PATH".to_owned()],
            log_limits: LogLimits::default(),
            state: None,
            models: None,
        };
        let stage = Arc::new(Stage::from_current_exe().map_err(|error| failed(&error))?);
        let events = Events::new();
        let registry = Registry::new(settings, stage, events.clone()).map_err(|error| failed(&error))?;
        let keeper = StateSupervisor::new(open, Arc::new(|_: &PluginName| Quota::default()), events);
        let spec = state::service(name, program, home, mode, server.as_deref());
        let service = registry.service(spec, Arc::new(keeper.clone()));
        let mut private = Self { registry, supervisor: keeper, service, problem: String::new(), _dir: dir };
        if let Err(refused) = private.supervisor.wait_until_open().await {
            return Err(if refused.may_pass {
                let what_to_do = "if a supervisor has it, name its socket with --socket or stop it; if it is another command, \
                                  wait for its end";
                Failure::new(exit::BUSY, format!("{refused}\n{what_to_do}"))
            } else {
                private.failure(&refused)
            });
        }
        let status = private.supervisor.status();
        if status.state == ManagedServiceState::Unavailable {
            let problem = status.problem.map(|problem| problem.to_string()).unwrap_or_default();
            if !for_restore {
                let text = format!("{} does not answer: {problem}", status.place);
                return Err(Failure::new(exit::HOST_FAULT, text));
            }
            private.problem = problem;
        }
        let channel = private.supervisor.bulk_channel();
        Ok((private, channel))
    }

    /// Why only a restore is possible; empty if everything is.
    pub(super) fn problem(&self) -> &str {
        &self.problem
    }

    /// The error if the program stopped answering.
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

impl Drop for PrivateStateService {
    fn drop(&mut self) {
        let ends = self.registry.shutdown(STOP_TIMEOUT);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(ends));
    }
}
