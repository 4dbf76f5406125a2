//! Lists, reads and writes files below one directory, and never outside it.

mod list;
mod read;
mod root;
mod write;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::root::{Config, Root};

fn main() -> ExitCode {
    Plugin::new("files")
        .description("Lists, reads and writes the files of one directory tree.")
        .tools([list::list(), read::read(), write::write().destructive(true)])
        .init(|config: Config| async move { Root::open(&config.root) })
        .serve()
}
