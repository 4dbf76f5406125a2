//! Uses each part of the SDK once; `tests/process.rs` runs it.

use std::process::ExitCode;

use serde::Deserialize;
use talon_sdk::{Context, EventSource, Json, OrToolError, Output, Plugin, SourceEvent, ToolError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// What each note starts with.
    #[serde(default)]
    prefix: String,
}

/// What all calls share; built from the config once.
struct Shared {
    prefix: String,
    events: EventSource,
}

#[talon_sdk::args]
struct Note {
    /// Under which name to keep it.
    key: String,
    /// What to keep.
    text: String,
}

/// Keeps a note for later.
#[talon_sdk::tool]
async fn keep(args: Note, cx: Context) -> Result<Output, ToolError> {
    let shared = cx.shared::<Shared>()?;
    let state = cx.state().or_tool_error("notes need a host that keeps state")?;
    state.set_json(&args.key, &format!("{}{}", shared.prefix, args.text)).await?;
    let keys = state.keys("").await?;
    Output::text(format!("kept; {} notes now", keys.len())).structured(keys)
}

#[talon_sdk::args]
struct Which {
    /// The note's name.
    key: String,
}

/// Gives a note back.
#[talon_sdk::tool(read_only)]
async fn recall(args: Which, cx: Context) -> Result<Json<Option<String>>, ToolError> {
    Ok(Json(cx.state()?.get_json(&args.key).await?))
}

#[talon_sdk::args]
struct Lines {
    /// How many lines.
    count: u32,
}

/// Prints to stdout, which is only a log once the handshake is over.
#[talon_sdk::tool(name = "print-lines")]
async fn print(args: Lines, cx: Context) -> Result<String, ToolError> {
    cx.blocking(move || {
        for number in 0..args.count {
            println!("1|1|unix|/tmp/forged-{number}|grpc and then some more text to fill the pipe");
        }
        Ok(format!("printed {}", args.count))
    })
    .await
}

/// Waits until the caller gives up; logs when it is dropped.
#[talon_sdk::tool]
async fn wait() -> Result<(), ToolError> {
    struct Dropped;
    impl Drop for Dropped {
        fn drop(&mut self) {
            tracing::info!("the wait was dropped");
        }
    }
    let _dropped = Dropped;
    tracing::info!("the wait begins");
    std::future::pending().await
}

/// Panics.
#[talon_sdk::tool(user_only)]
async fn fall() -> Result<String, ToolError> {
    panic!("fell on purpose");
}

/// Fails on something that is none of the caller's business.
#[talon_sdk::tool]
async fn fail() -> Result<String, ToolError> {
    Ok(std::fs::read_to_string("/nonexistent/private")?)
}

#[talon_sdk::args]
struct EventArguments {
    /// The event's id.
    id: String,
}

/// Tells an event, and waits until the host has it.
#[talon_sdk::tool]
async fn tell(args: EventArguments, cx: Context) -> Result<String, ToolError> {
    let event = SourceEvent::new(args.id, "everything", "It happened").field("by", "tell");
    match cx.shared::<Shared>()?.events.deliver(event).await {
        Ok(()) => Ok("the host has it".to_owned()),
        Err(error) => Err(ToolError::new(error.to_string())),
    }
}

fn main() -> ExitCode {
    let events = EventSource::new();
    let shared = events.clone();
    Plugin::new("everything")
        .description("One of each.")
        .tools([keep(), recall(), print(), wait(), fall(), fail(), tell()])
        .events(events)
        .init(move |config: Config| {
            let events = shared.clone();
            async move {
                if config.prefix.contains('\n') {
                    return Err(ToolError::new("prefix must be one line"));
                }
                Ok(Shared { prefix: config.prefix, events })
            }
        })
        .serve()
}
