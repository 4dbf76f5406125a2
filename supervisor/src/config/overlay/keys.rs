//! Which keys the overlay may hold.

use serde_json::Value;
use talon_plugin_config::document::origin::KeyPath;
use talon_plugin_config::document::shape::{Shape, ShapeKind};

use super::default_keys::DEFAULT_KEYS;
use crate::config::schema;

/// Keys that no configuration opens: what guards the machine, and what decides who may change what. `gateway` is among them, so that
/// nobody who may change the overlay gives themselves more of it.
const NEVER: [(&[&str], &str); 13] = [
    (&["sandbox"], "it guards the machine"),
    (&["host"], "it decides who may do what"),
    (&["state"], "it is where data is kept"),
    (&["gateway"], "it decides who may do what"),
    (&["audit"], "it records who did what"),
    (&["admin"], "it decides who may do what"),
    (&["agent", "allow"], "it decides who may do what"),
    (&["agent", "confirm"], "it decides who may do what"),
    (&["agent", "groups"], "it decides who may do what"),
    (&["agent", "identities"], "it decides who may do what"),
    (&["agent", "trusted_plugins"], "it decides who may do what"),
    (&["models", "providers"], "it names servers and keys"),
    (&["runtime_dir"], "it names a path"),
];

/// Keys of plugins that none opens, wherever they stand below `plugins`: what runs, with what, and where it connects.
const NEVER_OF_PLUGINS: [&str; 9] =
    ["command", "args", "env", "sandbox", "credentials", "url", "config", "digest", "env_allow_list"];

/// The keys that the overlay may hold.
#[derive(Debug, Clone)]
pub(crate) struct OverlayKeys {
    root: &'static Shape,
    allowed: Vec<KeyPath>,
}

impl OverlayKeys {
    /// These keys, with all below them.
    pub(crate) fn new(allowed: &[String]) -> Self {
        Self { root: schema::shared(), allowed: allowed.iter().map(|key| parse(key)).collect() }
    }

    /// What they are, for messages and clients.
    pub(crate) fn names(&self) -> Vec<String> {
        self.allowed.iter().map(ToString::to_string).collect()
    }

    /// Why a value may not stand at this key, with what to do; `None` if it may.
    pub(crate) fn refusal(&self, key: &KeyPath, value: &Value) -> Option<String> {
        if let Some(why) = never(key) {
            return Some(format!("is not for the overlay, since {why}: write it in the config file"));
        }
        if let (Value::Object(values), false) = (value, self.is_below_allowed(key)) {
            // A map above an allowed key may hold this key.
            let below = values.iter().find_map(|(name, value)| self.refusal(&key.key(name), value));
            return below.or_else(|| values.is_empty().then(|| self.not_listed()));
        }
        if !self.is_below_allowed(key) {
            return Some(self.not_listed());
        }
        let place = KeyPlace::find(self.root, key);
        if place.may_hold_secrets {
            return Some(format!("may hold secrets ({key}): write it in the config file"));
        }
        unfit(place.shape?, value, key)
    }

    fn is_below_allowed(&self, key: &KeyPath) -> bool {
        self.allowed.iter().any(|allowed| key.steps().starts_with(allowed.steps()))
    }

    fn not_listed(&self) -> String {
        let text = match self.allowed.is_empty() {
            true => "cannot be changed here, since gateway.config_keys is empty: write it in the config file",
            false => {
                "is not among the keys of gateway.config_keys: write it in the config file, or add it there"
            }
        };
        text.to_owned()
    }
}

/// Whether the operator may open this key: why not.
pub(in crate::config) fn is_ever_allowed(key: &str) -> Result<(), String> {
    let key = parse(key);
    if let Some(why) = never(&key) {
        return Err(format!("cannot be opened, since {why}"));
    }
    // Later versions may have it; `shadow` is a default.
    let known = DEFAULT_KEYS.iter().any(|known| parse(known) == key);
    let place = KeyPlace::find(schema::shared(), &key);
    if place.may_hold_secrets {
        return Err("cannot be opened, since it may hold secrets".to_owned());
    }
    match place.shape {
        Some(_) => Ok(()),
        None if known => Ok(()),
        None => Err("is no key of the configuration".to_owned()),
    }
}

fn parse(key: &str) -> KeyPath {
    KeyPath::of(&key.split('.').collect::<Vec<_>>())
}

fn never(key: &KeyPath) -> Option<&'static str> {
    let steps = key.steps();
    let is_at = |place: &&(&[&str], &str)| {
        steps.len() >= place.0.len() && steps.iter().zip(place.0).all(|(a, b)| a == b)
    };
    if let Some((_, why)) = NEVER.iter().find(is_at) {
        return Some(why);
    }
    let of_plugins = steps.first().is_some_and(|first| first == "plugins");
    (of_plugins && steps.iter().any(|step| NEVER_OF_PLUGINS.contains(&step.as_str())))
        .then_some("it decides what runs, and with what")
}

/// Where a key leads to.
pub(super) struct KeyPlace<'s> {
    /// Its shape; `None` for a key that there is not, which the checks of the whole report.
    shape: Option<&'s Shape>,
    /// Whether it, or a key above it, may hold secrets.
    pub(super) may_hold_secrets: bool,
}

impl<'s> KeyPlace<'s> {
    pub(super) fn find(root: &'s Shape, key: &KeyPath) -> Self {
        let mut shape = root;
        let mut may_hold_secrets = false;
        for step in key.steps() {
            shape = match &shape.kind {
                ShapeKind::Object(_) | ShapeKind::OneOf(_) => {
                    let Some(field) = shape.field(step) else {
                        return Self { shape: None, may_hold_secrets };
                    };
                    may_hold_secrets |= field.may_hold_secrets;
                    &field.shape
                }
                ShapeKind::Map { value, .. } => value,
                ShapeKind::List(item) => item,
                _ => return Self { shape: None, may_hold_secrets },
            };
        }
        Self { shape: Some(shape), may_hold_secrets }
    }
}

/// Why a value is not for the overlay by its kind.
fn unfit(shape: &Shape, value: &Value, key: &KeyPath) -> Option<String> {
    match (&shape.kind, value) {
        (ShapeKind::Path | ShapeKind::Program, _) => {
            Some(format!("names a path ({key}), which the overlay never does: write it in the config file"))
        }
        (ShapeKind::Secret, _) => {
            Some(format!("is a secret ({key}), which the overlay never holds: write it in the config file"))
        }
        (ShapeKind::Object(_) | ShapeKind::OneOf(_), Value::Object(values)) => {
            values.iter().find_map(|(name, value)| {
                let field = shape.field(name)?;
                let key = key.key(name);
                if let Some(why) = never(&key) {
                    return Some(format!("has {key}, which is not for the overlay, since {why}"));
                }
                if field.may_hold_secrets {
                    return Some(format!("has {key}, which may hold secrets: write it in the config file"));
                }
                unfit(&field.shape, value, &key)
            })
        }
        (ShapeKind::Map { value: shape, .. }, Value::Object(values)) => {
            values.iter().find_map(|(name, value)| unfit(shape, value, &key.key(name)))
        }
        (ShapeKind::List(shape), Value::Array(items)) => {
            items.iter().enumerate().find_map(|(index, item)| unfit(shape, item, &key.index(index)))
        }
        _ => None,
    }
}
