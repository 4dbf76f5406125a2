//! A pipe between two processes, read line by line: the minimum for reading a plugin's log.

use std::io::BufRead as _;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::Mutex;

use crate::content;
use crate::guarded::LINES;
use crate::load::Caller;

/// Writes as many lines as each number says, as the plugin does.
pub(super) fn write() -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        content::log(line?.parse()?)?;
    }
    Ok(())
}

/// Reads them and discards them.
#[derive(Clone)]
pub(super) struct Reader(Arc<Mutex<Pipes>>);

struct Pipes {
    input: ChildStdin,
    lines: Lines<BufReader<ChildStderr>>,
    _child: Child,
}

impl Reader {
    pub(super) fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("pipe-writer")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("stdin is piped")?;
        let lines = BufReader::new(child.stderr.take().context("stderr is piped")?).lines();
        Ok(Self(Arc::new(Mutex::new(Pipes { input, lines, _child: child }))))
    }
}

impl Caller for Reader {
    async fn call(&mut self, _: usize) -> Result<()> {
        let mut pipes = self.0.lock().await;
        pipes.input.write_all(format!("{LINES}\n").as_bytes()).await?;
        for _ in 0..LINES {
            pipes.lines.next_line().await?.context("the writer ended")?;
        }
        Ok(())
    }
}
