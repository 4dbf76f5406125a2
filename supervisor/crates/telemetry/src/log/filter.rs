//! What is logged.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Says what is logged, in the words of `tracing_subscriber::EnvFilter`: `info`, `talon_plugin=debug,warn`.
pub const FILTER_VARIABLE: &str = "TALON_LOG";

/// The HTTP/2 library warns about single frames, which a plugin or client can send by the million. What is wrong with
/// a connection as a whole is told by whoever uses it. A filter that names these targets wins over this.
const FRAMES_UNSAID: &str = "h2=error,hyper=error";

/// How much of a filter that does not parse is repeated.
const MAX_SHOWN_CHARS: usize = 100;

/// What was said is not a filter.
#[derive(Debug, thiserror::Error)]
#[error(
    "{origin} {filter:?} is not a log filter ({source}): write a level such as info, or talon_plugin=debug,info"
)]
pub struct BadFilter {
    /// Who said it: the variable, or the key of the configuration.
    origin: &'static str,
    /// What was said, cut to a bounded length.
    filter: String,
    source: ParseError,
}

/// What the variable says, else what is configured.
pub(crate) fn filter(configured: &str) -> Result<EnvFilter, BadFilter> {
    let variable = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    let (origin, text) = match &variable {
        Some(text) => (FILTER_VARIABLE, text.as_str()),
        None => ("log.level", configured),
    };
    EnvFilter::builder().parse(format!("{FRAMES_UNSAID},{text}")).map_err(|source| BadFilter {
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
