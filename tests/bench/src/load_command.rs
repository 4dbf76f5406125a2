//! Runs one contender under load while a command runs, usually a profiler.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::contenders::Contender;
use crate::load::Load;

/// The environment variable with the process ids for the command, separated by commas.
const PIDS: &str = "PIDS";

/// The length of one round of load. The command's end is noticed between two rounds.
const ROUND_MILLIS: u64 = 250;

/// The contender, the load and the command.
#[derive(Debug, Args)]
pub struct Options {
    /// Who is called.
    contender: Contender,
    /// Bytes of content in every answer.
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    /// Callers at once.
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// What runs meanwhile; the process ids of driver, supervisor, plugin and all they started are in $PIDS.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl Options {
    /// Runs the load until the command ends, and returns its exit code.
    ///
    /// # Errors
    /// If the contender cannot be started or a call fails.
    pub async fn run(self) -> Result<ExitCode> {
        let Some(mut driver) = self.contender.start().await? else {
            bail!("{} needs what is not here (tests/scripts/deps.sh bench)", self.contender.name());
        };
        let load = Load { content_bytes: self.bytes, concurrency: self.callers, millis: ROUND_MILLIS };
        // Fills caches, pools and windows before the command starts.
        driver.run_load(load)?;
        let (program, arguments) = self.command.split_first().context("there is a command")?;
        let mut command = Command::new(program);
        let pids = driver.all_pids().iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut looking = command.args(arguments).env(PIDS, pids).spawn().with_context(|| program.clone())?;
        loop {
            let made = driver.run_load(load)?;
            if let Some(status) = looking.try_wait()? {
                eprintln!(
                    "{}: {:.0} calls a second, {:.1} µs of CPU each, beside the command",
                    self.contender.name(),
                    made.outcome.calls_per_second,
                    made.cpu_us_per_call
                );
                return Ok(status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .map_or(ExitCode::FAILURE, ExitCode::from));
            }
        }
    }
}
