//! A session as a file that `talon import` reads: `sessions/<id>.yaml`, and `media/<id>.yaml` beside it.
//!
//! `talon export` has it from `talon-state`, and the agent writes it before it deletes an old session.

use serde_json::Value;
use talon_store::{Message, Overrides, Role, Session, SessionId, SessionState};

use crate::yaml::YamlWriter;

/// The path of a session's file.
#[must_use]
pub fn session_path(id: SessionId) -> String {
    format!("sessions/{id}.yaml")
}

/// The path of the images and files of a session.
#[must_use]
pub fn media_path(id: SessionId) -> String {
    format!("media/{id}.yaml")
}

/// Writes whose session it is, with which each file begins.
pub fn write_owner(yaml: &mut YamlWriter, id: SessionId, sender: &str) {
    yaml.bare("id", id);
    yaml.text("sender", sender);
}

/// Writes everything but the messages. They follow below the key `messages`.
pub fn write_head(yaml: &mut YamlWriter, session: &Session) {
    write_owner(yaml, session.id, &session.sender);
    yaml.text("channel", &session.channel);
    yaml.bare("state", if session.state == SessionState::Idle { "idle" } else { "active" });
    if let Some(model) = &session.active_model {
        yaml.text("active_model", model);
    }
    if !session.overrides.is_empty() {
        let Overrides { model, thinking, verbosity } = &session.overrides;
        yaml.map("overrides", |yaml| {
            for (key, value) in [("model", model), ("thinking", thinking), ("verbosity", verbosity)] {
                if let Some(value) = value {
                    yaml.text(key, value);
                }
            }
        });
    }
    if !session.metadata.is_empty() {
        yaml.map("metadata", |yaml| session.metadata.iter().for_each(|(key, value)| yaml.text(key, value)));
    }
    yaml.bare("created_at", session.created_at);
    yaml.bare("updated_at", session.updated_at);
    yaml.bare("next_sequence", session.next_sequence);
}

/// Writes a message as the next item of a list.
pub fn write_message(yaml: &mut YamlWriter, message: &Message) {
    yaml.item(|yaml| {
        yaml.bare("sequence", message.sequence);
        yaml.bare("role", word(message.role));
        yaml.text("content", &message.content);
        // Null is read as absent, so it is not written.
        let said = |value: &&Value| !value.is_null();
        if let Some(calls) = message.tool_calls.as_ref().filter(said) {
            yaml.json("tool_calls", calls);
        }
        if let Some(results) = message.tool_results.as_ref().filter(said) {
            yaml.json("tool_results", results);
        }
        yaml.bare("at", message.at);
        if let Some(last) = message.summarizes {
            yaml.bare("summarizes", last);
        }
        if let Some(summary) = message.replaced_by {
            yaml.bare("replaced_by", summary);
        }
        if let Some(key) = &message.key {
            yaml.text("key", key);
        }
    });
}

fn word(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}
