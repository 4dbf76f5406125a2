//! The `talon-gateway` binary.

use std::process::ExitCode;

use talon_child::Program;
use talon_gateway::run;

const HELP: &str = "\
talon-gateway serves HTTP for Talon: browsers, channels and programs reach the agent through it.

It is started by talon, which gives it a control socket as its standard input; it is not started by hand.
To use it, set gateway.enabled in Talon's configuration.

Options:
  -h, --help     print this
  -V, --version  print the version

Environment:
  TALON_LOG      what is logged, as JSON lines on stderr: info (the default), gateway=debug";

/// What `gateway` means in a log filter: this program, and the HTTP server below it.
const TARGETS: &[(&str, &[&str])] = &[("gateway", &["talon_gateway", "tower_http"])];

fn main() -> ExitCode {
    let program =
        Program { name: "talon-gateway", version: env!("CARGO_PKG_VERSION"), help: HELP, targets: TARGETS };
    talon_child::run_program(program, run)
}
