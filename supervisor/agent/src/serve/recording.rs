//! The recording of a request that changes something.

use std::marker::PhantomData;

use talon_proto::agent::{Operation, OperationClient};
use tonic::{Request, Status};

use super::change::Change;
use super::client::Client;
use super::known_names::KnownNames;
use super::service::Service;
use crate::operations::OperationRecording;

/// The recording of one request.
pub(super) struct ChangeRecording<C> {
    recording: OperationRecording,
    /// Who asks; what is theirs is not said to be.
    client: Client,
    /// An owner was named already.
    is_owner_named: bool,
    change: PhantomData<fn(C)>,
}

impl Service {
    /// Begins to record a request. Who it is for stands there as the gateway said it, before identities are linked.
    pub(super) async fn begin_recording<C: Change>(
        &self,
        client: &Client,
        request: &Request<C>,
    ) -> Result<ChangeRecording<C>, Status> {
        let asked = request.get_ref();
        let operation = Operation {
            client: Some(identity(&Client::of(request)?)),
            verb: asked.verb().to_owned(),
            subject: asked.subject(&KnownNames::new(&self.agent, client)),
            ..Operation::default()
        };
        let recording = OperationRecording::begin(&self.agent.operations, operation).await;
        let mut recording =
            ChangeRecording { recording, client: client.clone(), is_owner_named: false, change: PhantomData };
        // Others find their own sessions alone.
        if let Some(session) = asked.session().filter(|_| client.is_operator())
            && let Ok(session) = self.session(client, session).await
        {
            recording.name_owner(&session.sender);
        }
        Ok(recording)
    }
}

impl<C: Change> ChangeRecording<C> {
    /// Records what came of it, and waits until that was written.
    pub(super) async fn finish(mut self, answer: &Result<C::Answer, Status>) {
        if let Ok(answer) = answer {
            let more = C::answer_subject(answer);
            if !more.is_empty() {
                self.recording.add_to_subject(&more);
            }
            self.name_owner(C::owner(answer));
        }
        self.recording.finish(C::outcome(answer.as_ref().err())).await;
    }

    fn name_owner(&mut self, owner: &str) {
        if !owner.is_empty() && *owner != *self.client.sender && !self.is_owner_named {
            self.recording.add_to_subject(&format!("of {owner}"));
            self.is_owner_named = true;
        }
    }
}

/// A client for the audit log.
fn identity(client: &Client) -> OperationClient {
    OperationClient {
        uid: client.uid,
        gid: client.gid,
        pid: client.pid,
        role: client.role.as_str().to_owned(),
        origin: client.origin.as_str().to_owned(),
        subject: if client.delegates { client.sender.to_string() } else { String::new() },
    }
}
