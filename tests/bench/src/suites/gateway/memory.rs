//! The resident memory of the gateway's process: idle, after load, and with a thousand streams.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::contenders::GATEWAY;
use super::system::System;
use crate::figures::Unit;
use crate::process_stats::resident_mib;
use crate::stock::completions::MODEL;
use crate::stock::model::SLOWLY;
use crate::suites::Bench;

/// Streams at once.
const STREAMS: usize = 1000;
/// Only a limit for hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pieces of a stream, one a second: more than the measurement lasts.
const PIECES: usize = 3600;

/// Before anybody asked it anything.
pub(super) async fn idle(bench: &mut Bench<'_>, system: &System) -> Result<()> {
    let memory = resident_mib(system.gateway_pid().await)?;
    bench.book.case("gateway/memory", None).add(GATEWAY, "idle", Unit::Mebibytes, memory);
    Ok(())
}

/// After the load of the rates, and while a thousand answers come, each a piece a second.
pub(super) async fn with_streams(bench: &mut Bench<'_>, system: &System) -> Result<()> {
    bench.progress.set_message(format!("gateway, {STREAMS} streams"));
    let pid = system.gateway_pid().await;
    let after_load = resident_mib(pid)?;
    let mut streams = Vec::with_capacity(STREAMS);
    for _ in 0..STREAMS {
        streams.push(stream(system.gateway, &system.token).await?);
    }
    for stream in &mut streams {
        timeout(PATIENCE, read_until(stream, "\"content\":\"the "))
            .await
            .context("a stream says nothing")??;
    }
    let memory = resident_mib(pid)?;
    let mut page = bench.book.case("gateway/memory", None);
    page.add(GATEWAY, "after load", Unit::Mebibytes, after_load);
    page.add(GATEWAY, "1,000 streams", Unit::Mebibytes, memory);
    Ok(())
}

async fn stream(address: SocketAddr, token: &str) -> Result<TcpStream> {
    let body = json!({"model": MODEL, "stream": true,
        "messages": [{"role": "user", "content": format!("{SLOWLY}, pieces={PIECES}")}]})
    .to_string();
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

async fn read_until(stream: &mut TcpStream, wanted: &str) -> Result<()> {
    let mut said = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut said).await? > 0, "it ended: {}", String::from_utf8_lossy(&said));
        if String::from_utf8_lossy(&said).contains(wanted) {
            return Ok(());
        }
    }
}
