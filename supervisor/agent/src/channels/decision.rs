//! What a button, or a text, decides.

use std::sync::Arc;

use talon_extensions::ChannelEntry;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Approval, Operation, OperationClient};
use talon_store::SessionId;

use super::inbound::MessageSource;
use super::prompts::{Choice, DIGEST_CHARS, choice, is_open_question};
use super::routing::{Route, may_approve, route};
use super::service::Channels;
use crate::driver::Listener as _;
use crate::operations::{OperationOutcome, OperationRecording};

impl Channels {
    /// A button was pressed. It counts as its sender, and decides only what waits in its own conversation.
    pub(super) async fn press(self: &Arc<Self>, entry: &ChannelEntry, speaker: &MessageSource, button: &str) {
        let setup = self.agent.setup();
        let (channel, sender) = (&entry.name, &speaker.sender_id);
        let Ok(route) = route(entry, &setup.settings.agent, speaker) else {
            tracing::info!(channel, sender, "a button is ignored: who pressed it may not speak here");
            return;
        };
        let Some(choice) = choice(button) else {
            tracing::info!(channel, sender, "a button is ignored: it is none of an approval");
            return;
        };
        let recording = self.recording(&choice, route.speaker()).await;
        let said = match self.decide(entry, speaker, &route, choice).await {
            Ok(said) => {
                recording.finish(OperationOutcome::Done).await;
                said
            }
            Err(DecisionError::Denied(said)) => {
                recording.finish(OperationOutcome::Denied("the operator does not list who decides it")).await;
                said
            }
            Err(DecisionError::Failed(said)) => {
                recording.finish(OperationOutcome::Failed(&said)).await;
                said
            }
        };
        self.say(channel, &speaker.conversation, format!("decided:{}", self.next_id()), said);
    }

    async fn recording(&self, choice: &Choice<'_>, by: &str) -> OperationRecording {
        let (verb, approval) = match choice {
            Choice::Allow { approval, .. } => ("allow_approval", approval),
            Choice::Deny { approval, .. } => ("deny_approval", approval),
            Choice::Answer { approval, .. } => ("answer_approval", approval),
        };
        OperationRecording::begin(&self.agent.operations, operation(verb, approval, by)).await
    }

    /// What is said of a decision, or why none was made.
    async fn decide(
        &self,
        entry: &ChannelEntry,
        speaker: &MessageSource,
        route: &Route,
        choice: Choice<'_>,
    ) -> Result<String, DecisionError> {
        let (Choice::Allow { approval: id, .. }
        | Choice::Deny { approval: id, .. }
        | Choice::Answer { approval: id, .. }) = choice;
        let found = self.agent.approvals.get(id).await;
        let seen = found.filter(|approval| approval.sender == route.owner);
        let seen = seen.ok_or_else(not_waiting)?;
        let (by, name) = (route.speaker(), &speaker.sender_name);
        let decided = match choice {
            Choice::Answer { number, .. } => {
                let answer = seen.choices.get(number).filter(|_| is_open_question(&seen));
                let answer = answer.ok_or_else(not_waiting)?;
                self.agent
                    .approvals
                    .answer(id, answer, by)
                    .await
                    .map(|decided| (decided, format!("{name}: {answer}")))
            }
            Choice::Allow { digest, .. } | Choice::Deny { digest, .. } => {
                let setup = self.agent.setup();
                if !may_approve(entry, &setup.settings.agent, speaker, route) {
                    tracing::warn!(
                        channel = entry.name,
                        sender = speaker.sender_id,
                        approval = id,
                        "who pressed a button may not decide"
                    );
                    let said = format!("{name} may not decide this: the operator lists who may.");
                    return Err(DecisionError::Denied(said));
                }
                if digest.len() != DIGEST_CHARS
                    || !seen.digest.starts_with(digest)
                    || !seen.question.is_empty()
                {
                    return Err(not_waiting());
                }
                let allow = matches!(choice, Choice::Allow { .. });
                let said =
                    if allow { format!("✅ Allowed by {name}.") } else { format!("🚫 Denied by {name}.") };
                self.agent
                    .approvals
                    .decide(id, allow, &seen.digest, "", by)
                    .await
                    .map(|decided| (decided, said))
            }
        };
        let (decided, said) =
            decided.map_err(|error| DecisionError::Failed(talon_error_chain::error_chain(&error)))?;
        self.tell(decided);
        Ok(said)
    }

    /// The id of the question that waits in a conversation for a text: one of the model's, never a call's approval, and never one of
    /// another session of the same person, who does not see it here.
    pub(super) async fn open_question(&self, route: &Route, channel: &str) -> Option<String> {
        let mut waiting = self.agent.approvals.list(false).await;
        waiting.retain(|approval| approval.sender == route.owner && is_open_question(approval));
        if waiting.is_empty() {
            return None;
        }
        // A message of its own waits until the store answers again.
        let session = self.agent.main_session(&route.owner, channel).await.ok()?;
        let is_here =
            |approval: &&Approval| SessionId::new(&approval.session_id).is_ok_and(|id| id == session.id);
        waiting.iter().find(is_here).map(|question| question.id.clone())
    }

    /// Answers a question. Returns whether it did.
    pub(super) async fn answer_question(&self, question: &str, text: &str, by: &str) -> bool {
        match self.agent.approvals.answer(question, text, by).await {
            Ok(answered) => {
                let answer = operation("answer_approval", question, by);
                OperationRecording::begin(&self.agent.operations, answer)
                    .await
                    .finish(OperationOutcome::Done)
                    .await;
                self.tell(answered);
                true
            }
            // It was answered meanwhile, or the text is too long: it is a message of its own.
            Err(_) => false,
        }
    }

    /// Those who follow the turn see the decision.
    fn tell(&self, decided: Approval) {
        let running = SessionId::new(&decided.session_id).ok().and_then(|id| self.agent.turns.get(id));
        if let Some(running) = running {
            running.hub.on_chunk(Kind::Approval(decided));
        }
    }
}

/// Why nothing was decided, as it is said where the button was pressed.
enum DecisionError {
    /// Who pressed it may not.
    Denied(String),
    Failed(String),
}

fn not_waiting() -> DecisionError {
    DecisionError::Failed("This is not waiting any more.".to_owned())
}

/// A decision of a person who writes over a channel, for the audit log: as what the same person does over the gateway.
fn operation(verb: &str, approval: &str, by: &str) -> Operation {
    let client =
        OperationClient { origin: "person".to_owned(), subject: by.to_owned(), ..OperationClient::default() };
    Operation {
        client: Some(client),
        verb: verb.to_owned(),
        subject: approval.to_owned(),
        ..Operation::default()
    }
}
