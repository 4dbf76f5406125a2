//! The names of the contenders in the tables.

/// The one that all others of the rates are compared with.
pub(super) const LITELLM: &str = "LiteLLM";
pub(super) const GATEWAY: &str = "gateway";
pub(super) const AGENT_SOCKET: &str = "agent.sock";
