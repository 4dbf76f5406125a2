//! Who calls.

/// The turn for which a call is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The session.
    pub session: String,
    /// The turn's number in the session.
    pub turn: u64,
    /// The user.
    pub sender: String,
    /// Who speaks, where several people share the session; empty elsewhere.
    pub member: String,
    /// The channel.
    pub channel: String,
    /// The sub-agent that calls; empty for the agent itself.
    pub subagent: String,
    /// Stands in every log line of the turn.
    pub correlation_id: String,
}
