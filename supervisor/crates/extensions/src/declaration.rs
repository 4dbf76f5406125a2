//! Whether an action fits its entry. The supervisor asks this when a plugin is ready, and after each change of what the
//! plugin declares.

use serde_json::Value;
use talon_sanitize::nearest;

use crate::contract::full_sample;
use crate::{Entry, Role};

/// What a plugin declares of an action, as far as entries depend on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredAction {
    /// Its roles.
    pub roles: Vec<String>,
    /// Its parameters.
    pub parameters: Vec<DeclaredParameter>,
    /// Whether it takes arguments that it does not name.
    pub takes_further_arguments: bool,
}

/// One parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredParameter {
    /// Its name.
    pub name: String,
    /// Its type as the plugin writes it; empty means string.
    pub kind: String,
    /// Whether a call needs it.
    pub required: bool,
}

/// Why an entry does not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclarationError {
    /// The plugin has no such action.
    #[error("the plugin has no action {action}; {help}")]
    NoAction {
        /// The action.
        action: String,
        /// The nearest ones, or what to do.
        help: String,
    },
    /// The action does not declare the role, and the entry does not say with which arguments it is called.
    #[error(
        "{action} does not declare the role {role}: give the entry `args`, or name an action that declares it"
    )]
    NotDeclared {
        /// The action.
        action: String,
        /// The role.
        role: &'static str,
    },
    /// An argument that the action does not take.
    #[error("{action} takes no argument {name}; {help}")]
    UnknownArgument {
        /// The action.
        action: String,
        /// The argument.
        name: String,
        /// The nearest ones, or all.
        help: String,
    },
    /// An argument that the action needs.
    #[error("{action} needs the argument {name}: give it with `args` of the entry")]
    MissingArgument {
        /// The action.
        action: String,
        /// The argument.
        name: String,
    },
    /// An argument whose type does not fit, whatever its placeholders become.
    #[error("the argument {name} of {action} is of type {kind}, and gets {found}")]
    WrongType {
        /// The action.
        action: String,
        /// The argument.
        name: String,
        /// The type.
        kind: String,
        /// What it gets.
        found: &'static str,
    },
}

/// The most names that a message lists.
const MAX_LISTED: usize = 10;

/// Whether `declared` fits the entry. `others` are the plugin's actions, for the nearest name.
///
/// # Errors
/// [`DeclarationError`]
pub fn check<'n>(
    entry: &Entry<'_>,
    declared: Option<&DeclaredAction>,
    others: impl Iterator<Item = &'n str>,
) -> Result<(), DeclarationError> {
    let (_, action) = entry.target();
    let Some(declared) = declared else {
        let help = match nearest(action, others).first() {
            Some(near) => format!("did you mean {near}?"),
            None => "see its actions with `talon plugin show`".to_owned(),
        };
        return Err(DeclarationError::NoAction { action: action.to_owned(), help });
    };
    let sent = full_sample(entry.role);
    let of_role = || sent.as_object().into_iter().flatten();
    let declares = declared.roles.iter().any(|role| role == entry.role.as_str());
    // Of a job, the entry's arguments stand beside those of the role.
    let both = entry.role == Role::ScheduledTask && declares;
    let given: Vec<(&str, &Value)> = match entry.args {
        Some(args) if both => pairs(of_role().chain(args)),
        Some(args) => pairs(args.iter()),
        None if declares => pairs(of_role()),
        // A job says what it does by its action alone.
        None if entry.role == Role::ScheduledTask => Vec::new(),
        None => {
            return Err(DeclarationError::NotDeclared {
                action: action.to_owned(),
                role: entry.role.as_str(),
            });
        }
    };
    for (name, value) in &given {
        match declared.parameters.iter().find(|parameter| parameter.name == *name) {
            Some(parameter) => check_type(action, parameter, value)?,
            None if declared.takes_further_arguments => {}
            None => return Err(unknown_argument(action, name, declared)),
        }
    }
    let is_given = |name: &str| given.iter().any(|(given, _)| *given == name);
    let missing =
        declared.parameters.iter().find(|parameter| parameter.required && !is_given(&parameter.name));
    match missing {
        Some(parameter) => {
            let name = parameter.name.clone();
            Err(DeclarationError::MissingArgument { action: action.to_owned(), name })
        }
        None => Ok(()),
    }
}

