//! Logging and tracing settings of the verbs.

use std::io::stderr;

use talon_supervisor::config::{self, Config, LogFormat};
use talon_telemetry::{Format, Settings, TraceSettings};

use crate::global::Global;

impl Global {
    /// For interactive verbs: text on stderr.
    pub(crate) fn telemetry(&self, level: &str) -> Settings {
        let color = self.colors(&stderr());
        Settings { format: Format::Text, level: level.to_owned(), color, traces: None }
    }

    /// For the supervisor, according to its configuration.
    pub(crate) fn telemetry_of(&self, config: &Config) -> Settings {
        let format = match config.log.format {
            LogFormat::Auto => Format::for_stderr(),
            LogFormat::Journald => Format::Journald,
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        };
        Settings { format, traces: traces(&config.traces), ..self.telemetry(&config.log.level) }
    }
}

/// The destination of traces. The configuration has been validated, so an invalid collector does not occur
/// here.
fn traces(configured: &config::Traces) -> Option<TraceSettings> {
    let endpoint = configured.endpoint.as_ref()?.parse().ok()?;
    Some(TraceSettings { endpoint, sample: configured.sample })
}
