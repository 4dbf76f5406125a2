//! A parsed profile.

use super::rule::{CallGroup, DefaultAction};

/// A parsed profile.
#[derive(Debug, Clone)]
pub struct Profile {
    pub(super) name: String,
    pub(super) description: String,
    /// The built-in profile that it extends.
    pub(super) extends: Option<String>,
    pub(super) default: DefaultAction,
    pub(super) landlock_abi: u32,
    /// Its own and those of the profile that it extends.
    pub(super) groups: Vec<CallGroup>,
}

impl Profile {
    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The profile's purpose, in one line.
    pub fn description(&self) -> &str {
        &self.description
    }
}
