//! Translates a service of gRPC's that is not ours: that of a program made with HashiCorp's go-plugin for
//! another host.
//!
//! ```text
//! host ── gRPC (our SDK) ── talon-service-bridge ── gRPC (its own service), a unix socket ── PROGRAM
//! ```
//!
//! It is a plugin: it runs in the plugin's jail with the plugin's rights, and starts the program as its child, as
//! go-plugin's own host does. When the program ends, the bridge ends and the host restarts both; when the host
//! stops the bridge, it ends the program.
//!
//! | module | what it does |
//! |---|---|
//! | `command` | the command line of the supervisor |
//! | `handshake` | go-plugin's handshake line |
//! | `methods`, `comments` | the descriptor: methods, types, what authors wrote |
//! | `schema` | fields as parameters |
//! | `messages` | JSON to protobuf, and back |
//! | `client`, `raw_codec` | the program's socket |
//! | `output` | what it prints over the connection |
//! | `tools` | methods as tools |
//! | `run` | from the start to the end |

mod client;
mod command;
mod comments;
mod handshake;
mod messages;
mod methods;
mod output;
mod raw_codec;
mod run;
mod schema;
mod tools;

#[cfg(test)]
mod fixture;

use std::process::ExitCode;

use talon_bridge::logging;

/// The exit code for a wrong command line.
const USAGE: u8 = 2;

const HELP: &str = "\
talon-service-bridge runs a go-plugin program that serves another gRPC service as a plugin of Talon.

Usage: talon-service-bridge --descriptor PATH --service NAME [OPTION …] -- PROGRAM [ARGUMENT …]

It is started by talon, for plugins that have a descriptor.

Options:
      --descriptor PATH        a FileDescriptorSet with the service and its imports
      --service NAME           the full name of the service, such as proto.KV
      --method METHOD=ACTION   offer this method, as this action; all that do not stream, if none is named
      --cookie KEY=VALUE       the program's magic cookie
      --app-versions LIST      versions of the application protocol to offer, such as 1,2; default 1
      --health-interval-ms N, --health-timeout-ms N, --health-threshold N
                               when its health is checked, and when it is given up; default 30000, 5000, 3
  -h, --help                   print this
  -V, --version                print the version";

fn main() -> ExitCode {
    logging::log_panics();
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    match args.first().and_then(|first| first.to_str()) {
        Some("--version" | "-V") => {
            println!("talon-service-bridge {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("--help" | "-h") => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let command = match command::Command::parse(args) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(USAGE);
        }
    };
    // One thread: the program does the work.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            logging::error(format_args!("the bridge cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run::run(command))
}
