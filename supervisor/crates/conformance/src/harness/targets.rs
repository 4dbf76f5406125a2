//! Selects the actions that may be called, and their arguments.

use std::collections::BTreeMap;

use serde_json::Value;
use talon_proto::plugin::{Action, Parameter, PluginCapabilities};
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::options::{NamedAction, Options};

/// An action that no plugin has.
pub(crate) const UNKNOWN_ACTION: &str = "talon_conformance_no_such_action";

/// The most actions that are called: enough for the checks, and a bound for plugins with hundreds.
const MAX_TARGETS: usize = 16;
/// The most names that the summary lists of called and of skipped actions.
const MAX_LISTED: usize = 8;

/// An action that may be called.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) action: String,
    /// Arguments of a call that should succeed; made up unless the author gave them.
    pub(crate) args: BTreeMap<String, String>,
    /// Its declared parameters.
    pub(crate) parameters: Vec<Parameter>,
    /// Whether the plugin has it.
    pub(crate) known: bool,
}

/// All targets, and the names of skipped actions.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(crate) all: Vec<Target>,
    skipped: Vec<Sanitized>,
}

impl Target {
    fn unknown() -> Self {
        let (args, parameters) = (BTreeMap::new(), Vec::new());
        Self { action: UNKNOWN_ACTION.to_owned(), args, parameters, known: false }
    }

    pub(crate) fn sanitized_name(&self) -> Sanitized {
        sanitized(&self.action)
    }
}

fn sanitized(action: &str) -> Sanitized {
    Raw::from(action).line_within(64)
}

impl Targets {
    pub(crate) fn select(declared: Option<&PluginCapabilities>, options: &Options) -> Self {
        let actions = declared.map(|declared| declared.actions.as_slice()).unwrap_or_default();
        let mut targets = Self::default();
        for NamedAction { action, args } in &options.actions {
            let parameters = actions.iter().find(|known| known.name == *action);
            let parameters = parameters.map(|known| known.parameters.clone()).unwrap_or_default();
            targets.all.push(Target { action: action.clone(), args: args.clone(), parameters, known: true });
        }
        for action in actions {
            let named = targets.all.iter().any(|target| target.action == action.name);
            let allowed = options.allow_calls || (action.read_only && !action.user_only);
            match (named, allowed) {
                (true, _) => {}
                (false, true) if targets.all.len() < MAX_TARGETS => {
                    targets.all.push(with_generated_args(action))
                }
                (false, _) => targets.skipped.push(sanitized(&action.name)),
            }
        }
        targets
    }

    /// The target for checks that need only one.
    pub(crate) fn first(&self) -> Target {
        self.all.first().cloned().unwrap_or_else(Target::unknown)
    }

    /// Which actions were called, and which were skipped.
    pub(crate) fn summary(&self) -> Sanitized {
        let called = match self.all.is_empty() {
            true => "no action was called but one that does not exist".into(),
            false => sanitized!("called: {}", join_names(self.all.iter().map(Target::sanitized_name))),
        };
        match self.skipped.is_empty() {
            true => called,
            false => sanitized!(
                "{}; not called, since they are not read_only: {} (name one with --action, or allow all with --allow-calls)",
                called,
                join_names(self.skipped.iter().cloned())
            ),
        }
    }
}

fn join_names(names: impl ExactSizeIterator<Item = Sanitized>) -> Sanitized {
    let more = names.len().saturating_sub(MAX_LISTED);
    let told = Sanitized::join(names.take(MAX_LISTED), ", ");
    if more > 0 { sanitized!("{} and {} more", told, more) } else { told }
}

fn with_generated_args(action: &Action) -> Target {
    let required = action.parameters.iter().filter(|parameter| parameter.required);
    let args = required.map(|parameter| (parameter.name.clone(), generated_value(parameter))).collect();
    Target { action: action.name.clone(), args, parameters: action.parameters.clone(), known: true }
}

/// A value that fits the parameter's type and schema.
fn generated_value(parameter: &Parameter) -> String {
    let schema: Value = serde_json::from_str(&parameter.schema).unwrap_or_default();
    let first = |key: &str| schema.get(key).and_then(|list| list.get(0)).cloned();
    let said = schema.get("default").or(schema.get("const")).cloned();
    let said =
        said.or_else(|| first("enum")).or_else(|| first("examples")).or(schema.get("minimum").cloned());
    match said {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => default_for_type(parameter, &schema).to_owned(),
        Some(value) => value.to_string(),
    }
}

fn default_for_type(parameter: &Parameter, schema: &Value) -> &'static str {
    match (parameter.r#type.as_str(), schema.get("format").and_then(Value::as_str)) {
        ("integer" | "number", _) => "1",
        ("boolean", _) => "false",
        ("array", _) => "[]",
        ("object", _) => "{}",
        (_, Some("uri" | "url")) => "https://example.org/",
        (_, Some("date")) => "2026-01-01",
        (_, Some("date-time")) => "2026-01-01T00:00:00Z",
        _ => "conformance",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> PluginCapabilities {
        let parameter = |name: &str, kind: &str, schema: &str| Parameter {
            name: name.to_owned(),
            r#type: kind.to_owned(),
            schema: schema.to_owned(),
            required: true,
            ..Parameter::default()
        };
        let read = Action {
            name: "read".to_owned(),
            read_only: true,
            parameters: vec![
                parameter("n", "integer", ""),
                parameter("m", "integer", r#"{"minimum": 7}"#),
                parameter("s", "string", r#"{"enum": ["b", "a"]}"#),
                Parameter { required: false, ..parameter("o", "object", "") },
            ],
            ..Action::default()
        };
        let write = Action { name: "write".to_owned(), ..Action::default() };
        let person =
            Action { name: "person".to_owned(), read_only: true, user_only: true, ..Action::default() };
        PluginCapabilities { actions: vec![read, write, person], ..PluginCapabilities::default() }
    }

    #[test]
    fn only_what_changes_nothing_is_called_unless_it_is_allowed() {
        let of = |options: &Options| {
            let targets = Targets::select(Some(&declared()), options);
            targets.all.iter().map(|target| target.action.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&Options::default()), ["read"]);
        assert_eq!(of(&Options { allow_calls: true, ..Options::default() }), ["read", "write", "person"]);
        let named = NamedAction { action: "write".to_owned(), args: BTreeMap::new() };
        assert_eq!(of(&Options { actions: vec![named], ..Options::default() }), ["write", "read"]);
        let told = Targets::select(Some(&declared()), &Options::default()).summary();
        assert!(told.contains("called: read; not called") && told.contains("write, person"), "{told}");
    }

    #[test]
    fn arguments_are_made_up_from_what_is_declared() {
        let args = Targets::select(Some(&declared()), &Options::default()).first().args;
        let expected = [("n", "1"), ("m", "7"), ("s", "b")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(args, BTreeMap::from(expected));
    }

    #[test]
    fn a_plugin_without_any_is_tried_with_an_unknown_one() {
        assert!(!Targets::select(None, &Options::default()).first().known);
    }
}
