//! What a plugin declares about itself, checked and bounded before any other code reads it.

mod filter;

use std::collections::{BTreeMap, BTreeSet};

use talon_proto::plugin::{Action, PluginCapabilities};
use talon_sanitize::{Raw, SafeDisplay, Sanitized};

use self::filter::MAX_DECLARED_NAME_LEN;
pub use self::filter::MAX_REPORTED_OMISSIONS;
use talon_plugin_config::name::PluginName;

/// The most actions of one plugin. A model cannot choose among more, and each of them is listed to it.
pub const MAX_ACTIONS: usize = 1024;
/// The most parameters of one action.
pub const MAX_PARAMETERS: usize = 256;
/// The longest name of a parameter or context argument, in bytes.
pub const MAX_PARAMETER_NAME_BYTES: usize = 128;
/// The longest description, of a plugin, an action or a parameter, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 16 << 10;
/// The longest JSON Schema fragment of one parameter, or output schema of an action, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// The most glossary entries and knowledge articles, each.
pub const MAX_KNOWLEDGE_ENTRIES: usize = 4096;
/// The largest message that declares capabilities, in bytes. Knowledge articles make up most of a large one.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The most protobuf fields in that message. An empty field takes two bytes on the wire and about a hundred
/// in memory, so the message size alone does not bound what decoding allocates.
const MAX_FIELDS: usize = 100_000;
/// The longest text of a decoding error, in bytes.
const MAX_DECODE_ERROR_BYTES: usize = 400;

/// The longest declared name of an action that is escaped, in bytes. Four times what a model takes: names of
/// tools are words, and a longer one is refused.
pub const MAX_FOREIGN_NAME_BYTES: usize = 256;

/// What names a plugin's actions may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ActionNames {
    /// Those that models and wire protocols take; with any other the plugin is refused, and its author told.
    #[default]
    Strict,
    /// Any, up to [`MAX_FOREIGN_NAME_BYTES`]: its own host takes any. Others are offered under escaped names.
    Escaped,
}

/// What a plugin offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Capability {
    /// The name that it declared, which it sees on the wire; the configured name if it declared none.
    pub declared_name: DeclaredName,
    /// The actions that it offers, by name. The names of actions and parameters are safe to show as declared;
    /// every other text in them is unsanitized.
    pub actions: BTreeMap<String, Action>,
    /// The names that the plugin declared, by the escaped names under which the actions are offered. Not sanitized.
    pub escaped: BTreeMap<String, String>,
    /// Everything the plugin declared, without the omitted actions, and with escaped names. No other text in it is
    /// sanitized.
    pub raw: PluginCapabilities,
    /// Why actions are omitted: one message each for at most [`MAX_REPORTED_OMISSIONS`] of them, and one that
    /// counts the rest.
    pub omitted: Vec<Sanitized>,
}

/// Why a plugin's declaration is refused. The messages end with what its author has to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapabilityError {
    /// It is not the expected message.
    #[error("its capabilities are not the message of opentalon.plugin.v1: {0}")]
    NotDecodable(Sanitized),
    /// A name that models or wire protocols do not accept.
    #[error(
        "{what} {shown:?} is no name: use 1 to {MAX_DECLARED_NAME_LEN} characters of a-z, A-Z, 0-9, '_' and '-'"
    )]
    BadName {
        /// What has this name.
        what: &'static str,
        /// The name, truncated.
        shown: Sanitized,
    },
    /// Two actions or parameters have the same name.
    #[error("it declares {what} {name:?} twice: give each its own name")]
    Duplicate {
        /// What is duplicated.
        what: &'static str,
        /// The name, truncated.
        name: Sanitized,
    },
    /// A limit is exceeded.
    #[error("it declares {what} of {count}, and at most {limit} are taken: declare less")]
    TooMuch {
        /// What exceeds its limit.
        what: &'static str,
        /// The actual count or size.
        count: usize,
        /// The limit.
        limit: usize,
    },
}

fn sanitized(text: &str) -> Sanitized {
    Raw::from(text).line_within(MAX_DECLARED_NAME_LEN)
}

fn check_name(what: &'static str, name: &str) -> Result<(), CapabilityError> {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (1..=MAX_DECLARED_NAME_LEN).contains(&name.len()) && name.bytes().all(good) {
        return Ok(());
    }
    Err(CapabilityError::BadName { what, shown: sanitized(name) })
}

fn check_limit(what: &'static str, count: usize, limit: usize) -> Result<(), CapabilityError> {
    if count > limit { Err(CapabilityError::TooMuch { what, count, limit }) } else { Ok(()) }
}

impl Capability {
    /// Decodes and checks a plugin's declaration. Allocates at most a small multiple of its size.
    ///
    /// # Errors
    /// [`CapabilityError`].
    pub fn decode(message: &[u8], configured: &PluginName) -> Result<Self, CapabilityError> {
        Self::decode_with(message, configured, ActionNames::Strict)
    }

