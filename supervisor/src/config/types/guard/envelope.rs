//! `guard.envelope`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_guard::EnvelopeMode;

/// What a model gets around an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Envelope {
    /// `[plugin_output]` … `[/plugin_output]`, as the founding format has it.
    #[default]
    Plain,
    /// The same with a random number in both delimiters, made anew for each answer, and with plugin, call,
    /// size, and whether something was left out.
    Nonce,
    /// The same as `nonce`, and every line of the plugin's text begins with `· `.
    Quoted,
}

impl From<Envelope> for EnvelopeMode {
    fn from(envelope: Envelope) -> Self {
        match envelope {
            Envelope::Plain => Self::Plain,
            Envelope::Nonce => Self::Nonce,
            Envelope::Quoted => Self::Quoted,
        }
    }
}
