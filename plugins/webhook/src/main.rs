//! Sends notifications to a web hook: as signed JSON, or as text for services like Slack and Discord.

mod answer;
mod body;
mod markup;
mod request;
mod send;
mod settings;
mod signature;
mod target;

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
