//! The parent's side of a load driver: sends it one load after the other, and reads its CPU time together
//! with that of all processes that it calls.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::load::{Load, Outcome};

/// One contender of the call suites.
pub struct Driver {
    /// Its name in the tables.
    pub name: &'static str,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The process ids of its servers, whose CPU time is added to its own. Their descendants count, too.
    servers: Vec<u32>,
    /// Dropped together with the driver.
    _held: Box<dyn std::any::Any>,
}

/// The result of a load, and its cost.
#[derive(Debug, Clone, Copy)]
pub struct LoadResult {
    /// What the driver measured.
    pub outcome: Outcome,
    /// CPU time of the driver and all it calls, in microseconds a call.
    pub cpu_us_per_call: f64,
}

impl Driver {
    /// Starts `command` as a driver and waits until it is ready. `held` is dropped after it has ended.
    ///
    /// # Errors
    /// If it does not get ready; its output is on stderr.
    pub fn start(
        name: &'static str,
        command: &mut Command,
        servers: Vec<u32>,
        held: impl std::any::Any,
    ) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{}: cannot start {:?}", name, command.get_program()))?;
        let stdin = child.stdin.take().context("stdin is piped")?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut driver = Self { name, child, stdin, stdout, servers, _held: Box::new(held) };
        driver.line()?;
        Ok(driver)
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs a load and waits for its end.
    ///
    /// # Errors
    /// If a call failed.
    pub fn run_load(&mut self, load: Load) -> Result<LoadResult> {
        let before = self.cpu_seconds();
        let line = self.ask(&serde_json::to_string(&load)?)?;
        let outcome: Outcome =
            serde_json::from_str(&line).with_context(|| format!("{}: {line}", self.name))?;
        let cpu = self.cpu_seconds() - before;
        let calls = outcome.calls + outcome.prepared;
        Ok(LoadResult { outcome, cpu_us_per_call: cpu * 1e6 / calls as f64 })
    }

    /// Sends a line to it and waits for the reply.
    ///
    /// # Errors
    /// If it ended instead.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.stdin, "{line}")?;
        self.line()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            let status = self.child.wait()?;
            bail!("{} ended ({status}); see above", self.name);
        }
        Ok(line)
    }

    /// The process ids of the driver, its servers, and all their descendants.
    #[must_use]
    pub fn all_pids(&self) -> BTreeSet<u32> {
        let roots = self.servers.iter().copied().chain([self.child.id()]);
        // A child of one of them may also be listed as a server.
        roots.flat_map(|root| std::iter::once(root).chain(talon_tests::descendants(root))).collect()
    }

    fn cpu_seconds(&self) -> f64 {
        self.all_pids().into_iter().filter_map(cpu_seconds).sum()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It is our child and reaped below; an error cannot be handled here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The CPU time of a process and of its threads that have ended, in seconds, counted by the kernel in
/// hundredths.
#[must_use]
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    /// The kernel's unit for these fields, on every machine (`USER_HZ`).
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name before these fields may hold spaces and brackets.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}
