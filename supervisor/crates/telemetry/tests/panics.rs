//! The message of a panic on standard error.

use talon_telemetry::{Format, Settings, init};

// Promises: TRACE-18
#[test]
fn the_message_of_a_panic_is_one_neutralized_line() {
    let mut kept = None;
    talon_log::testing::check_panics(
        "the_message_of_a_panic_is_one_neutralized_line",
        &["text", "json"],
        |format| {
            let format = if format == "json" { Format::Json } else { Format::Text };
            // It is written when this is dropped.
            kept = Some(init(&Settings { format, level: "info".to_owned(), ..Settings::default() }).unwrap());
        },
    );
}
