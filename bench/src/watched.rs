//! One contender under a load for as long as a command looks at it: a profiler, mostly.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::contenders::Contender;
use crate::load::Load;

/// The environment variable in which the command finds the process ids, with commas in between.
const PIDS: &str = "PIDS";

/// How long a round of the load is. The command's end is noticed between two of them.
const ROUND_MILLIS: u64 = 250;

/// What is loaded, and who looks.
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
    /// Loads until the command ends, whose exit code is ours.
    ///
    /// # Errors
    /// If the contender cannot be had or a call fails.
    pub async fn run(self) -> Result<ExitCode> {
        let Some(mut driver) = self.contender.start().await? else {
            bail!("{} needs what is not here (scripts/deps.sh bench)", self.contender.name());
        };
        let load = Load { content_bytes: self.bytes, concurrency: self.callers, millis: ROUND_MILLIS };
        // Caches, pools and windows are filled before anybody looks.
        driver.make(load)?;
        let (program, arguments) = self.command.split_first().context("there is a command")?;
        let mut command = Command::new(program);
        let pids = driver.all_pids().iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut looking = command.args(arguments).env(PIDS, pids).spawn().with_context(|| program.clone())?;
        loop {
            let made = driver.make(load)?;
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
