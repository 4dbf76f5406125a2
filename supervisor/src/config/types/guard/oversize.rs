//! `guard.oversize` and `guard.pages`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::{ByteSize, Duration};

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
    /// How long a text is stored after its answer.
    ///
    /// 10 minutes are a few turns of a conversation. A later request is refused with the advice to repeat the
    /// call.
    pub keep: Duration,
    /// The total size of all stored texts.
    ///
    /// 16 MiB holds some dozens of long answers. When it is full, the caller that uses most of it loses its
    /// oldest text, so that one caller's flood does not drop the texts of others.
    pub max_bytes: ByteSize,
    /// The longest text that is stored.
    ///
    /// 1 MiB is 16 pages of the default size, more than is ever read that way. Of a longer one a caller gets
    /// the beginning and the end, without a handle.
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