    /// The same for a plugin whose actions may have other names.
    ///
    /// # Errors
    /// [`CapabilityError`].
    pub fn decode_with(
        message: &[u8],
        configured: &PluginName,
        names: ActionNames,
    ) -> Result<Self, CapabilityError> {
        check_limit("a message", message.len(), MAX_MESSAGE_BYTES)?;
        let mut fields = 0;
        count_fields(message, MessageKind::Capabilities, &mut fields)?;
        let mut raw =
            <PluginCapabilities as prost::Message>::decode(message).map_err(|error| not_decodable(&error))?;
        let escaped = match names {
            ActionNames::Strict => BTreeMap::new(),
            ActionNames::Escaped => escape_names(&mut raw.actions)?,
        };
        Ok(Self { escaped, ..Self::check(raw, configured)? })
    }

    /// The plugin's own name of an action.
    #[must_use]
    pub fn declared_action<'a>(&'a self, offered: &'a str) -> &'a str {
        self.escaped.get(offered).map_or(offered, String::as_str)
    }

    /// What an operator should know of the declaration: what is omitted, and what is offered under another name.
    #[must_use]
    pub fn notes(&self) -> Vec<Sanitized> {
        let mut notes = self.omitted.clone();
        let escaped = self.escaped.iter().take(MAX_REPORTED_OMISSIONS).map(|(offered, declared)| {
            Raw::from(format!(
                "its action {declared:?} is offered as {offered}: its name is none of an action"
            ))
            .line()
        });
        notes.extend(escaped);
        let more = self.escaped.len().saturating_sub(MAX_REPORTED_OMISSIONS);
        if more > 0 {
            notes.push(talon_sanitize::sanitized!(
                "{} more of its actions are offered under such names",
                more
            ));
        }
        notes
    }

    /// Checks a decoded declaration.
    ///
    /// # Errors
    /// [`CapabilityError`].
    pub fn check(mut raw: PluginCapabilities, configured: &PluginName) -> Result<Self, CapabilityError> {
        let declared_name =
            if raw.name.is_empty() { configured.as_str().to_owned() } else { raw.name.clone() };
        let declared_name = DeclaredName::new(declared_name)?;
        check_limit("a description", raw.description.len(), MAX_DESCRIPTION_BYTES)?;
        check_limit("a number of actions", raw.actions.len(), MAX_ACTIONS)?;
        check_limit("a number of glossary entries", raw.glossary.len(), MAX_KNOWLEDGE_ENTRIES)?;
        check_limit("a number of knowledge articles", raw.knowledge_articles.len(), MAX_KNOWLEDGE_ENTRIES)?;
        let mut names = BTreeSet::new();
        for action in &raw.actions {
            check_action(action)?;
            if !names.insert(action.name.as_str()) {
                return Err(CapabilityError::Duplicate { what: "action", name: sanitized(&action.name) });
            }
        }
        let left_out = filter::remove_unusable(&mut raw.actions);
        let actions = raw.actions.iter().map(|action| (action.name.clone(), action.clone())).collect();
        Ok(Self { declared_name, actions, escaped: BTreeMap::new(), raw, omitted: left_out })
    }
}

/// The name that a plugin gave itself: 1 to 64 characters of a-z, A-Z, 0-9, '_' and '-'. It is sent back to
/// the plugin. Calls are routed by the configured name instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredName(String);

impl DeclaredName {
    fn new(name: String) -> Result<Self, CapabilityError> {
        check_name("its own name", &name)?;
        Ok(Self(name))
    }

    /// For the wire and for lookups.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For display.
    #[must_use]
    pub fn sanitized(&self) -> Sanitized {
        Raw::from(self.as_str()).line()
    }
}

fn not_decodable(error: &prost::DecodeError) -> CapabilityError {
    CapabilityError::NotDecodable(Raw::of(error).line_within(MAX_DECODE_ERROR_BYTES))
}

/// Gives actions names that callers can use, and returns the declared ones by them.
fn escape_names(actions: &mut [Action]) -> Result<BTreeMap<String, String>, CapabilityError> {
    let mut escaped = BTreeMap::new();
    check_limit("a number of actions", actions.len(), MAX_ACTIONS)?;
    for action in actions {
        check_limit("an action's name", action.name.len(), MAX_FOREIGN_NAME_BYTES)?;
        let offered = talon_action_name::action_name(&action.name);
        if offered != action.name {
            escaped.insert(offered.clone(), std::mem::replace(&mut action.name, offered));
        }
    }
    Ok(escaped)
}

