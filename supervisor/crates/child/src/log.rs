//! The log: JSON lines on stderr, which the supervisor reads.
//!
//! Stored data never gets into the log: neither values nor keys are fields of any event.

use talon_log::filter::{self, FILTER_VARIABLE, ShortName};
use talon_log::panic::log_panics;
use tracing_subscriber::fmt::format::JsonFields;

use crate::json_format::FlatJson;

/// What is logged if the variable is not set, or no filter.
const DEFAULT_FILTER: &str = "info";

/// Initializes the log, with the program's short names for targets. An invalid filter is reported, and `info`
/// is used instead: the process works all the same.
pub fn init(names: &[ShortName]) {
    let wanted = filter::from_environment().unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let (filter, wrong) = match filter::parse(&wanted, names) {
        Ok(filter) => (filter, None),
        Err(error) => (filter::parse(DEFAULT_FILTER, &[]).unwrap_or_default(), Some(error)),
    };
    let begun = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would report its own write errors with eprintln!, which panics when stderr is closed.
        .log_internal_errors(false)
        .fmt_fields(JsonFields::new())
        .event_format(FlatJson)
        .try_init();
    if begun.is_ok() {
        log_panics();
    }
    if let Some(error) = wrong.filter(|_| begun.is_ok()) {
        tracing::warn!(%error, "{FILTER_VARIABLE} is not a log filter: write a level such as info, or talon_store=debug,info");
    }
}

#[cfg(test)]
mod tests {
    // Promises: TRACE-18
    #[test]
    fn the_message_of_a_panic_is_sanitized_before_it_is_written() {
        talon_log::testing::check_panics(
            "log::tests::the_message_of_a_panic_is_sanitized_before_it_is_written",
            &["json"],
            |_| super::init(&[]),
        );
    }
}
