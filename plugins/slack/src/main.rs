//! People on Slack talk to the agent, through an app of their workspace: it listens over Socket Mode, and sends answers with buttons.
//!
//! | module | content |
//! |---|---|
//! | `settings` | the plugin's settings |
//! | `api`, `api_error`, `token_kind` | one request of the Web API; what its errors mean; the app's two tokens |
//! | `frame`, `socket` | what comes over Socket Mode, which is pure; one connection of it |
//! | `conversation`, `plain_text`, `inbound` | where something is said; Slack's markup; what Slack tells, as events. Pure |
//! | `user_names` | names of people |
//! | `session`, `listen` | one connection's life; connections one after the other |
//! | `outbound`, `send_log` | messages with buttons; which were sent |
//! | `files` | files that came with messages |
//! | `action` | the channel's action |

mod action;
mod api;
mod api_error;
mod conversation;
mod files;
mod frame;
mod inbound;
mod listen;
mod outbound;
mod plain_text;
mod send_log;
mod session;
mod settings;
mod socket;
mod token_kind;
mod user_names;

use std::process::ExitCode;

use talon_sdk::{EventSource, Plugin};

use crate::action::Slack;

fn main() -> ExitCode {
    let events = EventSource::new();
    let told = events.clone();
    Plugin::new("slack")
        .description("People on Slack talk to the agent.")
        .events(events)
        .tool(action::channel())
        .init(move |settings| {
            let events = told.clone();
            async move { Slack::new(settings, events) }
        })
        .serve()
}
