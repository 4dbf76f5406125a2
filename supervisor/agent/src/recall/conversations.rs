//! `memory.conversations`: what was said in the same sender's other sessions.
//!
//! Only what the person and the model said is searched, not what tools answered. What was said where only models on
//! this machine may see it is found in such a turn alone.

use std::collections::BTreeMap;

use talon_guard::Raw;
use talon_store::{Message, PageRequest, Role, Session, SessionId, SessionQuery};

use super::arguments::text_argument;
use super::error::MemoryToolError;
use super::keywords;
use super::tools::MemoryTools;
use crate::driver::BuiltinCall;
use crate::fusion;

/// The longest query.
const MAX_QUERY_BYTES: usize = 500;
/// How many words of it are searched for; each is a search of its own.
const MAX_WORDS: usize = 8;
/// How many messages with one word are compared: the best by the store's order.
const MAX_CANDIDATES: u32 = 50;
/// The most messages that are shown.
const MAX_FOUND: usize = 8;
/// How much of a message is shown, and how much of that stands before its first word that was searched for.
const MAX_SHOWN_BYTES: usize = 400;
/// See [`MAX_SHOWN_BYTES`].
const SHOWN_BEFORE_BYTES: usize = 120;

impl MemoryTools {
    pub(super) async fn conversations(&self, call: &BuiltinCall) -> Result<String, MemoryToolError> {
        let Some(past) = &self.past else { return Err(MemoryToolError::UnknownAction) };
        let query = text_argument(&call.args, "query", MAX_QUERY_BYTES)?;
        let words = keywords::extract(query);
        let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).take(MAX_WORDS).collect();
        if words.is_empty() {
            return Err(MemoryToolError::NoWords);
        }
        let mut found: Vec<(SessionId, Message)> = Vec::new();
        let mut orders = Vec::new();
        for word in &words {
            let query = SessionQuery {
                text: (*word).to_owned(),
                sender: Some(call.caller.sender.clone()),
                include_replaced: true,
                ..SessionQuery::default()
            };
            let hits = match past.sessions.search(&query, &PageRequest::first(MAX_CANDIDATES)).await {
                Ok(page) => page.items,
                // A word without letters, or a sender that no session can have.
                Err(talon_store::Error::Invalid { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let mut order = Vec::new();
            for hit in hits {
                let is_said = matches!(hit.message.role, Role::User | Role::Assistant);
                if !is_said
                    || hit.message.content.is_empty()
                    || hit.session.to_string() == call.caller.session
                {
                    continue;
                }
                let same = |(session, message): &(SessionId, Message)| {
                    *session == hit.session && message.sequence == hit.message.sequence
                };
                order.push(found.iter().position(same).unwrap_or(found.len()));
                if order.last() == Some(&found.len()) {
                    found.push((hit.session, hit.message));
                }
            }
            orders.push((1.0, order));
        }
        let mut sessions: BTreeMap<SessionId, Option<Session>> = BTreeMap::new();
        let mut lines = Vec::new();
        for place in fusion::order(&fusion::fuse(found.len(), &orders)) {
            let (id, message) = &found[place];
            if !sessions.contains_key(id) {
                sessions.insert(*id, past.sessions.get(*id).await?);
            }
            // It may have been deleted in between.
            let Some(Some(session)) = sessions.get(id) else { continue };
            if session.sender != call.caller.sender || ((past.is_confined)(session) && !call.pins.local_only)
            {
                continue;
            }
            lines.push(line(*id, message, &words));
            if lines.len() == MAX_FOUND {
                break;
            }
        }
        if lines.is_empty() {
            return Ok("Nothing of this was said in other conversations.".to_owned());
        }
        Ok(lines.join("\n"))
    }
}

/// `2026-11-22 user (01K0…): Which ports are open?`
fn line(session: SessionId, message: &Message, words: &[&str]) -> String {
    let day: String = message.at.to_string().chars().take(10).collect();
    let who = if message.role == Role::User { "user" } else { "assistant" };
    let text = excerpt(&message.content, words);
    format!("{day} {who} ({session}): {}", Raw::from(text).line_within(MAX_SHOWN_BYTES).as_str())
}

/// The text from a little before the first of the words.
fn excerpt<'t>(text: &'t str, words: &[&str]) -> &'t str {
    // Lower case may have another length, so the place is near enough only where it has not.
    let lower = text.to_lowercase();
    let first = words.iter().filter_map(|word| lower.find(&word.to_lowercase())).min();
    let from = first.filter(|_| lower.len() == text.len()).unwrap_or_default();
    &text[text.ceil_char_boundary(from.saturating_sub(SHOWN_BEFORE_BYTES))..]
}
