//! The session's plan in a turn: the model writes it, a person changes and approves it.
//!
//! In a turn with [`TurnSpec::plans_first`](super::TurnSpec::plans_first) only calls that read are made until a
//! person approved a plan. What a person changes meanwhile is noted before the next question.

use std::sync::atomic::Ordering;

use talon_agent_settings::TimeSpan;
use talon_llm::model::{NOTE_BEGINS, ToolCall, ToolSpec};
use talon_proto::agent::chunk::Kind;

use super::Reply;
use super::drive::TurnRun;
use super::persistence::with_write_timeout;
use super::turn_actions::succeeded;
use crate::fence;
use crate::journal::JournalError;
use crate::loop_context::Failure;
use crate::plan::{Plan, PlanChange, PlanError, SessionPlan};
use crate::question::Question;
use crate::tool_result::ToolResult;
use crate::tools::{self, PLAN_ACTION, Tool};

/// The answer to the question whether a plan is carried out. Any other is what the person wants otherwise.
pub const APPROVE_PLAN: &str = "approve";

/// The question to the person. It is the same each time, so that a restart finds it again; the steps stand where plans
/// are kept, and may be changed meanwhile.
const QUESTION: &str = "Carry out this plan?";

/// The note that begins a turn with a plan.
const PLAN_FIRST: &str = "the user wants a plan first. Look around with calls that only read, then write the plan with talon__plan. Every \
other call is refused until the user has approved it. If nothing has to be done for an answer, answer without a plan.]";

/// The name of a plan's block.
const BLOCK: &str = "plan";

/// What a model may not call before the plan is approved, and what to do.
const NOT_APPROVED_YET: &str = "error: not run: the user wants to approve a plan first, and until then only calls that read are made; \
write it with talon__plan";

impl TurnRun<'_> {
    /// Reads the plan as the turn begins, or goes on, and shows it to the model if something is left to do.
    pub(super) async fn load_plan(&mut self) -> Result<(), Failure> {
        let Some(place) = self.spec.session_plan.clone() else { return Ok(()) };
        let plan = with_write_timeout(async { place.read().await.map_err(store_failure) }).await?;
        self.plan_approved.store(plan.is_approved_in(self.spec.caller.turn), Ordering::Relaxed);
        self.has_plan = self.spec.plans_first || plan.is_open() || plan.is_unseen();
        if plan.is_open() {
            self.prompt = self.prompt.clone().plan(Some(plan.text()));
            with_write_timeout(async { place.change(PlanChange::Show).await.map_err(store_failure) }).await?;
        }
        Ok(())
    }

    /// Notes in a new turn that the user wants a plan first.
    pub(super) async fn note_plan_first(&mut self) -> Result<(), Failure> {
        if !self.spec.plans_first || self.resumed {
            return Ok(());
        }
        if self.spec.no_tools {
            self.notice(
                "warn",
                "No plan is written, since that takes a call, and this turn has none.".to_owned(),
            );
            return Ok(());
        }
        self.note(format!("{NOTE_BEGINS}{PLAN_FIRST}"), false).await
    }

    /// Notes what a person changed since the model saw the plan. The note is written first: a crash between both
    /// repeats it.
    pub(super) async fn note_plan_change(&mut self) -> Result<(), Failure> {
        let Some(place) = self.spec.session_plan.clone().filter(|_| self.has_plan) else { return Ok(()) };
        let plan = with_write_timeout(async { place.read().await.map_err(store_failure) }).await?;
        if !plan.is_unseen() {
            return Ok(());
        }
        self.note(changed_note(&plan), false).await?;
        with_write_timeout(async { place.change(PlanChange::Show).await.map_err(store_failure) }).await?;
        Ok(())
    }

    /// What a question to a model offers beside the plugins' tools: to write the plan, where there is one.
    pub(super) fn plan_spec(&self) -> Option<ToolSpec> {
        let shown = self.has_plan && !self.is_last_question();
        let tool = self.offer.hidden().find(|tool| self.is_turn_action(tool) && tool.action == PLAN_ACTION);
        tool.filter(|_| shown).map(|tool| tool.spec.clone())
    }

    /// Why a call is not made before the plan is approved; `None` if it may be.
    pub(super) fn refused_before_plan(&self, tool: &Tool) -> Option<&'static str> {
        (self.awaits_plan() && !tool.read_only).then_some(NOT_APPROVED_YET)
    }

    fn awaits_plan(&self) -> bool {
        self.spec.plans_first && !self.plan_approved.load(Ordering::Relaxed)
    }

    /// Writes the plan of a call, and waits for its approval if the turn asks for one.
    pub(super) async fn write_plan(&self, place: usize, call: &ToolCall) -> ToolResult {
        let Some(plans) = &self.spec.session_plan else {
            return tools::denied("error: not written: there is no plan in this turn");
        };
        let steps = match tools::plan_steps(call) {
            Some(Ok(steps)) if !steps.is_empty() => steps,
            Some(Ok(_)) | None => return tools::denied("error: not written: a plan has steps"),
            Some(Err(error)) => return tools::denied(&format!("error: not written: {error}")),
        };
        let turn = self.spec.caller.turn;
        let call_key = format!("{turn}.{}.{place}", self.turn.context().iteration());
        let plan = match plans.change(PlanChange::Rewrite { steps, call: call_key }).await {
            Ok(plan) => plan,
            Err(PlanError::Conflict(plan)) => {
                if let Err(error) = plans.change(PlanChange::Show).await {
                    tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "the plan is shown again");
                }
                return tools::denied(&conflict(&plan));
            }
            Err(error) => return tools::denied(&format!("error: not written: {error}")),
        };
        if !self.awaits_plan() {
            self.spec.listener.on_chunk(Kind::Plan(plan.to_wire()));
            return succeeded("The user sees the plan.".to_owned());
        }
        if plan.is_approved_in(turn) {
            self.plan_approved.store(true, Ordering::Relaxed);
            return succeeded(approved(&plan));
        }
        self.ask_about_plan(plans.as_ref(), call, plan).await
    }

    async fn ask_about_plan(&self, plans: &dyn SessionPlan, call: &ToolCall, plan: Plan) -> ToolResult {
        let question =
            Question { text: QUESTION.to_owned(), plan: Some(Box::new(plan)), ..Question::default() };
        // Models use an id twice, and a restart finds a question by its id.
        let id = format!("{}.{}", call.id, self.turn.context().iteration());
        let reply = {
            let _waiting = self.clock.wait();
            let approver = &self.environment.approver;
            approver.ask_person(&self.spec.caller, &id, &question, &self.spec.listener).await
        };
        // The model sees it as it is now, whatever the reply is.
        let (change, words) = match reply {
            Reply::Answered(answer) if answer == APPROVE_PLAN => {
                (PlanChange::Approve { turn: self.spec.caller.turn }, None)
            }
            Reply::Answered(words) | Reply::Declined(words) => (PlanChange::Show, Some(words)),
            Reply::Expired(waited) => {
                return tools::denied(&format!(
                    "error: not approved: the user did not decide within {}; carry nothing of it out, and finish with that",
                    TimeSpan::from_secs(waited.as_secs())
                ));
            }
            Reply::NotAsked(why) => {
                return tools::denied(&format!("error: not approved: it was not shown: {why}"));
            }
        };
        let plan = match plans.change(change).await {
            Ok(plan) => plan,
            Err(error) => return tools::denied(&format!("error: not approved: {error}")),
        };
        match words {
            None if plan.steps.is_empty() => {
                succeeded("The user removed all steps: carry nothing out, and finish.".to_owned())
            }
            None => {
                self.plan_approved.store(true, Ordering::Relaxed);
                self.spec.listener.on_chunk(Kind::Plan(plan.to_wire()));
                succeeded(approved(&plan))
            }
            Some(words) => succeeded(not_approved(&words, &plan)),
        }
    }
}

