//! Where a turn meets its hooks: before it begins, and before its answer goes out.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use talon_extensions::contract::HookSession;
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;

use super::checked_text::CheckedText;
use super::drive::TurnRun;
use crate::answer::{self, AnswerVerdict, FinalAnswer};
use crate::hooks::{
    AnswerVerdicts, HookRecord, HookedAnswer, HookedRequest, RecordedVerdict, Stage, StageEnd, StageOutcome,
};
use crate::journal::JournalEntry;
use crate::loop_context::Failure;
use crate::machine::Turn;

/// The longest text of an answer that is kept from people until its hooks have seen it: it is stored beside the message, and
/// given to hooks as an argument. A longer one counts as cut off. Not configurable.
const MAX_WITHHELD_BYTES: usize = 256 << 10;

/// How long hooks run until what is not written yet is written beside them. 20 ms: most answer within two, and then it goes to the
/// disk with the next entry; what a crash may take in that time is a message or an answer of which nobody was told that it is kept.
/// Not configurable.
pub(super) const HOOKS_GRACE: Duration = Duration::from_millis(20);

impl TurnRun<'_> {
    /// Whether people see the text of answers only after hooks did.
    pub(super) fn withholds_text(&self) -> bool {
        self.environment.hooks.hold_text(&self.spec.caller.subagent)
    }

    /// How long an answer may be that is withheld.
    pub(super) fn max_answer_bytes(&self) -> Option<usize> {
        self.withholds_text().then_some(MAX_WITHHELD_BYTES)
    }

    /// Whether filters or request hooks see the message.
    pub(super) fn has_request_hooks(&self) -> bool {
        self.environment.hooks.has(Stage::Request, &self.spec.caller.subagent)
    }

    /// Whether response hooks see the answer.
    pub(super) fn has_response_hooks(&self) -> bool {
        self.environment.hooks.has(Stage::Response, &self.spec.caller.subagent)
    }

    /// Runs filters and request hooks on the message of a new turn. What becomes of it is not stored yet.
    pub(super) async fn run_request_hooks(&mut self) -> Result<(), Failure> {
        if !self.has_request_hooks() {
            return Ok(());
        }
        let outcome = self.run_hooks(Stage::Request, &self.spec.request.clone()).await?;
        self.notify_hooks(&outcome.records);
        let StageOutcome { replaced, metadata, records, end } = outcome;
        self.metadata.clone_from(&metadata);
        let original = match (replaced, &end) {
            // Nothing of it goes on, so nothing of it stands where models and searches look.
            (_, Some(_)) => Some(std::mem::take(&mut self.spec.request)),
            (Some(refined), None) => Some(std::mem::replace(&mut self.spec.request, refined)),
            (None, None) => None,
        };
        if original.is_some() {
            self.turn = Turn::new(self.spec.request.clone(), super::drive::allowed_budgets(&self.spec));
        }
        self.hooked = Some(Box::new(HookedRequest { original, metadata, records, end }));
        Ok(())
    }

    /// The end of a turn whose message hooks let not through.
    pub(super) fn check_request_passed(&self) -> Result<(), Failure> {
        match self.hooked.as_ref().and_then(|hooked| hooked.end.as_ref()) {
            Some(end) => Err(failure("message", end)),
            None => Ok(()),
        }
    }

    /// Whether hooks let no message through, so that there is nothing to learn from the turn.
    pub(super) fn has_no_request(&self) -> bool {
        self.check_request_passed().is_err()
    }

    /// Runs response hooks on an answer that was accepted, or takes what the journal has of them. The schema is checked again
    /// on what they made of it.
    pub(super) async fn apply_response_hooks(
        &mut self,
        verdict: AnswerVerdict,
    ) -> Result<AnswerVerdict, Failure> {
        let AnswerVerdict::Accepted(accepted) = verdict else { return Ok(verdict) };
        let hooked = match self.replay.front() {
            Some(JournalEntry::AnswerHooked(hooked)) => {
                let hooked = hooked.clone();
                if let Some(entry) = self.replay.pop_front() {
                    self.transcript.apply(self.spec.caller.turn, &entry);
                }
                hooked
            }
            // One that was withheld is let go by the journal alone, also where its hooks are configured no more.
            _ if !self.withheld && !self.has_response_hooks() => {
                return Ok(AnswerVerdict::Accepted(accepted));
            }
            _ => {
                let StageOutcome { replaced, metadata, records, end } =
                    self.run_hooks(Stage::Response, &accepted.text).await?;
                let is_replaced = replaced.is_some();
                let text = match end {
                    Some(_) => String::new(),
                    None => replaced.unwrap_or_else(|| accepted.text.clone()),
                };
                let verdicts = AnswerVerdicts { replaced: is_replaced, metadata, records, end };
                let hooked = Box::new(HookedAnswer { text, verdicts });
                // People get the text after the turn's end is written, and this with it.
                self.write_later(JournalEntry::AnswerHooked(hooked.clone()));
                hooked
            }
        };
        let HookedAnswer { text, verdicts } = *hooked;
        self.notify_hooks(&verdicts.records);
        self.metadata = verdicts.metadata;
        if let Some(end) = &verdicts.end {
            return Err(failure("answer", end));
        }
        let accepted = if verdicts.replaced { self.check_replaced(text)? } else { accepted };
        if self.withheld || verdicts.replaced {
            let (text, takes_place) = (accepted.text.clone(), !self.withheld);
            self.checked_text = Some(CheckedText { text, takes_place });
        }
        Ok(AnswerVerdict::Accepted(accepted))
    }

    async fn run_hooks(&mut self, stage: Stage, message: &str) -> Result<StageOutcome, Failure> {
        let caller = &self.spec.caller;
        let session = HookSession {
            id: caller.session.clone(),
            turn: caller.turn,
            sender: caller.sender.clone(),
            channel: caller.channel.clone(),
            subagent: caller.subagent.clone(),
        };
        let (calls, model_use) = (Arc::clone(&self.environment.plugin_calls), Arc::clone(&self.model_use));
        let hooks = self.environment.hooks.for_turn(calls, model_use);
        self.model_use.set_before(self.account.pico_usd);
        let mut unwritten = std::mem::take(&mut self.unwritten);
        let (outcome, written) = {
            let run = self.unless_stopped(hooks.run(stage, message, &session, self.metadata.clone()));
            let mut run = pin!(run);
            match tokio::time::timeout(HOOKS_GRACE, &mut run).await {
                Ok(outcome) => (outcome, Ok(())),
                Err(_) => tokio::join!(run, self.append(std::mem::take(&mut unwritten))),
            }
        };
        self.unwritten = unwritten;
        self.account.record_model_use(self.model_use.settle().await);
        written.and(outcome)
    }

    /// A model cannot correct what a hook wrote, so a text that does not fit ends the turn.
    fn check_replaced(&self, text: String) -> Result<FinalAnswer, Failure> {
        let answer = talon_llm::model::Answer { text, ..Default::default() };
        match answer::check(&answer, self.schema.as_deref()) {
            AnswerVerdict::Accepted(accepted) => Ok(accepted),
            AnswerVerdict::Invalid(error) => Err(Failure::Hook(format!(
                "A response hook changed the answer to one that does not fit what was asked for: {error} Tell the operator."
            ))),
        }
    }

    /// Sends the text that was held back, or that takes the place of what people saw.
    pub(super) fn send_checked_text(&mut self) {
        let Some(CheckedText { text, takes_place }) = self.checked_text.take() else { return };
        if takes_place {
            let text = "Another answer takes the place of the one above.".to_owned();
            let notice = agent::Notice { level: "info".to_owned(), text, discard_text: true };
            self.spec.listener.on_chunk(Kind::Notice(notice));
        }
        self.spec.listener.on_chunk(Kind::Text(agent::Text { text, whole: true }));
    }

    /// Says which hooks changed something, or failed and are passed over.
    fn notify_hooks(&self, records: &[HookRecord]) {
        for HookRecord { role, name, verdict, duration_ms, .. } in records {
            let session = &self.spec.caller.session;
            match verdict {
                RecordedVerdict::Pass | RecordedVerdict::Annotate | RecordedVerdict::Drop => {
                    tracing::debug!(target: "agent", session = %session, %role, name, ?verdict, duration_ms, "a hook answered");
                }
                RecordedVerdict::Replace => {
                    tracing::info!(target: "agent", session = %session, %role, name, duration_ms, "a hook replaced a message");
                    self.notice(
                        "info",
                        format!("{role}/{name} put another text in place of the one that it got."),
                    );
                }
                RecordedVerdict::Failed(error) => {
                    tracing::warn!(target: "agent", session = %session, %role, name, duration_ms, error, "a hook failed");
                    self.notice(
                        "warn",
                        format!("{role}/{name} failed: {error}. See `talon extension list`."),
                    );
                }
            }
        }
    }
}

/// Why a turn ends because of its hooks.
fn failure(what: &str, end: &StageEnd) -> Failure {
    match end {
        StageEnd::Dropped { by, reason } if reason.trim().is_empty() => {
            Failure::Dropped(format!("{by} dropped the {what}, and does not say why. Ask the operator."))
        }
        StageEnd::Dropped { by, reason } => Failure::Dropped(format!("{by} dropped the {what}: {reason}")),
        StageEnd::Failed { by, error } => Failure::Hook(format!(
            "{by} failed, and without it no {what} goes on: {error}. Try again, or tell the operator: `talon extension list` says what is wrong."
        )),
    }
}
