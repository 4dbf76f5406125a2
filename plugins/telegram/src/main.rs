//! People on Telegram talk to the agent, through a bot: it listens by long polls, and sends answers with buttons.
//!
//! | module | content |
//! |---|---|
//! | `settings` | the plugin's settings |
//! | `api` | one request of the Bot API, and what its answer means |
//! | `update` | what Telegram tells, as events. Pure |
//! | `poll` | the long polls, and which update was the last |
//! | `files` | files that came with messages |
//! | `action` | the channel's action |

mod action;
mod api;
mod files;
mod poll;
mod settings;
mod update;

use std::process::ExitCode;

use talon_sdk::{EventSource, Plugin};

use crate::action::Telegram;

fn main() -> ExitCode {
    let events = EventSource::new();
    let told = events.clone();
    Plugin::new("telegram")
        .description("People on Telegram talk to the agent.")
        .events(events)
        .tool(action::channel())
        .init(move |settings| {
            let events = told.clone();
            async move { Telegram::new(settings, events) }
        })
        .serve()
}
