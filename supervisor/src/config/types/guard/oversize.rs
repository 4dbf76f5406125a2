//! `guard.oversize` and `guard.pages`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin::units::{ByteSize, Duration};

/// What a caller gets of a text that is over its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Oversize {
    /// Its beginning, and a notice that says how much was left out.
    #[default]
    Cut,
    /// Its beginning and its end, with the notice between them; the whole text is kept for a while, and
    /// the action `talon.read_more` reads it page by page.
    Excerpt,
}

/// Where texts are kept that were over their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pages {
    /// How long a text is kept after its answer.
    ///
    /// 10 minutes are a few turns of a conversation. Who asks later is told to make the call again.
    pub keep: Duration,
    /// What all kept texts may weigh together.
    ///
    /// 16 MiB holds some dozens of long answers. When it is full, the caller that takes up most of it gives up its oldest
    /// text, so that nobody's flood drives out what another still reads.
    pub max_bytes: ByteSize,
    /// The longest text that is kept.
    ///
    /// 1 MiB is 16 pages of the default size; nobody reads more that way. Of a longer one a caller gets the beginning and
    /// the end, without a handle.
    pub max_text_bytes: ByteSize,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(600),
            max_bytes: ByteSize::mib(16),
            max_text_bytes: ByteSize::mib(1),
        }
    }
}
