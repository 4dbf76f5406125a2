//! The same script in another interpreter: a process that measures itself, one turn for each line that it reads.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result};

use super::script::SCRIPT;

/// Calls the hook with a new `ctx` each time, as `talon-lua` does, and writes the microseconds of a call. It begins with a line end,
/// because Lua 5.4 takes no text that begins as an option does.
const HARNESS: &str = concat!("\n", include_str!("harness.lua"));

/// A process of an interpreter.
pub(super) struct Interpreter {
    name: String,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Interpreter {
    pub(super) fn start(program: &Path, message: &str) -> Result<Self> {
        let mut child = Command::new(program)
            .args(["-e", HARNESS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let (to, from) = (child.stdin.take().context("a pipe")?, child.stdout.take().context("a pipe")?);
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut interpreter = Self { name, child, to, from: BufReader::new(from) };
        // The lengths first, and then the texts.
        writeln!(interpreter.to, "{}\n{}", SCRIPT.len(), message.len())?;
        write!(interpreter.to, "{SCRIPT}{message}")?;
        interpreter.to.flush()?;
        Ok(interpreter)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The time of one call, in microseconds.
    pub(super) fn microseconds(&mut self) -> Result<f64> {
        writeln!(self.to, "turn")?;
        self.to.flush()?;
        let mut line = String::new();
        let _ = self.from.read_line(&mut line)?;
        line.trim().parse().with_context(|| format!("{} wrote {line:?}", self.name))
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
