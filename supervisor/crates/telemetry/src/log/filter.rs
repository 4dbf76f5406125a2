//! The log filter.

pub use talon_log::filter::FILTER_VARIABLE;
use talon_log::filter::{self, ShortName};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Short names in a filter, each with its targets. `agent`: the lines of the agent's process, which have
/// their own target, and those of its supervisor.
const TARGETS: [ShortName; 1] = [("agent", &["agent", "talon_supervisor::agent"])];

/// How much of an invalid filter is repeated in the message.
const MAX_SHOWN_CHARS: usize = 100;

/// The text is not a valid filter.
#[derive(Debug, thiserror::Error)]
#[error(
    "{origin} {filter:?} is not a log filter ({source}): write a level such as info, or talon_plugin=debug,info"
)]
pub struct FilterError {
    /// The source: the variable, or the key in the configuration.
    origin: &'static str,
    /// The text, cut to a bounded length.
    filter: String,
    source: ParseError,
}

/// The filter from the variable, otherwise from the configuration.
pub(crate) fn filter(configured: &str) -> Result<EnvFilter, FilterError> {
    let variable = filter::from_environment();
    let (origin, text) = match &variable {
        Some(text) => (FILTER_VARIABLE, text.as_str()),
        None => ("log.level", configured),
    };
    filter::parse(text, &TARGETS).map_err(|source| FilterError {
        origin,
        filter: text.chars().take(MAX_SHOWN_CHARS).collect(),
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
        assert!(error.contains("log.level") && error.contains("[loud"), "{error}");
    }

    #[test]
    fn a_short_name_asks_for_more_of_the_agent_and_for_no_less_of_all_else() {
        let levels = |text: &str| {
            let filter = filter(text).unwrap().to_string();
            let mut said: Vec<_> = filter.split(',').map(str::to_owned).collect();
            said.retain(|it| !it.starts_with("h"));
            said.sort();
            said
        };
        assert_eq!(levels("agent=debug"), ["agent=debug", "info", "talon_supervisor::agent=debug"]);
        assert_eq!(levels("warn,agent=trace"), ["agent=trace", "talon_supervisor::agent=trace", "warn"]);
        assert_eq!(levels("agent=off,debug"), ["agent=off", "debug", "talon_supervisor::agent=off"]);
        assert_eq!(levels("talon_agent=debug,info"), ["info", "talon_agent=debug"]);
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