/// The plan as a person changed it, as a note for the model.
fn changed_note(plan: &Plan) -> String {
    if plan.steps.is_empty() {
        return format!("{NOTE_BEGINS}the user removed the plan. What is not done yet is not to be done.]");
    }
    let introduction = format!(
        "{NOTE_BEGINS}the user changed the plan. It is now as follows; what is no longer in it is not to be done.]"
    );
    fence::closed(BLOCK, &introduction, &plan.text())
}

/// The result of a call that would have written over what a person changed.
fn conflict(plan: &Plan) -> String {
    if plan.steps.is_empty() {
        return "error: not written: the user removed the plan; write one only if it is asked for".to_owned();
    }
    let introduction =
        "error: not written: the user changed the plan meanwhile. Write it anew from what it is now:";
    fence::closed(BLOCK, introduction, &plan.text())
}

/// The approved plan, for the model.
fn approved(plan: &Plan) -> String {
    let edited =
        if plan.is_edited() { "changed the plan, and approves it as it is now" } else { "approves the plan" };
    let introduction =
        format!("The user {edited}. Carry it out, and write it again when a step is begun or done.");
    fence::closed(BLOCK, &introduction, &plan.text())
}

/// The plan that is not approved, with what the person says, for the model.
fn not_approved(words: &str, plan: &Plan) -> String {
    let mut text = match words {
        "" => {
            "The user does not approve the plan: write another, or finish without carrying it out.".to_owned()
        }
        words => format!("The user does not approve the plan, and says:\n{words}"),
    };
    if plan.is_edited() {
        text.push_str(&fence::closed(BLOCK, "\nThe user had changed it to:", &plan.text()));
    }
    text
}

fn store_failure(error: PlanError) -> JournalError {
    JournalError { why: error.to_string() }
}
