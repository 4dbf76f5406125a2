//! One entry of the configuration, whatever its role.

use std::fmt;

use serde_json::{Map, Value};

use crate::Role;

/// One entry, as the host and `talon status` see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'c> {
    /// The role.
    pub role: Role,
    /// Its place in the list of the role, from 0.
    pub index: usize,
    /// Its name, unique in the list.
    pub name: &'c str,
    /// The action, as `plugin.action`.
    pub action: &'c str,
    /// The template of its arguments, for actions that do not declare the role.
    pub args: Option<&'c Map<String, Value>>,
}

impl<'c> Entry<'c> {
    /// Plugin and action. A text without a dot names no action.
    #[must_use]
    pub fn target(&self) -> (&'c str, &'c str) {
        self.action.split_once('.').unwrap_or((self.action, ""))
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> EntryKey {
        EntryKey { role: self.role, name: self.name.to_owned() }
    }
}

/// What identifies an entry in logs, in the audit log and in the journal: `request_hook/pii.scan`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The role.
    pub role: Role,
    /// The entry's name.
    pub name: String,
}

impl fmt::Display for EntryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.role, self.name)
    }
}
