//! Digests of what an action declares: one for each part that people approve.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talon_proto::plugin::{Action, PluginCapabilities};

/// SHA-256 of each part, in lower-case hex. Separate digests show which part changed. They are not shortened:
/// a plugin could search for two texts with the same short digest, because it writes both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Digests {
    description: String,
    parameters: String,
    hints: String,
    output_schema: String,
    context: String,
}

impl Digests {
    /// The names of the parts that differ.
    pub(super) fn differing_parts(&self, other: &Self) -> Vec<&'static str> {
        let parts = [
            ("description", self.description == other.description),
            ("parameters", self.parameters == other.parameters),
            ("hints", self.hints == other.hints),
            ("output_schema", self.output_schema == other.output_schema),
            ("context", self.context == other.context),
        ];
        parts.into_iter().filter(|(_, same)| !same).map(|(part, _)| part).collect()
    }

    /// One digest over all parts.
    pub(super) fn combined(&self) -> String {
        let mut whole = Hasher::default();
        for part in [&self.description, &self.parameters, &self.hints, &self.output_schema, &self.context] {
            whole.text(part);
        }
        whole.finish()
    }

    /// Whether every part looks like a digest.
    pub(super) fn are_valid(&self) -> bool {
        let hex = |text: &String| is_digest(text);
        [&self.description, &self.parameters, &self.hints, &self.output_schema, &self.context]
            .into_iter()
            .all(hex)
    }
}

