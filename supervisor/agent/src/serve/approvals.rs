//! Calls that wait for a person.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Approval, DecideRequest, ListApprovalsRequest, ListApprovalsResponse};
use talon_store::SessionId;
use tonic::Status;

use super::client::{Client, Origin};
use super::service::Service;
use crate::approval::DecideError;
use crate::driver::Listener as _;

impl Service {
    pub(super) async fn list_approvals(
        &self,
        client: &Client,
        request: ListApprovalsRequest,
    ) -> Result<ListApprovalsResponse, Status> {
        let ListApprovalsRequest { all, session_id, everybody } = request;
        if everybody {
            client.require_operator("to see everybody's approvals")?;
        }
        if !session_id.is_empty() {
            self.session(client, &session_id).await?;
        }
        let mut approvals = self.agent.approvals.list(all).await;
        approvals.retain(|approval| {
            if session_id.is_empty() {
                everybody || *approval.sender == *client.sender
            } else {
                approval.session_id == session_id
            }
        });
        Ok(ListApprovalsResponse { approvals })
    }

    pub(super) async fn decide(&self, client: &Client, request: DecideRequest) -> Result<Approval, Status> {
        let DecideRequest { id, approve, digest, reason } = request;
        if client.origin != Origin::Person {
            tracing::warn!(client.uid, client.pid, origin = ?client.origin, "a decision that no person made was refused");
            return Err(Status::permission_denied(
                "only a person decides: this connection is a model's or a program's; use `talon approval` by hand",
            ));
        }
        let seen = self.agent.approvals.get(&id).await;
        if !seen.is_some_and(|approval| client.is_operator() || *approval.sender == *client.sender) {
            return Err(decide_error_status(&DecideError::Unknown { id: id.chars().take(40).collect() }));
        }
        let decided = self.agent.approvals.decide(&id, approve, &digest, &reason, &client.sender).await;
        let decided = decided.map_err(|error| decide_error_status(&error))?;
        // Clients that follow the turn see the decision.
        let running = SessionId::new(&decided.session_id).ok().and_then(|id| self.agent.turns.get(id));
        if let Some(running) = running {
            running.hub.on_chunk(Kind::Approval(decided.clone()));
        }
        Ok(decided)
    }
}

fn decide_error_status(error: &DecideError) -> Status {
    let text = talon_error_chain::error_chain(error);
    match error {
        DecideError::Unknown { .. } => Status::not_found(text),
        DecideError::LongReason { .. } => Status::invalid_argument(text),
        DecideError::Decided { .. }
        | DecideError::Expired
        | DecideError::Cancelled
        | DecideError::OtherDigest => Status::failed_precondition(text),
        DecideError::Store(error) => crate::error_status::store_error_status(error),
    }
}
