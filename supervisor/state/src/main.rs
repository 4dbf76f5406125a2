//! The `talon-state` binary.

use std::process::ExitCode;

use talon_child::Program;
use talon_state::run;

const HELP: &str = "\
talon-state keeps the state of plugins, sessions and memory for Talon.

It is started by talon, which gives it a control socket as its standard input; it is not started by hand.
To look into kept state, use:  talon state --help

Options:
  -h, --help     print this
  -V, --version  print the version

Environment:
  TALON_LOG      what is logged, as JSON lines on stderr: info (the default), talon_store=debug,info";

fn main() -> ExitCode {
    let program =
        Program { name: "talon-state", version: env!("CARGO_PKG_VERSION"), help: HELP, targets: &[] };
    talon_child::run_program(program, run)
}
