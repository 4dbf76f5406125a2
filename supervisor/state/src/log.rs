//! The log: JSON lines on stderr, which whoever started the process reads.
//!
//! Nothing that a plugin keeps gets there: neither values nor keys are fields of any event.

use tracing_subscriber::EnvFilter;

/// Says what is logged, in the words of `tracing_subscriber::EnvFilter`, as for the supervisor.
const FILTER_VARIABLE: &str = "TALON_LOG";
/// The HTTP/2 library warns about single frames, which a plugin can send by the million.
const FRAMES_UNSAID: &str = "h2=error,hyper=error";

/// Begins the log. A filter that does not parse is said, and `info` taken: state is served all the same.
pub fn begin() {
    let wanted = std::env::var(FILTER_VARIABLE).ok().filter(|text| !text.is_empty());
    let parse = |text: &str| EnvFilter::builder().parse(format!("{FRAMES_UNSAID},{text}"));
    let (filter, wrong) = match parse(wanted.as_deref().unwrap_or("info")) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(format!("{FRAMES_UNSAID},info")), Some(error)),
    };
    let begun = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would report its own write errors with eprintln!, which panics when stderr is closed.
        .log_internal_errors(false)
        .json()
        .flatten_event(true)
        .with_span_list(false)
        .try_init();
    if let Some(error) = wrong.filter(|_| begun.is_ok()) {
        tracing::warn!(%error, "{FILTER_VARIABLE} is not a log filter: write a level such as info, or talon_store=debug,info");
    }
}