/// Whether this looks like a digest.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The digests of what an action declares. The order of parameters, context arguments and schema keys does
/// not matter, because some libraries write them in a different order each time.
pub(super) fn action_digests(action: &Action) -> Digests {
    let mut parameters: Vec<_> = action.parameters.iter().collect();
    parameters.sort_by(|left, right| left.name.cmp(&right.name));
    let mut of_parameters = Hasher::default();
    for parameter in parameters {
        of_parameters.text(&parameter.name);
        of_parameters.text(&parameter.description);
        of_parameters.text(&parameter.r#type);
        of_parameters.flag(Some(parameter.required));
        of_parameters.schema(&parameter.schema);
    }
    if action.takes_further_arguments {
        // Hashed only if set, as with `always_include`.
        of_parameters.text("takes_further_arguments");
    }
    let mut context: Vec<_> = action.inject_context_args.iter().collect();
    context.sort();
    let mut of_context = Hasher::default();
    for name in context {
        of_context.text(name);
    }
    let mut hints = Hasher::default();
    hints.flag(Some(action.user_only));
    hints.flag(Some(action.read_only));
    hints.flag(action.destructive);
    if action.always_include {
        // Hashed only if set, so that approvals recorded before this flag existed stay valid.
        hints.text("always_include");
    }
    if !action.roles.is_empty() {
        // Hashed only if set, as above; which roles it plays is the operator's, and whether it is a tool as well is not.
        let mut roles: Vec<_> = action.roles.iter().collect();
        roles.sort();
        hints.text("roles");
        for role in roles {
            hints.text(role);
        }
    }
    // `media` is not hashed: whether any are passed on is the operator's own grant.
    let mut description = Hasher::default();
    description.text(&action.description);
    let mut output_schema = Hasher::default();
    output_schema.schema(&action.output_schema);
    Digests {
        description: description.finish(),
        parameters: of_parameters.finish(),
        hints: hints.finish(),
        output_schema: output_schema.finish(),
        context: of_context.finish(),
    }
}

/// The digest of the plugin's own texts, which hosts may show to a model: its description, its system prompt
/// addition, its glossary and its articles. `None` if it has none of them. The order of entries does not
/// matter.
pub(super) fn texts_digest(said: &PluginCapabilities) -> Option<String> {
    let PluginCapabilities { description, system_prompt_addition, glossary, knowledge_articles, .. } = said;
    if description.is_empty()
        && system_prompt_addition.is_empty()
        && glossary.is_empty()
        && knowledge_articles.is_empty()
    {
        return None;
    }
    let entry = |texts: &[&String], lists: &[&Vec<String>]| {
        let mut entry = Hasher::default();
        texts.iter().for_each(|text| entry.text(text));
        for list in lists {
            entry.update(b'a', &(list.len() as u64).to_le_bytes());
            list.iter().for_each(|text| entry.text(text));
        }
        entry.finish()
    };
    let mut terms: Vec<String> = glossary
        .iter()
        .map(|term| entry(&[&term.term, &term.definition, &term.category], &[&term.tags, &term.synonyms]))
        .collect();
    let mut articles: Vec<String> = knowledge_articles
        .iter()
        .map(|article| entry(&[&article.id, &article.title, &article.content], &[&article.tags]))
        .collect();
    terms.sort();
    articles.sort();
    let mut whole = Hasher::default();
    whole.text(description);
    whole.text(system_prompt_addition);
    for entries in [terms, articles] {
        whole.update(b'a', &(entries.len() as u64).to_le_bytes());
        entries.iter().for_each(|entry| whole.text(entry));
    }
    Some(whole.finish())
}

/// Hashes pieces with their kind and length, so that different sequences of pieces never give the same input.
#[derive(Default)]
struct Hasher(Sha256);

impl Hasher {
    fn update(&mut self, kind: u8, bytes: &[u8]) {
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.update(b't', text.as_bytes());
    }

    fn flag(&mut self, flag: Option<bool>) {
        self.update(
            b'f',
            &[match flag {
                None => 2,
                Some(flag) => u8::from(flag),
            }],
        );
    }

    /// A schema as JSON if it parses, otherwise as text.
    fn schema(&mut self, schema: &str) {
        match serde_json::from_str(schema) {
            Ok(value) => self.json(&value),
            Err(_) => self.text(schema),
        }
    }

    /// The recursion depth is bounded by the JSON parser.
    fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.update(b'n', &[]),
            Value::Bool(_) | Value::Number(_) => self.update(b'v', value.to_string().as_bytes()),
            Value::String(text) => self.update(b's', text.as_bytes()),
            Value::Array(values) => {
                self.update(b'a', &(values.len() as u64).to_le_bytes());
                values.iter().for_each(|value| self.json(value));
            }
            Value::Object(fields) => {
                self.update(b'o', &(fields.len() as u64).to_le_bytes());
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by(|left, right| left.0.cmp(right.0));
                for (key, value) in fields {
                    self.update(b'k', key.as_bytes());
                    self.json(value);
                }
            }
        }
    }

    fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::plugin::Parameter;

    use super::*;

    /// The part that changes, and the change.
    type Change = (&'static str, fn(&mut Action));

    fn parameter(name: &str, schema: &str) -> Parameter {
        Parameter {
            name: name.to_owned(),
            description: "What.".to_owned(),
            r#type: "string".to_owned(),
            required: true,
            schema: schema.to_owned(),
        }
    }

    fn action() -> Action {
        Action {
            name: "greet".to_owned(),
            description: "Greets.".to_owned(),
            parameters: vec![parameter("a", r#"{"minLength":1,"maxLength":2}"#), parameter("b", "")],
            inject_context_args: vec!["user_id".to_owned(), "session_id".to_owned()],
            output_schema: r#"{"type":"object"}"#.to_owned(),
            ..Action::default()
        }
    }

    #[test]
    fn each_part_is_told_apart() {
        let same = action_digests(&action());
        assert!(same.are_valid());
        let changes: [Change; 13] = [
            ("description", |a| a.description.push('.')),
            ("parameters", |a| a.parameters[0].name.push('x')),
            ("parameters", |a| a.parameters[0].description.push('x')),
            ("parameters", |a| a.parameters[0].r#type = "integer".to_owned()),
            ("parameters", |a| a.parameters[0].required = false),
            ("parameters", |a| a.parameters[0].schema = r#"{"minLength":1,"maxLength":3}"#.to_owned()),
            ("hints", |a| a.read_only = true),
            ("hints", |a| a.always_include = true),
            ("hints", |a| a.user_only = true),
            ("hints", |a| a.roles = vec!["request_hook".to_owned()]),
            ("hints", |a| a.destructive = Some(false)),
            ("output_schema", |a| a.output_schema = r#"{"type":"array"}"#.to_owned()),
            ("context", |a| a.inject_context_args.push("tenant".to_owned())),
        ];
        for (part, change) in changes {
            let mut changed = action();
            change(&mut changed);
            assert_eq!(action_digests(&changed).differing_parts(&same), [part]);
        }
    }

    #[test]
    fn order_counts_for_nothing() {
        let mut other = action();
        other.parameters.reverse();
        other.inject_context_args.reverse();
        other.parameters[1].schema = "{ \"maxLength\": 2, \"minLength\": 1 }".to_owned();
        assert_eq!(action_digests(&other), action_digests(&action()));
    }

    #[test]
    fn no_text_moves_from_one_place_to_the_next_unseen() {
        let mut moved = action();
        moved.parameters[0].name = "aW".to_owned();
        moved.parameters[0].description = "hat.".to_owned();
        assert_ne!(action_digests(&moved), action_digests(&action()));
        let of = |schema: &str| {
            action_digests(&Action { output_schema: schema.to_owned(), ..action() }).output_schema
        };
        assert_ne!(of(r#"{"a":["b"]}"#), of(r#"{"a":"b"}"#));
        assert_ne!(of(r#"["a","b"]"#), of(r#"["a",["b"]]"#));
        assert_ne!(of("1"), of("\"1\""));
        assert_ne!(of("not json"), of("\"not json\""));
    }
}
