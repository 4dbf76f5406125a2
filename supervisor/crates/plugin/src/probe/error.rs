//! Why a start failed, and at which step.

use talon_plugin_client::connect::ConnectError;
use talon_plugin_client::handshake::HandshakeError;
use talon_plugin_config::spec::PluginSpec;
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::launch::LaunchError;

/// The steps of a start, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The files on the disk are checked.
    Files,
    /// The jail is built.
    Jail,
    /// Output before the handshake line is read.
    StrayOutput,
    /// The handshake line is awaited.
    Handshake,
    /// The line is parsed.
    HandshakeLine,
    /// Its versions are compared.
    Version,
    /// Its address is checked.
    Address,
    /// The address is connected to.
    Serving,
}

/// Why a start failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ProbeError {
    /// The step.
    pub stage: Stage,
    /// A message that ends with what to do; the plugin's texts in it are bounded and sanitized.
    pub text: Sanitized,
}

impl ProbeError {
    pub(super) fn timed_out(doing: &'static str, spec: &PluginSpec) -> Self {
        let after = spec.lifecycle.start_timeout.as_secs_f32();
        let text = sanitized!(
            "time ran out after {} s while {}: it has to accept connections once it has printed its line",
            after,
            doing
        );
        Self { stage: Stage::Serving, text }
    }
}

impl From<LaunchError> for ProbeError {
    fn from(error: LaunchError) -> Self {
        Self { stage: stage_of(&error), text: Raw::of(&error).line() }
    }
}

fn stage_of(error: &LaunchError) -> Stage {
    match error {
        LaunchError::Check(_) | LaunchError::View(_) | LaunchError::Interpreter { .. } => Stage::Files,
        LaunchError::TooMuchOutput { .. } => Stage::StrayOutput,
        LaunchError::Exited { .. } | LaunchError::Closed { .. } | LaunchError::TimedOut { .. } => {
            Stage::Handshake
        }
        LaunchError::Handshake(HandshakeError::CoreVersion { .. } | HandshakeError::AppVersion { .. }) => {
            Stage::Version
        }
        LaunchError::Handshake(_)
        | LaunchError::Tls(_)
        | LaunchError::UnwantedTls
        | LaunchError::Multiplexed => Stage::HandshakeLine,
        LaunchError::TcpInside { .. }
        | LaunchError::Connect(
            _,
            Some(
                ConnectError::Outside { .. }
                | ConnectError::TcpNotAllowed { .. }
                | ConnectError::Open { .. }
                | ConnectError::NoSocket { .. }
                | ConnectError::WrongUid { .. }
                | ConnectError::WrongProcess { .. },
            ),
        ) => Stage::Address,
        LaunchError::Connect(..) => Stage::Serving,
        _ => Stage::Jail,
    }
}
