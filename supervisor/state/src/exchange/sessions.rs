//! A conversation as YAML: Talon's form with all stored fields, and the founding form, which has no numbers
//! and no times of messages, and ids of any kind.

use std::collections::BTreeMap;

use talon_store::limits::{MAX_METADATA_ENTRIES, MAX_METADATA_VALUE_BYTES, MAX_NAME_BYTES};
use talon_store::{ExportedSession, Message, Overrides, Session, SessionId, SessionState, Timestamp};

use super::excerpt::excerpt;
use super::fields::{checked, text};
use super::ids;
use super::messages::{self, ParsedMessage};
use super::node::{Mark, Node, Problem};
use super::omitted::OmittedFields;
use super::scalar;

/// The sender or channel of a session that has none.
pub(super) const UNKNOWN_NAME: &str = "import";
/// What a founding session's `verboseLevel: true` is here.
const VERBOSE: &str = "high";
/// The metadata key for the id of a foreign session.
pub(super) const IMPORTED_ID: &str = "imported_id";

/// A session that is being read, field by field and message by message.
#[derive(Debug, Default)]
pub(super) struct SessionReader {
    fields: BTreeMap<String, Node>,
    messages: Vec<ParsedMessage>,
    /// The first problem, and how many there are.
    problem: Option<(Problem, usize)>,
    omitted: OmittedFields,
}

impl SessionReader {
    /// The name of the session in reports.
    pub(super) fn name(&self) -> Option<String> {
        let node = self.fields.get("id")?;
        match &node.kind {
            super::node::NodeKind::Scalar { text, .. } if !text.is_empty() => Some(excerpt(text)),
            _ => None,
        }
    }

    pub(super) fn field(&mut self, key: Node, value: Node) {
        let at = key.at;
        match key.text() {
            Ok(key) if self.fields.contains_key(&key) => {
                self.note_problem(Problem { at, reason: format!("the key {} stands twice", excerpt(&key)) });
            }
            Ok(key) => {
                self.fields.insert(key, value);
            }
            Err(problem) => {
                self.note_problem(Problem { reason: format!("a key {}", problem.reason), ..problem })
            }
        }
    }

    pub(super) fn message(&mut self, node: Node) {
        let number = self.messages.len() + 1;
        match messages::read(node, &mut self.omitted) {
            Ok(message) => self.messages.push(message),
            Err(problem) => {
                let reason = format!("its message {number}: {}", problem.reason);
                self.note_problem(Problem { reason, ..problem });
                // To keep the numbers of later messages right.
                self.messages.push(ParsedMessage::default());
            }
        }
    }

    fn note_problem(&mut self, problem: Problem) {
        match &mut self.problem {
            Some((_, count)) => *count += 1,
            none => *none = Some((problem, 1)),
        }
    }

    /// The session, and its omitted fields. A log with a gap would have another meaning, so one message that
    /// cannot be imported refuses the whole session.
    pub(super) fn finish(
        mut self,
        stem: &str,
        sender: &str,
    ) -> Result<(ExportedSession, OmittedFields), Problem> {
        if let Some((problem, count)) = self.problem.take() {
            let more = if count > 1 { format!(", and {} more like this", count - 1) } else { String::new() };
            let reason = format!("{}{more}; a session is taken whole or not at all", problem.reason);
            return Err(Problem { reason, ..problem });
        }
        let mut fields = UnreadFields { fields: std::mem::take(&mut self.fields) };
        if let Some(node) = fields.take("messages") {
            if !self.messages.is_empty() {
                return Err(Problem { at: node.at, reason: "the key messages stands twice".into() });
            }
            node.items("messages")?.into_iter().for_each(|message| self.message(message));
            if self.problem.is_some() {
                return self.finish(stem, sender);
            }
        }
        let name = fields.text("id")?.unwrap_or((stem.to_owned(), Mark::default()));
        let created = fields.time("created_at")?;
        let updated = fields.time("updated_at")?;
        let created_at = created.or(updated).unwrap_or(Timestamp::from_millis(0));
        let updated_at = updated.unwrap_or(created_at);
        let id = identify(&name, created_at)?;
        let foreign = name.0 != id.to_string();
        // First, so that there is room for it.
        let known = foreign.then(|| (IMPORTED_ID.to_owned(), name.0.clone()));
        let mut session = Session {
            id,
            sender: fields.sender()?,
            channel: fields.name("channel")?.unwrap_or_default(),
            state: fields.state()?,
            active_model: fields.name("active_model")?,
            overrides: fields.overrides()?,
            metadata: fields.metadata(known.into_iter().collect(), &mut self.omitted)?,
            created_at,
            updated_at,
            next_sequence: 1,
        };
        fields.config(&mut session.overrides, &mut self.omitted)?;
        if session.active_model.is_none() {
            session.active_model = session.metadata.get("model").filter(|model| is_name(model)).cloned();
        }
        let summary = fields.text("summary")?.filter(|(summary, _)| !summary.is_empty());
        let next = fields.take("next_sequence").filter(|node| !node.is_empty());
        let next = next.map(|node| Ok((node.at, node.number()?))).transpose()?;
        name_speakers(&mut session, foreign.then_some(name.0.as_str()), sender);
        fields.rest(&mut session.metadata, &mut self.omitted);
        let messages = assign_sequences(self.messages, summary, created_at)?;
        session.next_sequence = messages.last().map_or(1, |message| message.sequence + 1);
        if let Some((at, next)) = next {
            if next < session.next_sequence {
                let reason = format!("next_sequence must be {} at least, not {next}", session.next_sequence);
                return Err(Problem { at, reason });
            }
            session.next_sequence = next;
        }
        Ok((ExportedSession { session, messages }, self.omitted))
    }
}

