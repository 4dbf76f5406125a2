//! What a button, or a text, decides.

use std::sync::Arc;

use talon_extensions::ChannelEntry;
use talon_proto::agent::Approval;
use talon_proto::agent::chunk::Kind;
use talon_store::SessionId;

use super::inbound::MessageSource;
use super::prompts::{Choice, DIGEST_CHARS, choice, is_open_question};
use super::routing::{Route, may_approve, route};
use super::service::Channels;
use crate::approval::DecideError;
use crate::driver::Listener as _;
use crate::operations::{OperationOutcome, OperationRecording, decided_subject, id};

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
        let mut recording = self.begin_recording(choice.verb(), choice.approval(), route.speaker()).await;
        let said = match self.decide(entry, speaker, &route, choice).await {
            Ok((decided, said)) => {
                add_decided(&mut recording, &decided, route.speaker());
                recording.finish(OperationOutcome::Done).await;
                said
            }
            Err(refusal) => {
                recording.finish(refusal.outcome).await;
                refusal.said
            }
        };
        self.say(channel, &speaker.conversation, format!("decided:{}", self.next_id()), said);
    }

    /// Begins to record a decision of a person who writes over a channel.
    async fn begin_recording(&self, verb: &str, approval: &str, by: &str) -> OperationRecording {
        let subject = id(approval).to_owned();
        OperationRecording::begin_by_person(&self.agent.operations, by, verb, subject).await
    }

    /// What was decided and is said of it, or why nothing was.
    async fn decide(
        &self,
        entry: &ChannelEntry,
        speaker: &MessageSource,
        route: &Route,
        choice: Choice<'_>,
    ) -> Result<(Approval, String), Refusal> {
        let id = choice.approval();
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
                    let outcome = OperationOutcome::Denied("the operator does not list who decides it");
                    return Err(Refusal { said, outcome });
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
        let (decided, said) = decided.map_err(|error| Refusal::of(&error))?;
        self.tell(decided.clone());
        Ok((decided, said))
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

    /// Answers a question. Returns whether it did. The record is not waited for: nobody is answered, and others wait for this.
    pub(super) async fn answer_question(&self, question: &str, text: &str, by: &str) -> bool {
        let mut recording = self.begin_recording("answer_approval", question, by).await;
        match self.agent.approvals.answer(question, text, by).await {
            Ok(answered) => {
                add_decided(&mut recording, &answered, by);
                recording.finish_unawaited(OperationOutcome::Done);
                self.tell(answered);
                true
            }
            // It was answered meanwhile, or the text is too long: it is a message of its own.
            Err(_) => {
                recording.discard();
                false
            }
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

/// Says in a record what was decided, and whose it was if it is somebody else's.
fn add_decided(recording: &mut OperationRecording, decided: &Approval, by: &str) {
    recording.add_to_subject(&decided_subject(decided));
    if !decided.sender.is_empty() && decided.sender != by {
        recording.add_to_subject(&format!("of {}", decided.sender));
    }
}

/// Why nothing was decided.
struct Refusal {
    /// As it is said where the button was pressed.
    said: String,
    /// As it is recorded.
    outcome: OperationOutcome,
}

impl Refusal {
    fn of(error: &DecideError) -> Self {
        let outcome = match error {
            DecideError::Store(_) => {
                OperationOutcome::Unknown("it could not be stored; it may have been decided")
            }
            _ => OperationOutcome::Failed("its state does not allow it"),
        };
        Self { said: talon_error_chain::error_chain(error), outcome }
    }
}

fn not_waiting() -> Refusal {
    Refusal {
        said: "This is not waiting any more.".to_owned(),
        outcome: OperationOutcome::Failed("it is not waiting, or it is somebody else's"),
    }
}
