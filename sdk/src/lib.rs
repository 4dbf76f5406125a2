//! Write a Talon tool plugin in Rust: a typed async function becomes a tool.
//!
//! This is a whole plugin. Its binary runs under `talon serve`, under any go-plugin host that speaks the
//! contract, and for one call under `talon exec`:
//!
//! ```no_run
//! use std::process::ExitCode;
//! use talon_sdk::{Context, Plugin, ToolError, tracing};
//!
//! #[talon_sdk::args]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//!     /// How often; once unless said.
//!     #[serde(default = "once")]
//!     times: u8,
//! }
//!
//! fn once() -> u8 {
//!     1
//! }
//!
//! /// Greets somebody by name.
//! #[talon_sdk::tool(read_only)]
//! async fn greet(args: Greet, cx: Context) -> Result<String, ToolError> {
//!     if args.name.is_empty() {
//!         return Err(ToolError::new("greet whom? give a name"));
//!     }
//!     tracing::debug!("call {}", cx.call_id());
//!     Ok(vec![format!("Hello, {}!", args.name); args.times.into()].join(" "))
//! }
//!
//! fn main() -> ExitCode {
//!     Plugin::new("hello").description("Greets people.").tool(greet()).serve()
//! }
//! ```
//!
//! # What is where
//!
//! | you want to | look at |
//! |---|---|
//! | make a tool from a function or a closure | [`macro@tool`], [`Tool::new`] |
//! | look at messages and answers | [`macro@filter`], [`macro@request_hook`], [`macro@response_hook`], [`Verdict`] |
//! | deliver events to people | [`macro@notification_sink`], [`Delivery`] |
//! | run at planned times | [`macro@scheduled_task`], [`ScheduledRun`], [`ProposedJob`] |
//! | say whose a credential is | [`macro@auth_provider`], [`Authentication`] |
//! | answer HTTP requests | [`macro@api_route`], [`ApiResponse`] |
//! | bring people's messages to the agent | [`macro@channel`], [`mod@channel`] |
//! | keep the plugins' state | [`macro@storage_backend`], [`StorageCommand`], [`StorageReply`] |
//! | offer tools that are known at run time only | [`Tool::dynamic`], [`Plugin::refresh`] |
//! | describe its arguments | [`macro@args`], [`ToolArgs`] |
//! | answer with text, data or both | [`Output`], [`Json`] |
//! | return an error, and keep secrets out of it | [`ToolError`], [`OrToolError`] |
//! | read settings, share a pool between calls | [`Plugin::config`], [`Plugin::init`] |
//! | know the deadline, cancel, block | [`Context`] |
//! | report the progress of a call | [`Context::progress`] |
//! | show what a call puts out while it runs | [`Context::output`] |
//! | tell events | [`EventSource`] |
//! | notify the host of changed tools, or of what runs of a script | [`Notifier`] |
//! | keep something between calls | [`Context::state`] |
//! | ask a language model | [`Context::model`], [`model`] |
//! | log | the `tracing` macros; `TALON_LOG=debug` shows more than `info` |
//! | test | [`testing`] |
//!
//! # How arguments arrive
//!
//! On the wire every argument is text, and beside that JSON, if the caller sent it with types. JSON is read
//! where it is there: then `"7"` is a string and `7` a number, also in a field that takes both. A tool that
//! is described by data gets it by [`Context::arguments`]. Of text, the type of each field says how to read it: integers (`3` and `3.0`),
//! floats, `true` and `false`, enum variants by name, and JSON text for lists, maps and structs. `Option` and
//! `#[serde(default)]` fields may be left out. What does not fit becomes an error answer that names the
//! argument and what was expected, before the tool runs; so does an argument the tool does not take, and a
//! key that a struct inside an argument does not have.
//!
//! Fields' doc comments become the parameters' descriptions, and bounds that the type has (a `u8`, an enum)
//! travel as JSON Schema.
//!
//! # What the SDK bounds
//!
//! Requests at 32 MiB, answers at [`MAX_RESULT_BYTES`], drain at [`DEFAULT_GRACE`]. How many calls run at
//! once is the host's to bound; a plugin runs what it is sent.

mod api;
mod args;
mod auth;
pub mod channel;
mod context;
mod dispatch;
mod error;
mod event_source;
mod hook;
mod logging;
pub mod model;
mod notices;
mod notification;
mod output;
mod output_queue;
mod plugin;
mod progress;
mod proposed_job;
mod random;
mod scheduled_run;
mod schema;
mod script_board;
mod script_status;
mod serve;
mod settings;
mod state;
mod storage;
pub mod testing;
mod text;
mod tool;

pub use api::{ApiRequest, ApiResponse, BodyEncoding};
pub use args::ToolArgs;
pub use auth::{AuthPeer, AuthRequest, Authentication};
pub use context::{Context, Credential};
pub use dispatch::MAX_RESULT_BYTES;
pub use error::{OrToolError, ToolError};
pub use event_source::{EventQueueFullError, EventReceipt, EventRefusedError, EventSource, SourceEvent};
pub use hook::{HookRequest, HookSession, Verdict};
pub use notices::Notifier;
pub use notification::{Delivery, Event, Notification, Severity};
pub use output::{IntoOutput, IntoToolResult, Json, Output};
pub use plugin::{DEFAULT_GRACE, Defects, Plugin};
pub use proposed_job::ProposedJob;
pub use scheduled_run::ScheduledRun;
pub use script_status::ScriptStatus;
pub use serve::{DescriptorError, ServeError};
pub use state::{State, StateError, StateResource, Swap};
pub use storage::{StorageBytes, StorageCommand, StorageItem, StorageReply, StorageRequest};
pub use talon_arguments::Arguments;
pub use talon_sdk_macros::{
    api_route, args, auth_provider, channel, filter, notification_sink, request_hook, response_hook,
    scheduled_task, storage_backend, tool,
};
pub use tool::Tool;

// What the attributes' output and plugins' own code need in the version that the SDK uses.
pub use schemars;
pub use serde;
pub use serde_json;
/// The messages of `opentalon.plugin.v1`.
pub use talon_proto::plugin as proto;
pub use tracing;

/// Compiles the guide's code, so that it stays true.
#[cfg(doctest)]
#[doc = include_str!("../../docs/write-a-plugin.md")]
struct Guide;
