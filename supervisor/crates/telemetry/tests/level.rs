//! The filter of a process's log, which is one for the whole process.

use talon_telemetry::{Format, Settings, handle, init};
use tracing::Level;

// Promises: TRACE-8
#[test]
fn the_level_changes_while_it_runs_and_a_bad_one_changes_nothing() {
    assert!(handle().is_none());
    let settings = Settings { format: Format::Json, level: "warn".to_owned(), ..Settings::default() };
    let _guard = init(&settings).unwrap();
    assert!(init(&settings).is_err(), "there is one log");
    let handle = handle().unwrap();
    assert!(tracing::enabled!(Level::WARN) && !tracing::enabled!(Level::INFO));

    handle.set_level("debug").unwrap();
    assert!(tracing::enabled!(Level::DEBUG) && !tracing::enabled!(Level::TRACE));

    let error = handle.set_level("talon=[loud").unwrap_err().to_string();
    assert!(error.contains("log.level") && error.contains("[loud"), "{error}");
    assert!(tracing::enabled!(Level::DEBUG));

    handle.set_level("error").unwrap();
    assert!(!tracing::enabled!(Level::WARN));
}
