//! Sends a changed plan.

use talon_proto::agent::{Plan, SetPlanRequest};

use super::edit::PlanEdit;
use crate::client::agent::connection::AgentConnection;
use crate::failure::Failure;

/// The request that puts the edited steps in the place of the plan that was seen.
///
/// # Errors
/// Which step is not there, for people.
pub(in crate::client::agent) fn set_request(
    session_id: &str,
    seen: &Plan,
    edit: &PlanEdit,
) -> Result<SetPlanRequest, String> {
    let steps = edit.apply(&seen.steps)?;
    Ok(SetPlanRequest { session_id: session_id.to_owned(), steps, revision: seen.revision })
}

/// Edits a session's plan, and returns it as it is then.
pub(in crate::client::agent) async fn edit_plan(
    connection: &AgentConnection,
    session_id: &str,
    seen: &Plan,
    edit: &PlanEdit,
) -> Result<Plan, Failure> {
    let request = set_request(session_id, seen, edit).map_err(Failure::usage)?;
    connection.send_once(async move |mut agent| agent.set_plan(request).await).await
}