fn pairs<'a>(members: impl Iterator<Item = (&'a String, &'a Value)>) -> Vec<(&'a str, &'a Value)> {
    members.map(|(name, value)| (name.as_str(), value)).collect()
}

fn unknown_argument(action: &str, name: &str, declared: &DeclaredAction) -> DeclarationError {
    let names = || declared.parameters.iter().map(|parameter| parameter.name.as_str());
    let help = match nearest(name, names()).first() {
        Some(near) => format!("did you mean {near}?"),
        None if declared.parameters.is_empty() => "it takes none".to_owned(),
        None => format!("it takes {}", names().take(MAX_LISTED).collect::<Vec<_>>().join(", ")),
    };
    DeclarationError::UnknownArgument { action: action.to_owned(), name: name.to_owned(), help }
}

/// A text may become anything, if it is one placeholder; other values stay of their type.
fn check_type(action: &str, parameter: &DeclaredParameter, value: &Value) -> Result<(), DeclarationError> {
    let found = match value {
        Value::String(text) if text.contains("{{") => return Ok(()),
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kind = if parameter.kind.is_empty() { "string" } else { parameter.kind.as_str() };
    let is_simple = ["string", "integer", "number", "boolean", "array", "object"].contains(&kind);
    if !is_simple || kind == found || (kind == "number" && found == "integer") {
        return Ok(());
    }
    Err(DeclarationError::WrongType {
        action: action.to_owned(),
        name: parameter.name.clone(),
        kind: kind.to_owned(),
        found,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Extensions, HookEntry};

    fn declared(roles: &[&str], parameters: &[(&str, &str, bool)]) -> DeclaredAction {
        let parameter = |(name, kind, required): &(&str, &str, bool)| DeclaredParameter {
            name: (*name).to_owned(),
            kind: (*kind).to_owned(),
            required: *required,
        };
        DeclaredAction {
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            parameters: parameters.iter().map(parameter).collect(),
            takes_further_arguments: false,
        }
    }

    fn fits(hook: HookEntry, declared: Option<&DeclaredAction>) -> Result<(), String> {
        let extensions = Extensions { request_hooks: vec![hook], ..Extensions::default() };
        let entry = extensions.entries().next().expect("one");
        check(&entry, declared, ["scan", "other"].into_iter()).map_err(|error| error.to_string())
    }

    fn with_args(args: Value) -> HookEntry {
        HookEntry {
            args: Some(serde_json::from_value(args).expect("arguments")),
            ..HookEntry::new("pii.scan")
        }
    }

    // Promises: EXT-3
    #[test]
    fn an_action_fits_by_its_role_or_by_its_arguments() {
        let hook = [("message", "string", true), ("session", "object", false), ("metadata", "object", false)];
        let role = declared(&["request_hook"], &hook);
        assert_eq!(fits(HookEntry::new("pii.scan"), Some(&role)), Ok(()));
        let tool = declared(&[], &[("text", "string", true), ("top", "integer", false)]);
        assert_eq!(fits(with_args(json!({"text": "{{ message }}", "top": 3})), Some(&tool)), Ok(()));
        for (hook, declared, says) in [
            (HookEntry::new("pii.scan"), Some(&tool), "does not declare the role request_hook"),
            (HookEntry::new("pii.scn"), None, "did you mean scan?"),
            (with_args(json!({"txt": "a", "text": "b"})), Some(&tool), "did you mean text?"),
            (with_args(json!({"top": 3})), Some(&tool), "needs the argument text"),
            (with_args(json!({"text": 3})), Some(&tool), "is of type string, and gets integer"),
        ] {
            let error = fits(hook, declared).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
        // A later contract may send more than the plugin takes.
        let old = declared(&["request_hook"], &hook[..1]);
        assert!(
            fits(HookEntry::new("pii.scan"), Some(&old))
                .expect_err("refused")
                .contains("takes no argument session")
        );
        let open = DeclaredAction { takes_further_arguments: true, ..old };
        assert_eq!(fits(HookEntry::new("pii.scan"), Some(&open)), Ok(()));
    }
}
