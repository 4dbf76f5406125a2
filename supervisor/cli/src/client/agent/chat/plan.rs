//! Executes `/plan`.

use talon_proto::agent::{AskRequest, DecideRequest, Plan};

use super::conversation::Conversation;
use super::plan_command::PlanCommand;
use crate::client::agent::plan::{edit_plan, plan_lines};
use crate::exit;
use crate::failure::Failure;
use crate::terminal_style::uses_words;

/// What is said to a model about a plan that a person wrote or changed between two turns.
const CARRY_OUT: &str = "Carry out the plan.";

impl Conversation<'_> {
    pub(super) async fn execute_plan(&mut self, command: PlanCommand) -> Result<(), Failure> {
        match command {
            PlanCommand::Ask(text) => {
                self.send_message(AskRequest { text, plan: true, ..AskRequest::default() }).await
            }
            PlanCommand::Show => {
                let plan = self.plan().await?;
                self.print_plan(&plan);
                Ok(())
            }
            PlanCommand::Edit(edit) => {
                let id = self.session_for_plan().await?;
                let seen = self.plan().await?;
                let plan = edit_plan(self.connection, &id, &seen, &edit).await?;
                self.print_plan(&plan);
                Ok(())
            }
            PlanCommand::Approve => self.approve_plan().await,
        }
    }

    async fn approve_plan(&mut self) -> Result<(), Failure> {
        let Some(id) = self.session_id.clone() else { return Err(no_plan()) };
        let waiting = self.pending_approvals(&id).await?;
        if let Some(asked) = waiting.into_iter().find(|asked| asked.plan.is_some()) {
            let decision = DecideRequest { approve: true, ..DecideRequest::default() };
            return self.decide(Some(asked.id), decision).await;
        }
        if self.plan().await?.steps.iter().all(|step| step.state == "done") {
            return Err(no_plan());
        }
        self.send_message(AskRequest { text: CARRY_OUT.to_owned(), ..AskRequest::default() }).await
    }

    /// The session's plan; an empty one if there is none.
    async fn plan(&self) -> Result<Plan, Failure> {
        match &self.session_id {
            Some(id) => Ok(self.session(id).await?.plan.unwrap_or_default()),
            None => Ok(Plan::default()),
        }
    }

    /// The session; a new one if there is none yet.
    async fn session_for_plan(&mut self) -> Result<String, Failure> {
        if let Some(id) = &self.session_id {
            return Ok(id.clone());
        }
        let id = self.create_session().await?;
        self.session_id = Some(id.clone());
        Ok(id)
    }

    fn print_plan(&mut self, plan: &Plan) {
        for line in plan_lines(plan, uses_words()) {
            self.out.err_line(line);
        }
    }
}

fn no_plan() -> Failure {
    Failure::new(
        exit::REFUSED,
        "nothing is left of a plan here: /plan add TEXT begins one, /plan ask MESSAGE has one written",
    )
}
