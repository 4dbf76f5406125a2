//! The `talon` binary.
//!
//! Verbs that talk to a supervisor do so over `host.sock`, like every other client, and those in `agent` over
//! `agent.sock`; `serve` is the supervisor, and `exec` runs a private one for a single call.

mod agent;
mod answer;
mod arguments;
mod audit;
mod call;
mod call_progress;
mod client;
mod command_line;
mod completions;
mod config;
mod confirm;
mod conformance;
mod doctor;
mod echo;
mod events;
mod exec;
mod exit;
mod failure;
mod generated;
mod global;
mod guard;
mod jail;
mod json;
mod line;
mod man;
mod mcp;
mod new;
mod output;
mod plugin;
mod reload;
mod runtime;
mod scratch_environment;
mod serve;
mod show;
mod socket;
mod spinner;
mod state;
mod state_transfer;
mod status;
mod stop;
mod table;
mod telemetry;
mod top;

use std::process::ExitCode;

// Measured with 64 KiB answers, mimalloc allows three times the calls per second of glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The jail's first stage is this same executable under another name. It must run before any thread is
    // started.
    talon_jail::become_stage_if_asked();
    command_line::main()
}
