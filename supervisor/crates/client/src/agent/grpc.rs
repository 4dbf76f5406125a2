//! The generated client of the agent.

use talon_proto::agent::agent_client::AgentClient;
use tonic::transport::Channel;

use crate::client::{Client, MAX_ANSWER_BYTES};

/// The generated client on a connection, with the largest answer that is accepted.
pub(super) fn agent_client(client: &Client) -> AgentClient<Channel> {
    AgentClient::new(client.channel()).max_decoding_message_size(MAX_ANSWER_BYTES)
}
