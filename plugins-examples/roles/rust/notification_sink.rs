//! A notification sink: writes events into its log.

use std::process::ExitCode;

use talon_sdk::{Delivery, Notification, Plugin, ToolError, tracing};

/// Writes an event into the log.
#[talon_sdk::notification_sink]
async fn send(asked: Notification) -> Result<Delivery, ToolError> {
    let event = asked.event;
    if event.summary.is_empty() {
        return Ok(Delivery::refused("the event says nothing"));
    }
    // The id is the same in every attempt: a receiver that knows it already drops it.
    tracing::warn!(id = event.id, kind = event.kind, "{}", event.summary);
    Ok(Delivery::delivered())
}

fn main() -> ExitCode {
    Plugin::new("hello").description("Delivers events.").tool(send()).serve()
}
