//! `log`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use talon_plugin_config::units::ByteSize;

/// The supervisor's own log, and its plugins' logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Log {
    /// What is logged: `error`, `warn`, `info`, `debug` or `trace`, or directives as in
    /// `info,plugin=warn,talon=debug`.
    ///
    /// `info` says what an operator acts on, and is silent about single calls. `TALON_LOG` wins over it.
    #[schemars(example = &"info,plugin=warn")]
    pub level: String,
    /// How a log line looks.
    pub format: LogFormat,
    /// Where each plugin's log file goes.
    ///
    /// Without it the plugins' lines are in the supervisor's own log and in memory only.
    #[schemars(extend("format" = "path"), example = &"/var/log/talon")]
    #[serde(default)]
    pub dir: Option<PathBuf>,
    /// Lines of each plugin that are kept in memory for `talon plugin logs`.
    ///
    /// 1,000: what a person scrolls through. Older lines are forgotten.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub ring_lines: usize,
    /// The longest line of a plugin.
    ///
    /// 8 KiB holds a line of a stack trace. The rest of a longer line is cut off and counted.
    pub line_bytes: ByteSize,
    /// Lines a second that one plugin may log for long.
    ///
    /// 1,000. More are dropped and counted, so that a chatty plugin cannot keep the supervisor busy.
    #[schemars(range(min = 1))]
    pub lines_per_second: u32,
    /// Lines at once above that rate.
    ///
    /// 5,000: a start that prints its configuration.
    #[schemars(range(min = 1))]
    pub burst_lines: u32,
    /// The size at which a plugin's log file is rotated.
    ///
    /// 10 MiB opens in any editor.
    pub file_bytes: ByteSize,
    /// Rotated files that are kept beside the current one.
    ///
    /// 3, which bounds a plugin's logs to 40 MiB. The oldest is deleted.
    #[schemars(range(max = 1000))]
    pub rotated_files: u32,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people on a terminal; the journal where stderr is connected to it, as under systemd; JSON
    /// otherwise.
    #[default]
    Auto,
    /// Entries of systemd's journal, with the fields kept as fields.
    Journald,
    /// One line for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::default(),
            dir: None,
            ring_lines: 1000,
            line_bytes: ByteSize::kib(8),
            lines_per_second: 1000,
            burst_lines: 5000,
            file_bytes: ByteSize::mib(10),
            rotated_files: 3,
        }
    }
}
