//! One approval by its id, and all of them.

use talon_proto::agent::{Approval, ListApprovalsRequest};

use super::super::super::failure::Failure;
use super::super::reach::Reach;
use crate::exit;

/// What the agent has of them.
pub(in crate::cli::agent) async fn all(
    reach: &Reach,
    request: ListApprovalsRequest,
) -> Result<Vec<Approval>, Failure> {
    let answer = reach
        .ask(|mut agent| {
            let request = request.clone();
            async move { agent.list_approvals(request).await }
        })
        .await?;
    Ok(answer.approvals)
}

/// The one with this id: among one's own, and then, for who may see them, among everybody's.
pub(in crate::cli::agent) async fn one(reach: &Reach, id: &str) -> Result<Approval, Failure> {
    for everybody in [false, true] {
        let request = ListApprovalsRequest { all: true, everybody, ..ListApprovalsRequest::default() };
        let found = match all(reach, request).await {
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
