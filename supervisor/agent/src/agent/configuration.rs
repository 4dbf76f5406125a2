//! What the supervisor hands over.

use talon_agent_settings::SettingsBundle;
use talon_extensions::Extensions;

/// The configuration: the settings with the files and variables that they name, and the extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub(crate) bundle: SettingsBundle,
    pub(crate) extensions: Extensions,
}
