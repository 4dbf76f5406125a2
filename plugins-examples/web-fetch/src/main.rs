//! Fetches a web page and gives its readable text.

mod fetch;
mod nesting;
mod policy;
mod readable;
mod same_machine;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use talon_sdk::Plugin;

use crate::fetch::Fetcher;

fn main() -> ExitCode {
    Plugin::new("web-fetch")
        .description("Fetches web pages as readable text.")
        .tool(fetch::fetch())
        .init(|config| async move { Fetcher::new(config) })
        .serve()
}
