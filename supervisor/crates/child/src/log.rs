//! The log: JSON lines on stderr, which the supervisor reads.
//!
//! Stored data never gets into the log: neither values nor keys are fields of any event.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::JsonFields;

use crate::json_format::FlatJson;

/// Sets what is logged, in the syntax of `tracing_subscriber::EnvFilter`, as for the supervisor.
const FILTER_VARIABLE: &str = "TALON_LOG";
/// The HTTP/2 library warns about single frames, which a client can send by the million.
const HTTP2_DIRECTIVES: &str = "h2=error,hyper=error";

/// Initializes the log. An invalid filter is reported, and `info` is used instead: the process works all the
/// same.
///
/// `targets` are short names for filters, each with its targets: with `agent` for `talon_agent` and
/// `talon_llm`, `agent=debug` means `talon_agent=debug,talon_llm=debug`, and all others are at `info`.
pub fn init(targets: &[(&str, &[&str])]) {
    let wanted = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    let wanted = expand_targets(wanted.as_deref().unwrap_or("info"), targets);
    let (filter, wrong) = match EnvFilter::builder().parse(format!("{HTTP2_DIRECTIVES},{wanted}")) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(format!("{HTTP2_DIRECTIVES},info")), Some(error)),
    };
    let begun = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would report its own write errors with eprintln!, which panics when stderr is closed.
        .log_internal_errors(false)
        .fmt_fields(JsonFields::new())
        .event_format(FlatJson)
        .try_init();
    if let Some(error) = wrong.filter(|_| begun.is_ok()) {
        tracing::warn!(%error, "{FILTER_VARIABLE} is not a log filter: write a level such as info, or talon_store=debug,info");
    }
}

/// Replaces short names by their targets. Naming one asks for more of it, and not for less of everything
/// else.
fn expand_targets(filter: &str, targets: &[(&str, &[&str])]) -> String {
    let mut known = false;
    let directives: Vec<String> = filter
        .split(',')
        .map(|directive| {
            let (name, level) = directive.split_once('=').unwrap_or((directive, "trace"));
            match targets.iter().find(|(short, _)| *short == name.trim()) {
                Some((_, long)) => {
                    known = true;
                    long.iter().map(|target| format!("{target}={level}")).collect::<Vec<_>>().join(",")
                }
                None => directive.to_owned(),
            }
        })
        .collect();
    let directives = directives.join(",");
    // A later directive of the same kind has precedence, so an explicit level stays.
    if known { format!("info,{directives}") } else { directives }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-53
    #[test]
    fn a_short_name_stands_for_its_targets_and_takes_nothing_from_others() {
        let targets: &[(&str, &[&str])] = &[("agent", &["talon_agent", "talon_llm"])];
        assert_eq!(expand_targets("agent=debug", targets), "info,talon_agent=debug,talon_llm=debug");
        assert_eq!(
            expand_targets("warn,agent=trace", targets),
            "info,warn,talon_agent=trace,talon_llm=trace"
        );
        assert_eq!(expand_targets("talon_store=debug,info", targets), "talon_store=debug,info");
        assert_eq!(expand_targets("info", &[]), "info");
        for text in ["agent=debug", "agent", "warn,agent=trace"] {
            assert!(EnvFilter::builder().parse(expand_targets(text, targets)).is_ok(), "{text}");
        }
    }
}
