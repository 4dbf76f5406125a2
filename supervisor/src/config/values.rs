//! The effective values one by one, for clients: each with its layer and its place, without secrets.

use serde_json::{Map, Value};
use talon_plugin_config::document::origin::{KeyPath, Source};

use super::load::Loaded;
use super::overlay::OverlayKeys;
use super::secret::REDACTED;

/// The layer of the configuration that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigLayer {
    Default,
    File,
    Overlay,
    Environment,
    Flag,
}

impl ConfigLayer {
    /// Its name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Overlay => "overlay",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfigRow {
    pub(crate) key: KeyPath,
    /// A scalar, a list, or a map without entries.
    pub(crate) value: Value,
    pub(crate) layer: ConfigLayer,
    /// The place in words.
    pub(crate) source: String,
    /// Why the overlay cannot set it; `None` if it can.
    pub(crate) fixed: Option<String>,
}

impl Loaded {
    /// Each value of a configuration that was made of this one.
    pub(crate) fn rows(&self) -> Vec<ConfigRow> {
        let keys = OverlayKeys::new(&self.config.gateway.config_keys);
        let mut rows = Vec::new();
        self.add_rows(&self.shown_values(), &KeyPath::top(), &keys, &mut rows);
        rows
    }

    fn add_rows(
        &self,
        values: &Map<String, Value>,
        path: &KeyPath,
        keys: &OverlayKeys,
        rows: &mut Vec<ConfigRow>,
    ) {
        for (name, value) in values {
            let key = path.key(name);
            match value {
                Value::Object(values) if !values.is_empty() => self.add_rows(values, &key, keys, rows),
                _ => rows.push(self.row(key, value.clone(), keys)),
            }
        }
    }

    fn row(&self, key: KeyPath, value: Value, keys: &OverlayKeys) -> ConfigRow {
        let source = self.source(&key);
        let layer = match &source {
            Source::File { path, .. } if self.overlay.as_deref() == Some(&**path) => ConfigLayer::Overlay,
            Source::File { .. } => ConfigLayer::File,
            Source::Variable(_) => ConfigLayer::Environment,
            Source::Flag(_) => ConfigLayer::Flag,
            _ => ConfigLayer::Default,
        };
        let fixed = match layer {
            _ if self.overlay.is_none() => {
                Some("the overlay is ignored (talon serve --no-overlay)".to_owned())
            }
            ConfigLayer::Environment | ConfigLayer::Flag => {
                Some(format!("{source} sets it, which is stronger than the overlay: take it out there first"))
            }
            _ if value == REDACTED => Some("it is a secret: write it in the config file".to_owned()),
            _ => keys.refusal(&key, &value),
        };
        ConfigRow { key, value, layer, source: source.to_string(), fixed }
    }
}
