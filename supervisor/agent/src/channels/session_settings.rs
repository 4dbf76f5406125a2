//! Carries out what people set of their sessions by commands of a chat.

use std::sync::Arc;

use talon_agent_settings::Tier;
use talon_agent_settings::catalog::CatalogEntry;
use talon_extensions::ChannelEntry;
use talon_sanitize::Raw;
use talon_store::{Error, Session, SessionChange};
use tonic::Status;

use super::inbound::InboundMessage;
use super::routing::{Route, may_approve};
use super::service::Channels;
use super::session_command::SessionCommand;
use crate::agent::{Setup, VERBOSE, known_model, known_thinking};
use crate::error_status::store_error_status;
use crate::journal::SessionFact;
use crate::operations::{OperationOutcome, OperationRecording};

/// How many names of models are shown. 40: what a person reads in a chat; `talon model list` has all.
const MAX_MODELS: usize = 40;

impl Channels {
    /// Carries out a command for the session in which it was written: the person's own, or their group's. What it did, or why not, is said
    /// there.
    pub(super) async fn carry_out(
        self: &Arc<Self>,
        entry: &ChannelEntry,
        message: &InboundMessage,
        route: &Route,
        command: SessionCommand,
    ) {
        let setup = self.agent.setup();
        let speaker = &message.speaker;
        // In a group it is everybody's session, and the money of all.
        let is_listed = route.member.is_none() || may_approve(entry, &setup.settings.agent, speaker, route);
        let session = self.agent.main_session(&route.owner, &entry.name).await;
        let said = match session {
            Err(status) => refused(&status),
            Ok(session) if !command.changes() => shown(&setup, &session, &command),
            Ok(session) => {
                let recording = self.begin_setting(&session, route, &command).await;
                if is_listed {
                    let changed = self.change(&setup, &session, &command).await;
                    recording.finish(OperationOutcome::of(changed.as_ref().err())).await;
                    changed.unwrap_or_else(|status| refused(&status))
                } else {
                    let (group, speaker) = (&route.owner, route.speaker());
                    tracing::warn!(group, speaker, "who wrote a command may not set this");
                    recording
                        .finish(OperationOutcome::Denied("the operator does not list who sets it"))
                        .await;
                    not_listed(&message.speaker.sender_name)
                }
            }
        };
        let id = format!("command:{}", message.id);
        self.say(&entry.name, &speaker.conversation, id, said);
    }

    /// Begins to record a change, as one that the same person makes over the gateway.
    async fn begin_setting(
        &self,
        session: &Session,
        route: &Route,
        command: &SessionCommand,
    ) -> OperationRecording {
        let speaker = route.speaker();
        let of = if speaker == route.owner { String::new() } else { format!(" of {}", route.owner) };
        let subject = format!("{} {}{of}", session.id, field(command));
        OperationRecording::begin_by_person(&self.agent.operations, speaker, "update_session", subject).await
    }

    /// Makes a change to the session. Returns what holds from the next message on.
    async fn change(
        &self,
        setup: &Setup,
        session: &Session,
        command: &SessionCommand,
    ) -> Result<String, Status> {
        let change = match command {
            SessionCommand::Model(name) => {
                let model = known_model(setup, name).map_err(|_| unknown_model(setup, name))?;
                SessionChange { model: Some(model), ..SessionChange::default() }
            }
            SessionCommand::Thinking(level) => {
                let level = known_thinking(level)?.map(|_| level.clone());
                SessionChange { thinking: Some(level), ..SessionChange::default() }
            }
            SessionCommand::Verbose(on) => {
                let metadata = [(VERBOSE.to_owned(), on.then(|| "true".to_owned()))].into();
                SessionChange { metadata, ..SessionChange::default() }
            }
            // They change nothing.
            _ => SessionChange::default(),
        };
        let updated = async {
            let updated = self.agent.sessions.update(session.id, change).await?;
            let fact = SessionFact::Updated { fields: vec![field(command).to_owned()] };
            self.agent.sessions.note(session.id, vec![fact.into_message()]).await?;
            Ok(updated)
        };
        let session = updated.await.map_err(|error: Error| store_error_status(&error))?;
        Ok(match command {
            SessionCommand::Model(_) => model_line(&session),
            SessionCommand::Thinking(_) => thinking_line(&session),
            _ => verbose_line(&session),
        })
    }
}