/// Numbers the messages that have no number, after the summary of the earlier ones.
fn assign_sequences(
    read: Vec<ParsedMessage>,
    summary: Option<(String, Mark)>,
    created_at: Timestamp,
) -> Result<Vec<Message>, Problem> {
    let summary = summary.map(|(content, at)| ParsedMessage::summary(content, at));
    let mut messages: Vec<Message> = Vec::with_capacity(read.len() + 1);
    let mut last = 0;
    for message in summary.into_iter().chain(read) {
        let (at, sequence) = message.sequence.unwrap_or((message.mark, last + 1));
        let message = message.into_message(sequence, created_at);
        if sequence <= last || i64::try_from(sequence).is_err() {
            let reason = format!("the sequence {sequence} must be above that of the message before, {last}");
            return Err(Problem { at, reason });
        }
        if message.summarizes.is_some_and(|replaced| replaced >= sequence)
            || message.replaced_by.is_some_and(|summary| summary <= sequence)
        {
            let reason = "a summary must be younger than what it replaced".to_owned();
            return Err(Problem { at, reason });
        }
        last = sequence;
        messages.push(message);
    }
    Ok(messages)
}

/// A valid id unchanged; one for a foreign id, derived from its digest.
fn identify((name, at): &(String, Mark), created_at: Timestamp) -> Result<SessionId, Problem> {
    if let Ok(id) = SessionId::new(name) {
        return Ok(id);
    }
    let refuse = |reason: String| Err(Problem { at: *at, reason });
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return refuse(format!("the id must have 1 to {MAX_NAME_BYTES} bytes, not {}", name.len()));
    }
    if name.chars().any(char::is_control) {
        return refuse("the id must not hold control characters".into());
    }
    if name.split('/').any(|part| matches!(part, "." | "..")) {
        return refuse("the id must not lead out of a directory".into());
    }
    SessionId::new(&ids::derive_id("session", created_at, &[name])).or_else(|error| refuse(error.to_string()))
}

/// Sets sender and channel from the fields, the metadata, or the id of a foreign session
/// (`channel:conversation`); a session that names no sender is of `sender`.
fn name_speakers(session: &mut Session, foreign: Option<&str>, sender: &str) {
    let fits = |text: &&str| is_name(text);
    let known = |keys: &[&str]| {
        keys.iter().find_map(|key| session.metadata.get(*key).map(String::as_str).filter(fits))
    };
    if session.sender.is_empty() {
        session.sender =
            known(&["sender", "sender_id", "senderId", "user", "user_id"]).unwrap_or(sender).to_owned();
    }
    if session.channel.is_empty() {
        let prefix = foreign.and_then(|id| id.split_once(':')).map(|(channel, _)| channel).filter(fits);
        session.channel = known(&["channel", "channel_id"]).or(prefix).unwrap_or(UNKNOWN_NAME).to_owned();
    }
}

/// Whether a text can be a sender or a channel.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
}

/// The fields that are not read yet.
struct UnreadFields {
    fields: BTreeMap<String, Node>,
}

impl UnreadFields {
    fn take(&mut self, key: &str) -> Option<Node> {
        self.fields.remove(key).filter(|node| !node.is_null())
    }

    fn text(&mut self, key: &str) -> Result<Option<(String, Mark)>, Problem> {
        self.take(key).map(|node| text(key, node)).transpose()
    }

