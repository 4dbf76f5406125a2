//! Chat completions through `agent.sock`: what the gateway asks there, asked without it.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{CompleteRequest, CompletionMessage};
use talon_tests::dial;
use tonic::transport::Channel;

use super::completions::QUESTION;
use super::model::LAST_WORD;
use crate::load::Caller;

#[derive(Clone)]
pub(super) struct AgentCompletions(AgentClient<Channel>);

impl AgentCompletions {
    pub(super) async fn to(socket: &Path) -> Result<Self> {
        Ok(Self(AgentClient::new(dial(socket).await?)))
    }
}

impl Caller for AgentCompletions {
    /// The answer's length is the model's choice.
    async fn call(&mut self, _: usize) -> Result<()> {
        let message = CompletionMessage {
            role: "user".to_owned(),
            text: QUESTION.to_owned(),
            ..CompletionMessage::default()
        };
        let request = CompleteRequest { messages: vec![message], ..CompleteRequest::default() };
        let mut answer = self.0.complete(request).await?.into_inner();
        while let Some(chunk) = answer.message().await? {
            match chunk.kind {
                Some(Kind::Done(done)) => {
                    ensure!(done.text.contains(LAST_WORD), "that is not the model's answer: {}", done.text);
                    return Ok(());
                }
                Some(Kind::Error(error)) => bail!("a turn failed: {}", error.message),
                _ => {}
            }
        }
        bail!("a turn has no end")
    }
}
