//! A command line of the demo.

use std::process::Output;

use anyhow::Result;
use talon_harness::Supervisor;

pub(crate) async fn cli(supervisor: &Supervisor, args: &[&str]) -> Result<Output> {
    Ok(supervisor.cli(args).await)
}

pub(crate) fn text(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text
}
