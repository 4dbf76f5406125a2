//! Runs the command line.

use std::process::{Output, Stdio};

use tokio::process::Command;

use crate::scratch::program;
use crate::spawn::WAIT_TIMEOUT;

/// Runs the command line.
pub async fn cli(args: &[&str]) -> Output {
    cli_with(args, &[]).await
}

/// Runs the command line with variables in its environment.
///
/// # Panics
/// When it does not end.
pub async fn cli_with(args: &[&str], env: &[(&str, &str)]) -> Output {
    let run = Command::new(program("talon"))
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    tokio::time::timeout(WAIT_TIMEOUT, run).await.expect("the command ends").expect("talon starts")
}
