//! Sends notifications to a web hook: as signed JSON, or as text for services like Slack and Discord.

mod body;
mod markup;
mod send;
mod settings;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::send::Webhook;

fn main() -> ExitCode {
    Plugin::new("webhook")
        .description("Sends notifications to a web hook.")
        .tool(send::send())
        .init(|settings| async move { Webhook::new(settings) })
        .serve()
}
