//! The log filter of the supervisor and its child processes, in the syntax of
//! `tracing_subscriber::EnvFilter`.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// The environment variable with the filter: `info`, `talon_plugin=debug,warn`. The supervisor passes it on
/// to its child processes.
pub const FILTER_VARIABLE: &str = "TALON_LOG";

/// The HTTP/2 library warns about single frames, which a plugin or client can send by the million. Problems
/// of a connection as a whole are logged by the code that uses it. A filter that names these targets
/// overrides this.
const DEFAULT_DIRECTIVES: &str = "h2=error,hyper=error";

/// A short name in a filter, and its targets: with `agent` for `talon_agent` and `talon_llm`, `agent=debug`
/// means `talon_agent=debug,talon_llm=debug`.
pub type ShortName = (&'static str, &'static [&'static str]);

/// The value of the variable, unless it is unset or empty.
#[must_use]
pub fn from_environment() -> Option<String> {
    std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty())
}

/// Parses a filter.
///
/// # Errors
/// The text is no filter.
pub fn parse(filter: &str, names: &[ShortName]) -> Result<EnvFilter, ParseError> {
    EnvFilter::builder().parse(format!("{DEFAULT_DIRECTIVES},{}", expand(filter, names)))
}

/// Replaces short names by their targets. A filter with a short name asks for more of it, not for less of
/// everything else: without a general level, all other targets are at `info`.
fn expand(filter: &str, names: &[ShortName]) -> String {
    let mut known = false;
    let directives: Vec<String> = filter
        .split(',')
        .map(|directive| {
            let (name, level) = directive.split_once('=').unwrap_or((directive, "trace"));
            match names.iter().find(|(short, _)| *short == name.trim()) {
                Some((_, targets)) => {
                    known = true;
                    targets.iter().map(|target| format!("{target}={level}")).collect::<Vec<_>>().join(",")
                }
                None => directive.to_owned(),
            }
        })
        .collect();
    let directives = directives.join(",");
    // A later directive of the same kind wins, so a general level in the text overrides `info`.
    if known { format!("info,{directives}") } else { directives }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-53
    #[test]
    fn a_short_name_stands_for_its_targets_and_takes_nothing_from_others() {
        let names: &[ShortName] = &[("agent", &["talon_agent", "talon_llm"])];
        assert_eq!(expand("agent=debug", names), "info,talon_agent=debug,talon_llm=debug");
        assert_eq!(expand("warn,agent=trace", names), "info,warn,talon_agent=trace,talon_llm=trace");
        assert_eq!(expand("talon_store=debug,info", names), "talon_store=debug,info");
        assert_eq!(expand("info", &[]), "info");
        for text in ["agent=debug", "agent", "warn,agent=trace"] {
            assert!(parse(text, names).is_ok(), "{text}");
        }
    }
}
