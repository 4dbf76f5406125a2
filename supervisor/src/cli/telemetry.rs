//! What a verb logs, and how.

use std::io::stderr;

use talon_telemetry::{Format, Settings, Traces};

use super::Global;
use crate::config::{self, Config, LogFormat};

impl Global {
    /// For a verb that people run: text on stderr.
    pub(super) fn telemetry(&self, level: &str) -> Settings {
        let color = self.colors(&stderr());
        Settings { format: Format::Text, level: level.to_owned(), color, traces: None }
    }

    /// For the supervisor, as its configuration says.
    pub(super) fn telemetry_of(&self, config: &Config) -> Settings {
        let format = match config.log.format {
            LogFormat::Auto => Format::suiting_stderr(),
            LogFormat::Journald => Format::Journald,
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        };
        Settings { format, traces: traces(&config.traces), ..self.telemetry(&config.log.level) }
    }
}

/// Where traces go. The configuration was checked: what names no collector did not get here.
fn traces(configured: &config::Traces) -> Option<Traces> {
    let endpoint = configured.endpoint.as_ref()?.parse().ok()?;
    Some(Traces { endpoint, sample: configured.sample })
}
