//! Runs Lua scripts: as filters and hooks, notification sinks and scheduled tasks.
//!
//! One program, two kinds of processes. The plugin serves Talon, reads the directory of scripts, and keeps what scripts store. Its
//! workers run the scripts, since only a process can be ended while it is in the middle of one long operation. A worker holds
//! nothing but a socket to the plugin.
//!
//! | module | content |
//! |---|---|
//! | `message`, `frame` | what plugin and worker tell each other |
//! | `worker` | the process that runs scripts: a thread and a machine for each |
//! | `pool` | the workers, from the plugin's side: which script is where, calls, and when a worker is ended |
//! | `scripts` | the directory: what is read, what is loaded, what replaces what |
//! | `host_requests` | what scripts ask for: key-values, a model, the log |
//! | `plugin`, `service` | what the host sees; what it stands on |
//! | `reporter` | what runs of each script, told to the host |
//! | `actions` | the scripts' functions as actions in roles |
//! | `tools` | the commands for authors: `check`, `run`, `test`, `repl` |

mod actions;
mod counters;
mod frame;
mod host_requests;
mod message;
mod plugin;
mod pool;
mod reporter;
mod scripts;
mod service;
mod settings;
mod tools;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == worker::ARGUMENT => worker::run(),
        Some(_) => tools::run(),
        None => plugin::serve(),
    }
}