    /// A name, `None` if it is empty.
    fn name(&mut self, key: &str) -> Result<Option<String>, Problem> {
        self.text(key)?.filter(|(text, _)| !text.is_empty()).map(|text| checked(key, text)).transpose()
    }

    /// Its sender, under the names that programs give it; empty if it names none.
    fn sender(&mut self) -> Result<String, Problem> {
        let mut sender = self.name("sender")?;
        for key in ["senderId", "sender_id"] {
            // Where it stands twice, the other one stays as metadata.
            if sender.is_none() {
                sender = self.name(key)?;
            }
        }
        Ok(sender.unwrap_or_default())
    }

    fn time(&mut self, key: &str) -> Result<Option<Timestamp>, Problem> {
        let Some((text, at)) = self.text(key)? else { return Ok(None) };
        scalar::time(&text).map_err(|error| Problem { at, reason: format!("{key} {error}") })
    }

    fn state(&mut self) -> Result<SessionState, Problem> {
        let Some((text, at)) = self.text("state")? else { return Ok(SessionState::Idle) };
        match text.as_str() {
            "active" => Ok(SessionState::Active),
            "idle" => Ok(SessionState::Idle),
            _ => Err(Problem {
                at,
                reason: format!("the state must be active or idle, not {}", excerpt(&text)),
            }),
        }
    }

    fn overrides(&mut self) -> Result<Overrides, Problem> {
        let mut overrides = Overrides::default();
        let Some(node) = self.take("overrides") else { return Ok(overrides) };
        for (key, value) in node.fields("overrides")? {
            let at = value.at;
            let place = match key.as_str() {
                "model" => &mut overrides.model,
                "thinking" => &mut overrides.thinking,
                "verbosity" => &mut overrides.verbosity,
                _ => {
                    let reason =
                        format!("overrides are model, thinking and verbosity, not {}", excerpt(&key));
                    return Err(Problem { at, reason });
                }
            };
            if !value.is_null() {
                *place = Some(checked(&key, text(&key, value)?)?);
            }
        }
        Ok(overrides)
    }

    /// A founding session's `config`, which has the overrides under other names.
    fn config(&mut self, overrides: &mut Overrides, left_out: &mut OmittedFields) -> Result<(), Problem> {
        let Some(node) = self.take("config") else { return Ok(()) };
        for (key, value) in node.fields("config")? {
            let at = value.at;
            if value.is_null() {
                continue;
            }
            let place = match key.as_str() {
                "model" => &mut overrides.model,
                "thinkingLevel" => &mut overrides.thinking,
                "verboseLevel" => {
                    // Not to be verbose is how answers are without a word about it.
                    let (verbose, _) = text(&key, value)?;
                    overrides.verbosity = (verbose == "true").then(|| VERBOSE.to_owned());
                    continue;
                }
                _ => {
                    left_out.add(&format!("config.{key}"), at);
                    continue;
                }
            };
            *place = Some(checked(&key, text(&key, value)?)?);
        }
        Ok(())
    }

    /// The metadata that fits. A session is worth more than its metadata, so the rest is left out.
    fn metadata(
        &mut self,
        mut metadata: BTreeMap<String, String>,
        left_out: &mut OmittedFields,
    ) -> Result<BTreeMap<String, String>, Problem> {
        let Some(node) = self.take("metadata") else { return Ok(metadata) };
        for (key, value) in node.fields("metadata")? {
            keep_metadata(&mut metadata, key.clone(), &format!("metadata.{key}"), value, left_out);
        }
        Ok(metadata)
    }

    /// Fields that are not known here become metadata, if they are scalars and there is room.
    fn rest(self, metadata: &mut BTreeMap<String, String>, left_out: &mut OmittedFields) {
        for (key, value) in self.fields {
            if !value.is_empty() {
                keep_metadata(metadata, key.clone(), &key, value, left_out);
            }
        }
    }
}

fn keep_metadata(
    metadata: &mut BTreeMap<String, String>,
    key: String,
    part: &str,
    value: Node,
    left_out: &mut OmittedFields,
) {
    let at = value.at;
    let fits = !key.is_empty()
        && key.len() <= MAX_NAME_BYTES
        && !key.chars().any(char::is_control)
        && !metadata.contains_key(&key)
        && metadata.len() < MAX_METADATA_ENTRIES;
    match value.text() {
        Ok(text) if fits && text.len() <= MAX_METADATA_VALUE_BYTES => {
            metadata.insert(key, text);
        }
        _ => left_out.add(part, at),
    }
}
