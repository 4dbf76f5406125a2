//! A minimal MCP client: a line of JSON to a server's standard input, a line back from its standard output.

use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use crate::load::Caller;

/// The revision that all servers support.
const REVISION: &str = "2025-11-25";

/// How a tool is asked for this many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ArgumentKind {
    /// By their number, as `bytes`.
    Bytes,
    /// By a text of that length, as `text`, which it returns.
    Text,
}

/// One session with one server, one call at a time.
#[derive(Clone)]
pub(super) struct Session {
    pipes: Arc<Mutex<Pipes>>,
    tool: Arc<str>,
    takes: ArgumentKind,
}

struct Pipes {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    asked: u64,
    _child: Child,
}

impl Session {
    pub(super) async fn start(command: &[String], tool: String, takes: ArgumentKind) -> Result<Self> {
        let (program, arguments) = command.split_first().context("a server is a program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| program.clone())?;
        let input = child.stdin.take().context("stdin is piped")?;
        let output = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
        let mut pipes = Pipes { input, output, asked: 0, _child: child };
        let about = json!({
            "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        pipes.ask("initialize", about).await?;
        pipes.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized", "params": {} })).await?;
        Ok(Self { pipes: Arc::new(Mutex::new(pipes)), tool: tool.into(), takes })
    }
}

impl Pipes {
    async fn send(&mut self, message: &Value) -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        Ok(self.input.write_all(&line).await?)
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        loop {
            let line = self.output.next_line().await?.context("the server ended")?;
            let mut message: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
            // Notifications and requests of the server are skipped.
            if message["id"] == id && message.get("method").is_none() {
                ensure!(message.get("error").is_none(), "{method}: {message}");
                return Ok(message["result"].take());
            }
        }
    }
}

impl Caller for Session {
    async fn call(&mut self, content_bytes: usize) -> Result<()> {
        let arguments = match self.takes {
            ArgumentKind::Bytes => json!({ "bytes": content_bytes }),
            ArgumentKind::Text => json!({ "text": crate::content::text(content_bytes) }),
        };
        let call = json!({ "name": &*self.tool, "arguments": arguments });
        let result = self.pipes.lock().await.ask("tools/call", call).await?;
        let text = result["content"][0]["text"].as_str().with_context(|| format!("no text: {result}"))?;
        // Talon's answer also has the text that marks it as a plugin's.
        ensure!(
            text.len() >= content_bytes && result["isError"] != true,
            "{} bytes came: {result}",
            text.len()
        );
        Ok(())
    }
}