fn not_listed(name: &str) -> String {
    format!("{name} may not set this for the group: the operator lists who may (agent.groups).")
}

/// The field of the session that a command is about, as the protocol has it.
fn field(command: &SessionCommand) -> &'static str {
    match command {
        SessionCommand::ShowModel | SessionCommand::Model(_) => "model",
        SessionCommand::ShowThinking | SessionCommand::Thinking(_) => "thinking",
        _ => "verbose",
    }
}

fn shown(setup: &Setup, session: &Session, command: &SessionCommand) -> String {
    match command {
        SessionCommand::Wrong(what) => (*what).to_owned(),
        SessionCommand::ShowModel => {
            let known = known_models(setup.environment.chain.catalog().entries());
            format!("{}\nThere are: {known}.", model_line(session))
        }
        SessionCommand::ShowThinking => thinking_line(session),
        _ => verbose_line(session),
    }
}

fn model_line(session: &Session) -> String {
    let model = session.overrides.model.as_deref().unwrap_or("as configured");
    format!("The model of this conversation: {model}.")
}

fn thinking_line(session: &Session) -> String {
    let level = session.overrides.thinking.as_deref().unwrap_or("as configured");
    format!("How long the model thinks: {level}.")
}

fn verbose_line(session: &Session) -> String {
    let is_on = if session.metadata.contains_key(VERBOSE) { "are" } else { "are not" };
    format!("Arguments and results of calls {is_on} shown here.")
}

fn refused(status: &Status) -> String {
    format!("⚠️ {}", status.message())
}

fn unknown_model(setup: &Setup, name: &str) -> Status {
    let shown = Raw::from(name).line_within(80).into_string();
    let known = known_models(setup.environment.chain.catalog().entries());
    Status::invalid_argument(format!("No model is called {shown}. There are: {known}."))
}

/// The names of models that may be set, with their short ones, and the tiers.
fn known_models(entries: &[CatalogEntry]) -> String {
    let name = |entry: &CatalogEntry| match &entry.model.alias {
        Some(alias) => format!("{} ({alias})", entry.id),
        None => entry.id.to_string(),
    };
    let mut names: Vec<String> = entries.iter().take(MAX_MODELS).map(name).collect();
    if let Some(more) = entries.len().checked_sub(MAX_MODELS).filter(|more| *more > 0) {
        names.push(format!("and {more} more"));
    }
    let tiers = Tier::ALL.into_iter().filter(|tier| entries.iter().any(|entry| entry.model.tier == *tier));
    names.extend(tiers.map(|tier| format!("talon/{}", tier.word())));
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-301
    #[test]
    fn the_models_there_are_are_named_within_bounds() {
        let entry = |number: usize, alias: &str| {
            let model = serde_json::json!({"tier": "cheap", "context_window": 1000, "alias": alias});
            CatalogEntry {
                id: format!("local/m{number}").parse().expect("a name"),
                model: serde_json::from_value(model).expect("a model"),
            }
        };
        let some = [entry(1, "fast"), entry(2, "small")];
        assert_eq!(known_models(&some), "local/m1 (fast), local/m2 (small), talon/cheap");
        let many: Vec<CatalogEntry> = (0..100).map(|number| entry(number, "x")).collect();
        let known = known_models(&many);
        assert!(
            known.contains("local/m39 (x), and 60 more, talon/cheap") && !known.contains("m40"),
            "{known}"
        );
    }
}
