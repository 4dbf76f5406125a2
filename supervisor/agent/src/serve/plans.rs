//! The plan of a session, as people change it.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Plan, SetPlanRequest};
use tonic::Status;

use super::client::{Client, Origin};
use super::service::Service;
use crate::driver::Listener as _;
use crate::plan::{PlanChange, PlanError, SessionPlan as _, checked_steps};

impl Service {
    pub(super) async fn set_plan(&self, client: &Client, request: SetPlanRequest) -> Result<Plan, Status> {
        let SetPlanRequest { session_id, steps, revision } = request;
        if client.origin != Origin::Person {
            return Err(Status::permission_denied(
                "only a person changes a plan: this connection is a model's or a program's; a model writes it with its tool",
            ));
        }
        let session = self.session(client, &session_id).await?;
        let steps = checked_steps(steps.iter().map(|step| (step.text.as_str(), step.state.as_str())))
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let change = PlanChange::Edit { steps, revision };
        let plan = self.agent.plans.of(session.id).change(change).await;
        let plan = plan.map_err(|error| plan_status(&error))?;
        self.agent.approvals.set_plan(&session_id, &plan).await;
        // Clients that follow the turn see it.
        if let Some(running) = self.agent.turns.get(session.id) {
            running.hub.on_chunk(Kind::Plan(plan.to_wire()));
        }
        Ok(plan.to_wire())
    }
}

fn plan_status(error: &PlanError) -> Status {
    match error {
        PlanError::Conflict(_) => Status::failed_precondition(format!("{error} (`talon session plan`)")),
        PlanError::TooLarge { .. } => Status::invalid_argument(error.to_string()),
        PlanError::Store { .. } => Status::unavailable(format!("{error}; see `talon status`")),
    }
}
