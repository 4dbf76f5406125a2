//! The agent: an explicit state machine that lets a model use guarded tools.
//!
//! The deciding code is pure: no IO, no clock, and only typed errors. A driver performs the decisions and
//! reports facts.
//!
//! Pure:
//!
//! - [`machine`]: states, events, the table of transitions, and [`machine::Turn`], which takes facts
//! - [`loop_context`]: the context of a turn, and whether a limit of its [`budget`] is reached
//! - [`tool_result`]: the result of a call; [`progress`] compares calls and results
//! - [`question`]: what a model or a plugin asks the person
//! - [`answer`]: whether a final answer is valid
//! - [`tools`]: the tools offered to a model, and its calls
//! - [`tokens`]: texts counted and cut in tokens; [`fence`]: data in a prompt
//! - [`prompt`]: the system prompt
//! - [`context`]: what a model sees of a session
//!
//! With IO:
//!
//! - [`journal`]: a session's entries and their place in the store; [`plan`]: its plan, likewise
//! - [`compress`]: the running summary
//! - [`driver`]: performs effects, and defines the traits for everything else outside
//! - [`hooks`]: filters and hooks around a turn
//! - [`plugin_calls`]: calls of plugins in flight, to which their completions are charged
//! - [`host_client`], [`approval`], [`recall`], [`subagent`]: implementations of these traits
//! - [`media`], [`media_store`]: which images and files are taken, and where their bytes are
//! - [`traces`]: spans of turns, for the supervisor's collector
//! - [`workspace`]: reads the person's files for the prompt
//! - `jobs`, `schedule`: jobs that run at planned times; `proposals`: those that plugins would like to have
//! - `notify`: events, told to people through actions
//! - `channels`: people on chat services, through plugins
//! - `shadow`: observations of people's work, and the ghosts that come of them
//! - `retention`: what is written of sessions before they are deleted for their age
//! - `operations`: what is changed, on its way to the supervisor's audit log
//! - `events`: what happens in sessions, for clients that follow; `bus`: what is emitted on the event bus
//! - `turns`: the running turns; `agent`: the shared state, which starts them; [`costs`] and [`metrics`]
//! - `completions`: the service for plugins that ask models
//! - `serve`: the service for clients; [`run`]: the process

mod agent;
pub mod answer;
pub mod approval;
pub mod budget;
mod bus;
mod cache_key;
mod channels;
mod completions;
pub mod compress;
pub mod context;
pub mod costs;
pub mod driver;
pub mod embeddings;
mod error_status;
mod events;
pub mod fence;
mod fusion;
pub mod hooks;
pub mod host_client;
mod jobs;
pub mod journal;
pub mod loop_context;
pub mod machine;
pub mod media;
pub mod media_store;
pub mod metrics;
mod notify;
mod operations;
pub mod originals;
pub mod plan;
pub mod plugin_calls;
pub mod progress;
pub mod prompt;
mod proposals;
pub mod question;
pub mod recall;
mod retention;
pub mod run;
mod schedule;
mod serve;
mod shadow;
mod stateless;
mod stop_sequences;
pub mod subagent;
pub mod tokens;
pub mod tool_result;
pub mod tools;
pub mod traces;
mod turns;
pub mod workspace;
