//! The `talon` binary.
//!
//! | module | contents |
//! |---|---|
//! | `command_line` | which verbs there are, and the call of each |
//! | `local` | verbs that do their work in this process, with the supervisor's library; `serve` is the supervisor |
//! | `client` | verbs that ask a running supervisor over `host.sock`, or its agent over `agent.sock` |
//! | `host_socket` | where the running supervisor's socket is |
//! | `user_supervisor` | starts one for this user, where there is none |
//! | `output`, `line`, `table`, `wrap`, `generated` | what is printed |
//! | `answer`, `json`, `show` | the messages of the host API, for people and for programs |
//! | `failure`, `exit` | why a verb failed, and the exit codes |
//! | `global`, `arguments`, `input`, `confirm` | what verbs share of their options, inputs and questions |
//! | `history_file` | what a person typed into a line editor |
//! | `terminal_style` | screen readers, and terminals without UTF-8 |
//! | `bottom_row` | the last row of the terminal, for what is typed meanwhile |
//! | `transient_bar` | bars and spinners while a verb works |
//! | `schedule` | the verbs about schedules, of which one needs no supervisor |
//! | `runtime`, `signals` | how verbs run, and what ends them |

mod answer;
mod arguments;
mod bottom_row;
mod client;
mod command_line;
mod confirm;
mod exit;
mod failure;
mod generated;
mod global;
mod history_file;
mod host_socket;
mod input;
mod json;
mod line;
mod local;
mod output;
mod runtime;
mod schedule;
mod script_table;
mod show;
mod signals;
mod table;
mod terminal_style;
mod transient_bar;
mod user_supervisor;
mod wrap;

use std::process::ExitCode;

// Measured with 64 KiB answers, mimalloc allows three times the calls per second of glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The jail's first stage is this same executable under another name. It must run before any thread is
    // started.
    talon_jail::become_stage_if_asked();
    // `serve` and others with a log replace it by one that logs.
    talon_sanitize::print_panics_sanitized();
    command_line::main()
}
