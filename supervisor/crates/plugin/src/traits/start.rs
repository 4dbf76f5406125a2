//! The progress and the results of a start.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use talon_plugin_client::Capability;
use talon_plugin_config::spec::Dialect;
use talon_sanitize::Sanitized;

use super::client::PluginClient;
use super::process::ProcessHandle;
use crate::handover::InstanceCounters;
use crate::lifecycle::event::FailureKind;

/// The progress of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchProgress {
    /// The program was started.
    Started { pid: u32, uid: u32 },
    /// Its handshake is valid.
    Handshaken,
}

/// A process that is ready for calls.
pub(crate) struct StartedProcess {
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) client: Arc<dyn PluginClient>,
    pub(crate) capability: Arc<Capability>,
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
    /// The counters from the previous supervisor, if the process was handed over.
    pub(crate) taken_over: Option<InstanceCounters>,
}

/// A service that runs.
pub(crate) struct StartedService {
    pub(crate) process: Arc<dyn ProcessHandle>,
    /// The supervisor's end of its standard input.
    pub(crate) control: OwnedFd,
    pub(crate) report: talon_jail::Report,
    /// Resolves with its last output, once it is gone and its output is read.
    pub(crate) last_output: BoxFuture<'static, Option<Sanitized>>,
}

/// Why a start failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFailure {
    /// The whole cause in one bounded text that ends with what to do next.
    pub(crate) cause: Sanitized,
    /// What it says about the next start.
    pub(crate) kind: FailureKind,
}
