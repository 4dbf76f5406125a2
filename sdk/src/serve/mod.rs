//! Serving a plugin: handshake, socket, gRPC, health, drain.

mod call;
mod connection;
mod drain;
mod error;
mod events;
mod handshake;
mod listen;
mod notices;
mod router;
mod server;
mod service;

#[cfg(test)]
mod tests;

use std::io;
use std::process::ExitCode;

use tokio::net::UnixListener;

use crate::{Plugin, logging};
use talon_error_chain::error_chain;

pub use error::{DescriptorError, ServeError};
pub(crate) use handshake::{APP_VERSION, COOKIE_KEY, COOKIE_VALUE, SOCKET_DIR_ENV, VERSIONS_ENV};

/// How many threads may block at once ([`Context::blocking`](crate::Context::blocking)); further work is
/// queued. More than a host's usual limit on concurrent calls.
const MAX_BLOCKING_THREADS: usize = 64;

impl Plugin {
    /// Serves the plugin until the host asks it to end: checks that a host started it, creates the socket,
    /// writes the handshake line, answers calls. Meant as the last line of `main`.
    ///
    /// SIGTERM, SIGINT and go-plugin's `Shutdown` end it: it takes no new calls, those in flight may finish
    /// within the [grace](Plugin::grace), then the process exits with 0. A plugin that cannot be served
    /// prints the reason on stderr and exits with 1.
    ///
    /// The SDK runs every call at once and leaves limits on concurrency to the host, which queues and counts;
    /// a tool that must not overlap with itself takes a lock.
    #[must_use]
    pub fn serve(self) -> ExitCode {
        let runtime = match self.threads {
            None => tokio::runtime::Builder::new_current_thread(),
            Some(threads) => {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                builder.worker_threads(threads.get());
                builder
            }
        }
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .enable_all()
        .build();
        let result = match runtime {
            Ok(runtime) => {
                let result = runtime.block_on(self.serve_async());
                // A tool's thread that never ends must not keep the process alive: its call is over.
                runtime.shutdown_background();
                result
            }
            Err(error) => Err(ServeError::Runtime(error)),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", error_chain(&error));
                ExitCode::FAILURE
            }
        }
    }

    /// Like [`serve`](Plugin::serve), on a runtime that the plugin provides. Returns when the plugin was
    /// asked to end and has drained.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub async fn serve_async(self) -> Result<(), ServeError> {
        let env = |name: &str| std::env::var_os(name);
        self.check()?;
        if !handshake::started_by_a_host(env) {
            return Err(self.not_a_plugin());
        }
        if self.logging {
            logging::install(self.log_filter);
        }
        handshake::compare_versions(env(VERSIONS_ENV));
        let listening = listen::listen(env)?;
        let stop = drain::StopSignals::install().map_err(ServeError::Runtime)?;
        let listener = UnixListener::from_std(listening.socket).map_err(ServeError::Runtime)?;
        handshake::announce(&mut io::stdout(), &listening.path).map_err(ServeError::Handshake)?;
        let result = server::run(self, listener, stop).await;
        drop(listening.file);
        result
    }

    fn not_a_plugin(&self) -> ServeError {
        let program = std::env::args().next().unwrap_or_else(|| self.name.clone());
        let actions: Vec<&str> = self.tools.iter().map(crate::Tool::name).collect();
        ServeError::NotAPlugin { program, actions: actions.join(", ") }
    }
}