fn check_action(action: &Action) -> Result<(), CapabilityError> {
    check_name("action", &action.name)?;
    check_limit("an action's description", action.description.len(), MAX_DESCRIPTION_BYTES)?;
    check_limit("an action's output schema", action.output_schema.len(), MAX_SCHEMA_BYTES)?;
    check_limit("a number of parameters", action.parameters.len(), MAX_PARAMETERS)?;
    check_limit("a number of context arguments", action.inject_context_args.len(), MAX_PARAMETERS)?;
    for name in &action.inject_context_args {
        check_limit("a context argument's name", name.len(), MAX_PARAMETER_NAME_BYTES)?;
    }
    let mut seen = BTreeSet::new();
    for parameter in &action.parameters {
        if parameter.name.is_empty() {
            return Err(CapabilityError::BadName { what: "parameter", shown: Sanitized::default() });
        }
        check_limit("a parameter's name", parameter.name.len(), MAX_PARAMETER_NAME_BYTES)?;
        check_limit("a parameter's type", parameter.r#type.len(), MAX_PARAMETER_NAME_BYTES)?;
        check_limit("a parameter's description", parameter.description.len(), MAX_DESCRIPTION_BYTES)?;
        check_limit("a parameter's schema", parameter.schema.len(), MAX_SCHEMA_BYTES)?;
        if !seen.insert(&parameter.name) {
            return Err(CapabilityError::Duplicate { what: "parameter", name: sanitized(&parameter.name) });
        }
    }
    Ok(())
}

/// The kind of a message, as far as its fields are counted.
#[derive(Clone, Copy)]
enum MessageKind {
    Capabilities,
    Action,
    /// A message without nested messages.
    Leaf,
}

impl MessageKind {
    /// The kind of the nested message in a field, if the field holds one. In a valid declaration such a field
    /// number is always a message. Text fields can contain any bytes and are never parsed.
    fn for_field(self, tag: u32) -> Option<Self> {
        match (self, tag) {
            (Self::Capabilities, 3) => Some(Self::Action),
            (Self::Capabilities, 5 | 6) | (Self::Action, 3) => Some(Self::Leaf),
            _ => None,
        }
    }
}

/// Counts the fields of the message and its nested messages, down to the parameters of actions.
fn count_fields(mut message: &[u8], shape: MessageKind, count: &mut usize) -> Result<(), CapabilityError> {
    use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

    let broken = |error: prost::DecodeError| not_decodable(&error);
    while !message.is_empty() {
        *count += 1;
        check_limit("a number of fields", *count, MAX_FIELDS)?;
        let (tag, wire_type) = decode_key(&mut message).map_err(broken)?;
        match shape.for_field(tag) {
            Some(inner_shape) if wire_type == WireType::LengthDelimited => {
                let length = decode_varint(&mut message).map_err(broken)?;
                let (inner, rest) = usize::try_from(length)
                    .ok()
                    .and_then(|length| message.split_at_checked(length))
                    .ok_or_else(|| CapabilityError::NotDecodable("it ends too early".into()))?;
                count_fields(inner, inner_shape, count)?;
                message = rest;
            }
            _ => skip_field(wire_type, tag, &mut message, DecodeContext::default()).map_err(broken)?,
        }
    }
    Ok(())
}

/// Safe to show: texts of the plugin are sanitized.
impl SafeDisplay for CapabilityError {}

#[cfg(test)]
mod tests {
    use prost::Message;
    use talon_proto::plugin::{GlossaryEntry, KnowledgeArticle, Parameter};

    use super::*;

    fn configured() -> PluginName {
        PluginName::new("configured").unwrap()
    }

    fn action(name: &str) -> Action {
        Action { name: name.to_owned(), ..Action::default() }
    }

    fn declared(actions: Vec<Action>) -> Result<Capability, CapabilityError> {
        let raw = PluginCapabilities { name: "p".to_owned(), actions, ..PluginCapabilities::default() };
        Capability::decode(&raw.encode_to_vec(), &configured())
    }

    #[test]
    fn an_ordinary_declaration_is_taken() {
        let capability = declared(vec![action("greet"), action("part-with_1")]).unwrap();
        assert_eq!(capability.declared_name.as_str(), "p");
        assert_eq!(capability.actions.keys().collect::<Vec<_>>(), ["greet", "part-with_1"]);
    }

    #[test]
    fn without_a_name_it_has_the_configured_one() {
        let capability = Capability::decode(b"", &configured()).unwrap();
        assert_eq!(capability.declared_name.as_str(), "configured");
    }

    // Promises: REG-11
    #[test]
    fn names_that_no_model_takes_are_refused() {
        for bad in ["", "a b", "../x", "ä", "a\n", &"a".repeat(65)] {
            assert!(matches!(declared(vec![action(bad)]), Err(CapabilityError::BadName { .. })), "{bad:?}");
        }
    }

    // Promises: MCP-17
    #[test]
    fn names_of_another_hosts_plugin_are_escaped() {
        let decode = |names: &[&str]| {
            let actions = names.iter().map(|name| action(name)).collect();
            let raw = PluginCapabilities { name: "p".to_owned(), actions, ..PluginCapabilities::default() };
            Capability::decode_with(&raw.encode_to_vec(), &configured(), ActionNames::Escaped)
        };
        let long = "a".repeat(65);
        let capability = decode(&["plain", "kv.get", "a b", "", &long, "_-"]).unwrap();
        assert_eq!(capability.actions.len(), 6);
        for (offered, declared) in
            [("plain", "plain"), ("kv_-2eget", "kv.get"), ("a_-20b", "a b"), ("_-n", "")]
        {
            assert_eq!(capability.declared_action(offered), declared);
            assert_eq!(capability.actions[offered].name, offered);
        }
        assert!(!capability.escaped.contains_key("plain"));
        assert!(capability.raw.actions.iter().all(|action| capability.actions.contains_key(&action.name)));
        let notes: Vec<String> = capability.notes().iter().map(ToString::to_string).collect();
        assert!(notes.iter().any(|note| note.contains("kv.get") && note.contains("kv_-2eget")), "{notes:?}");
        let too_long = decode(&[&"a".repeat(MAX_FOREIGN_NAME_BYTES + 1)]);
        assert!(matches!(too_long, Err(CapabilityError::TooMuch { what: "an action's name", .. })));
        assert!(matches!(decode(&["a.b", "a.b"]), Err(CapabilityError::Duplicate { .. })));
        let many: Vec<String> = (0..20).map(|number| format!("<|im_start|>{number}")).collect();
        let many = decode(&many.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(many.notes().len(), MAX_REPORTED_OMISSIONS + 1);
        assert!(
            many.notes().iter().all(|note| !note.to_string().contains("<|im_start|>")),
            "{:?}",
            many.notes()
        );
    }

    // Promises: REG-11
    #[test]
    fn two_actions_or_parameters_of_one_name_are_refused() {
        let twice = declared(vec![action("a"), action("a")]);
        assert!(matches!(twice, Err(CapabilityError::Duplicate { what: "action", .. })));
        let parameter = Parameter { name: "x".to_owned(), ..Parameter::default() };
        let twice = declared(vec![Action { parameters: vec![parameter.clone(), parameter], ..action("a") }]);
        assert!(matches!(twice, Err(CapabilityError::Duplicate { what: "parameter", .. })));
    }

    // Promises: REG-11
    #[test]
    fn too_many_actions_and_too_long_texts_are_refused() {
        let many = (0..=MAX_ACTIONS).map(|i| action(&format!("a{i}"))).collect();
        assert!(matches!(declared(many), Err(CapabilityError::TooMuch { .. })));
        let long = Action { description: "x".repeat(MAX_DESCRIPTION_BYTES + 1), ..action("a") };
        assert!(matches!(declared(vec![long]), Err(CapabilityError::TooMuch { .. })));
    }

    // Promises: REG-11
    #[test]
    fn a_swarm_of_empty_messages_is_refused_before_it_is_decoded() {
        // Field 3 (actions), length 0, over and over; and the same one level down.
        let flat = [0x1a, 0].repeat(MAX_FIELDS + 1);
        let nested = {
            let parameters = [0x1a, 0].repeat(MAX_FIELDS + 1);
            let mut message = vec![0x1a];
            prost::encoding::encode_varint(parameters.len() as u64, &mut message);
            message.extend(parameters);
            message
        };
        for message in [flat, nested] {
            let refused = Capability::decode(&message, &configured());
            assert!(matches!(refused, Err(CapabilityError::TooMuch { what: "a number of fields", .. })));
        }
    }

    #[test]
    fn texts_of_articles_and_glossaries_are_texts_and_not_messages() {
        let raw = PluginCapabilities {
            glossary: vec![GlossaryEntry {
                term: "API".to_owned(),
                definition: "an interface".to_owned(),
                category: "Technical terms".to_owned(),
                tags: vec!["x".to_owned()],
                synonyms: vec!["y".to_owned()],
            }],
            knowledge_articles: vec![KnowledgeArticle {
                id: "1".to_owned(),
                title: "How to begin".to_owned(),
                content: "# How to begin\n\nWith the beginning, of course.".to_owned(),
                tags: vec!["start".to_owned()],
            }],
            ..PluginCapabilities::default()
        };
        let capability = Capability::decode(&raw.encode_to_vec(), &configured()).unwrap();
        assert_eq!(capability.raw, raw);
    }

    #[test]
    fn garbage_is_refused() {
        for garbage in [&b"\xff\xff\xff"[..], b"\x1a\x7f", b"\x0a\x01\xff"] {
            assert!(matches!(
                Capability::decode(garbage, &configured()),
                Err(CapabilityError::NotDecodable(_))
            ));
        }
    }
}
