//! Busy neighbours: processes that do nothing but burn CPU. Beside them a run measures the ratios of the
//! goals once more, because a supervisor that wins on idle cores can lose where none is idle.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::driver::cpu_seconds;
use crate::worker;

/// How many run at once. The number is fixed, so that runs on one machine are comparable. Four are two for
/// each core of the smallest machine that Talon is measured on; with the contenders the load is then 5 to 10,
/// as beside a compiler.
pub const NEIGHBOURS: usize = 4;

/// Appended to the name of a case that was measured beside them.
pub const CONDITION: &str = ", beside busy neighbours";

/// The neighbours' side: burns one core's time until standard input ends. It ends when the parent does,
/// however that ends.
///
/// # Errors
/// If standard output or input fails.
pub fn burn() -> Result<()> {
    std::thread::spawn(|| {
        let mut value = 1_u64;
        loop {
            value = std::hint::black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    });
    worker::ready()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Running neighbours; they end when this is dropped.
#[derive(Debug)]
pub struct Neighbours {
    processes: Vec<Child>,
    began: Instant,
}

impl Neighbours {
    /// Starts `count` times what `command` makes, and waits until each one burns.
    ///
    /// # Errors
    /// If one of them does not start; its output is on stderr.
    pub fn start(count: usize, command: impl Fn() -> Command) -> Result<Self> {
        let mut neighbours = Self { processes: Vec::new(), began: Instant::now() };
        for _ in 0..count {
            let child = command()
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .context("cannot start a busy neighbour")?;
            neighbours.processes.push(child);
        }
        for child in &mut neighbours.processes {
            let stdout = child.stdout.take().context("stdout is piped")?;
            let read = BufReader::new(stdout).read_line(&mut String::new())?;
            ensure!(read > 0, "a busy neighbour ended at once; see above");
        }
        neighbours.began = Instant::now();
        Ok(neighbours)
    }

    /// Ends them, and returns how many cores they took while they ran: the proof that the machine was busy.
    ///
    /// # Errors
    /// If one of them ended before, because then the figures beside it are those of a quieter machine.
    pub fn end(mut self) -> Result<f64> {
        let mut seconds = 0.0;
        for child in &mut self.processes {
            let ended = child.try_wait()?;
            ensure!(ended.is_none(), "a busy neighbour ended before the suite did ({ended:?})");
            seconds += cpu_seconds(child.id()).context("its CPU time is in /proc")?;
        }
        Ok(seconds / self.began.elapsed().as_secs_f64())
    }

    /// Their process ids.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.processes {
            // It is our child and reaped here; an error cannot be handled.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
