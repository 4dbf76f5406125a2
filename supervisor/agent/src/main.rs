//! The `talon-agent` binary.

use std::process::ExitCode;

use talon_agent::run::run;
use talon_child::Program;

// A turn makes thousands of small allocations: with glibc's allocator they are a quarter of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
talon-agent lets a model use guarded tools, for Talon.

It is started by talon, which gives it a control socket as its standard input; it is not started by hand.
To talk to it, use:  talon chat --help

Options:
  -h, --help     print this
  -V, --version  print the version

Environment:
  TALON_LOG      what is logged, as JSON lines on stderr: info (the default), agent=debug";

/// What `agent` means in a log filter: the loop, and the models that it asks.
const TARGETS: &[(&str, &[&str])] = &[("agent", &["agent", "talon_agent", "talon_llm"])];

fn main() -> ExitCode {
    let program =
        Program { name: "talon-agent", version: env!("CARGO_PKG_VERSION"), help: HELP, targets: TARGETS };
    talon_child::run_program(program, run)
}
