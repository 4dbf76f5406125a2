//! The driver's own side: reads a load as a line of JSON from stdin, and writes its result as a line of JSON
//! to stdout.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};

use crate::load::{self, Caller, Load};

/// Reports that it is ready, then runs each load that it reads, until the end of its input.
///
/// # Errors
/// Why a call failed; the driver's parent reads it from stderr.
pub async fn serve<C: Caller>(caller: C) -> Result<()> {
    ready()?;
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let load: Load = serde_json::from_str(&line).with_context(|| format!("no load: {line}"))?;
        write_line(&load::run(&caller, load).await?)?;
    }
    Ok(())
}

/// Tells the parent that it may begin.
pub(crate) fn ready() -> Result<()> {
    write_line(&serde_json::json!({"ready": true}))
}

pub(crate) fn write_line(what: &impl serde::Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(what)?)?;
    Ok(out.flush()?)
}

/// Read on a separate thread: between two loads a driver is idle, and its runtime sleeps.
pub(crate) fn lines() -> tokio::sync::mpsc::Receiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
