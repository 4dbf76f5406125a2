//! `audit`: who called what.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::{ByteSize, Duration};

/// The audit log: one line for each call, each chained to the one before by its digest, so that
/// `talon audit verify` shows what was changed, removed or put in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Audit {
    /// Whether calls are recorded.
    pub enabled: bool,
    /// Where the records go.
    #[schemars(extend("format" = "path"), extend("x-default" = "`audit` in `$LOGS_DIRECTORY`, else in `state.data_dir`"))]
    pub dir: Option<PathBuf>,
    /// What of a call's arguments is recorded.
    pub arguments: AuditArguments,
    /// The size at which a file is closed and the next one begun.
    ///
    /// 64 MiB are some hundred thousand calls, and open in any tool.
    pub file_bytes: ByteSize,
    /// Closed files that are kept; the oldest is deleted when there is one more. 0 keeps all.
    ///
    /// 16, which bounds the log to about 1 GiB. What was deleted is said in the first record of the oldest
    /// one that is left.
    #[schemars(range(max = 100_000))]
    pub files: u32,
    /// How long the answer to a call may wait for its record when the disk does not keep up.
    ///
    /// 100 milliseconds. Then the answer goes out, and the record is lost unless there is room for it; lost
    /// ones are counted, and the log says how many at the place where they would stand.
    pub wait: Duration,
}

/// What of a call's arguments is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditArguments {
    /// Nothing.
    None,
    /// Their SHA-256: tells whether two calls had the same, and not what it was (short or guessable ones can
    /// be tried out).
    #[default]
    Digest,
    /// They themselves, up to 4 KiB of them, and their digest. May be secret.
    Text,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            enabled: true,
            dir: None,
            arguments: AuditArguments::default(),
            file_bytes: ByteSize::mib(64),
            files: 16,
            wait: Duration::from(std::time::Duration::from_millis(100)),
        }
    }
}
