//! A chat of another program: it posts signed messages to a route of the gateway, and gets the answers as signed posts to its URL.
//!
//! | module | content |
//! |---|---|
//! | `settings` | the plugin's settings |
//! | `message` | what is posted, as an event. Pure |
//! | `receive` | the route's action |
//! | `send`, `download` | the channel's action; the files of messages |

mod download;
mod message;
mod receive;
mod send;
mod settings;

use std::process::ExitCode;

use talon_sdk::{EventSource, Plugin};

use crate::send::ChatWebhook;

fn main() -> ExitCode {
    let events = EventSource::new();
    let told = events.clone();
    Plugin::new("chat-webhook")
        .description("Programs talk to the agent over signed web hooks.")
        .events(events)
        .tool(receive::receive())
        .tool(send::channel())
        .init(move |settings| {
            let events = told.clone();
            async move { ChatWebhook::new(settings, events) }
        })
        .serve()
}
