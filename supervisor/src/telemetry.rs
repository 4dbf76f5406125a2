//! The log of the supervisor: on stderr, for people on a terminal and as JSON where the configuration says so.
//!
//! Writing never holds up a call: lines go through a bounded queue to a thread of their own, and what does not fit
//! is counted and said. A closed stderr ends the log, not the supervisor.
//!
//! What plugins write is sanitized long before it gets here. Fields of an event are values of any type, though, so each
//! line is made inert once more where it is written, for whoever logs one day what nobody thought of.

mod inert;
mod writer;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

pub use writer::FlushGuard;

/// Says what is logged, in the words of `tracing_subscriber::EnvFilter`: `info`, `talon_plugin=debug,warn`.
pub const FILTER_VARIABLE: &str = "TALON_LOG";

/// The HTTP/2 library warns about single frames, which a plugin or client can send by the million. What is wrong with
/// a connection as a whole is told by whoever uses it. A filter that names these targets wins over this.
const FRAMES_UNSAID: &str = "h2=error,hyper=error";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why the log cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The filter does not parse.
    #[error(
        "{origin} {filter:?} is not a log filter ({source}): write a level such as info, or talon_plugin=debug,info"
    )]
    Filter {
        /// Who said it: the variable, or the key of the configuration.
        origin: &'static str,
        /// What was said, cut to a bounded length.
        filter: String,
        /// Why it is none.
        source: tracing_subscriber::filter::ParseError,
    },
    /// The writing thread could not be started.
    #[error("cannot start the log's thread: {0}; see whether the process limit (ulimit -u) is reached")]
    Thread(std::io::Error),
    /// A log is set up already.
    #[error("the log is set up twice in one process")]
    Twice,
}

/// Starts the log of this process. `configured` is what the configuration says; [`FILTER_VARIABLE`] wins over it.
/// Text is coloured if `color` says so.
/// What was logged before the guard is dropped is written before that returns, if stderr takes it within a second.
///
/// # Errors
/// [`TelemetryError`]; nothing is set up then.
pub fn init(format: Format, configured: &str, color: bool) -> Result<FlushGuard, TelemetryError> {
    let filter = filter(configured)?;
    let (writer, guard) = writer::start(format, color).map_err(TelemetryError::Thread)?;
    // The subscriber reports its own write errors with eprintln!, which panics when stderr is closed.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(SystemTime)
        .with_writer(writer)
        .log_internal_errors(false);
    match format {
        Format::Text => builder.with_ansi(color).try_init(),
        Format::Json => builder.json().flatten_event(true).with_span_list(false).try_init(),
    }
    .map_err(|_| TelemetryError::Twice)?;
    Ok(guard)
}

fn filter(configured: &str) -> Result<EnvFilter, TelemetryError> {
    let variable = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    let (origin, text) = match &variable {
        Some(text) => (FILTER_VARIABLE, text.as_str()),
        None => ("log.filter", configured),
    };
    EnvFilter::builder().parse(format!("{FRAMES_UNSAID},{text}")).map_err(|source| TelemetryError::Filter {
        origin,
        filter: text.chars().take(100).collect(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_filter_says_who_said_it() {
        assert!(filter("info,talon_plugin=debug").is_ok());
        let error = filter("talon=[loud").unwrap_err().to_string();
        assert!(error.contains("log.filter") && error.contains("[loud"), "{error}");
    }

    #[test]
    fn warnings_about_single_frames_are_not_said_unless_asked_for() {
        let levels = |text: &str| {
            let filter = filter(text).unwrap().to_string();
            let mut said: Vec<_> = filter.split(',').map(str::to_owned).collect();
            said.sort();
            said
        };
        for text in ["info", "trace", "talon_plugin=debug,info"] {
            assert!(levels(text).contains(&"h2=error".to_owned()), "{text}: {:?}", levels(text));
        }
        let asked = levels("h2=debug,info");
        assert!(
            asked.contains(&"h2=debug".to_owned()) && !asked.contains(&"h2=error".to_owned()),
            "{asked:?}"
        );
    }
}
