//! Fetches one approval by its id, or all of them.

use talon_proto::agent::{Approval, ListApprovalsRequest};

use crate::client::agent::connection::AgentConnection;
use crate::exit;
use crate::failure::Failure;

/// All approvals that match.
pub(in crate::client::agent) async fn fetch_all(
    reach: &AgentConnection,
    request: ListApprovalsRequest,
) -> Result<Vec<Approval>, Failure> {
    let answer = reach
        .query(|mut agent| {
            let request = request.clone();
            async move { agent.list_approvals(request).await }
        })
        .await?;
    Ok(answer.approvals)
}

/// The approval with this id: searches the caller's own sessions first, then all sessions if the caller may
/// see them.
pub(in crate::client::agent) async fn fetch_one(
    reach: &AgentConnection,
    id: &str,
) -> Result<Approval, Failure> {
    for everybody in [false, true] {
        let request = ListApprovalsRequest { all: true, everybody, ..ListApprovalsRequest::default() };
        let found = match fetch_all(reach, request).await {
            Err(failure) if everybody && failure.code() == exit::DENIED => break,
            found => found?,
        };
        if let Some(approval) = found.into_iter().find(|approval| approval.id == id) {
            return Ok(approval);
        }
    }
    Err(Failure::new(
        exit::REFUSED,
        format!(
            "there is no approval {id} that you may see: `talon approval list --all` has those that there are"
        ),
    ))
}
