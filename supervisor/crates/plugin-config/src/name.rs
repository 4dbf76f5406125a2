//! Plugin names: validated once, carried as a type, safe to build a path from.

use std::fmt;
use std::sync::Arc;

use talon_sanitize::SafeDisplay;

/// The name under which the plugin's own texts appear among its actions: in notices, approvals and digests.
/// No action can have this name.
pub const PLUGIN_TEXTS: &str = "(plugin)";

/// The longest name: 64 characters, so that names such as `plugin__action` and unix socket paths stay short.
pub const MAX_NAME_LEN: usize = 64;

/// A plugin's configured name: `[a-z0-9][a-z0-9-]{0,63}`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginName(Arc<str>);

/// The name under which the supervisor's own actions are called (`talon.read_more`). It is reserved, so that
/// a plugin's action cannot be taken for one of them.
pub const RESERVED_NAME: &str = "talon";

/// The names of Talon's own parts: its actions, and its services, which have uids, homes and logs by these
/// names like plugins. No plugin can have one.
pub const RESERVED_NAMES: [&str; 4] = [RESERVED_NAME, "talon-state", "talon-agent", "talon-gateway"];

/// Why a text is not a plugin name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginNameError {
    /// It does not match the pattern.
    #[error(
        "{shown:?} is not a plugin name: use 1 to {MAX_NAME_LEN} characters of a-z, 0-9 and '-', the first not '-'"
    )]
    Malformed {
        /// The text, cut to a bounded length.
        shown: String,
    },
    /// It is reserved for Talon itself.
    #[error("{name:?} is the name of a part of Talon itself: give the plugin another")]
    Reserved {
        /// Which of [`RESERVED_NAMES`].
        name: &'static str,
    },
}

impl PluginName {
    /// Validates a name without changing it.
    ///
    /// # Errors
    /// [`PluginNameError`] if it does not match `[a-z0-9][a-z0-9-]{0,63}`, or is one of [`RESERVED_NAMES`].
    pub fn new(text: &str) -> Result<Self, PluginNameError> {
        if let Some(name) = RESERVED_NAMES.into_iter().find(|reserved| *reserved == text) {
            return Err(PluginNameError::Reserved { name });
        }
        if is_well_formed(text) {
            Ok(Self(text.into()))
        } else {
            Err(PluginNameError::Malformed { shown: text.chars().take(MAX_NAME_LEN + 1).collect() })
        }
    }

    /// The name of a part of Talon itself, which is one of [`RESERVED_NAMES`].
    #[must_use]
    pub fn reserved(name: &'static str) -> Self {
        debug_assert!(RESERVED_NAMES.contains(&name), "{name} is not kept from plugins");
        Self(name.into())
    }

    /// Derives a name from a file name: drops the extension, turns `_` into `-`.
    ///
    /// # Errors
    /// [`PluginNameError`] if what remains is no name.
    pub fn from_file_name(file_name: &str) -> Result<Self, PluginNameError> {
        let stem = match file_name.rfind('.') {
            Some(dot) if dot > 0 => &file_name[..dot],
            _ => file_name,
        };
        Self::new(&stem.replace('_', "-"))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a text has the form of a name, reserved names included.
#[must_use]
pub fn is_well_formed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.len() <= MAX_NAME_LEN
        && bytes.first().is_some_and(plain)
        && bytes.iter().all(|b| plain(b) || *b == b'-')
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Safe to show: every character of a name is checked.
impl SafeDisplay for PluginName {}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: DISC-2
    #[test]
    fn file_names_become_names() {
        assert_eq!(PluginName::from_file_name("csv_query.py").unwrap().as_str(), "csv-query");
        assert_eq!(PluginName::from_file_name("hello").unwrap().as_str(), "hello");
        assert!(PluginName::from_file_name(".hidden").is_err());
        assert!(PluginName::from_file_name("Hello").is_err());
    }

    // Promises: DISC-3
    #[test]
    fn hostile_names_are_refused() {
        for bad in ["", "-a", "../x", "a/b", "a\0b", "A", "ä", &"a".repeat(65)] {
            assert!(PluginName::new(bad).is_err(), "{bad:?}");
        }
        assert!(PluginName::new(&"a".repeat(64)).is_ok());
    }

    // Promises: GUARD-58
    #[test]
    fn no_plugin_is_called_as_the_supervisor_itself() {
        for name in RESERVED_NAMES {
            let error = PluginName::new(name).unwrap_err();
            assert_eq!(error, PluginNameError::Reserved { name });
            assert!(error.to_string().contains(name), "{error}");
            assert!(is_well_formed(name));
            assert_eq!(PluginName::reserved(name).as_str(), name);
        }
        let file = PluginName::from_file_name("talon_state.py");
        assert_eq!(file, Err(PluginNameError::Reserved { name: "talon-state" }));
        assert!(PluginName::new("talon-tools").is_ok());
    }
}
