//! The agent's state, and its control socket, which every service uses.

use std::sync::Arc;

use parking_lot::Mutex;
use talon_agent_settings::SettingsBundle;
use talon_control::Control;
use talon_proto::agent::{FromAgent, ToAgent, from_agent};
use tonic::transport::Channel;

/// The control socket.
pub(crate) type Line = Control<FromAgent, ToAgent>;

/// The agent's state.
#[derive(Default)]
pub(crate) struct AgentState {
    pub(crate) handed: SettingsBundle,
    /// How often it was configured.
    pub(crate) configured: u32,
    pub(crate) host: Option<Channel>,
    /// How many connections to the host it received.
    pub(crate) hosts: u32,
}

pub(crate) type Shared = Arc<Mutex<AgentState>>;

/// Sends a message to the supervisor.
pub(crate) async fn send(line: &Line, kind: from_agent::Kind) -> anyhow::Result<()> {
    Ok(line.send(&FromAgent { kind: Some(kind) }, None).await?)
}
