//! An MCP client over pipes that sends exactly what a test wants, line by line.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use talon_harness::{Supervisor, program};

/// Only a limit for hangs, not an expectation of speed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A running `talon mcp`.
#[derive(Debug)]
pub struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    unread: VecDeque<Value>,
    last_id: u64,
}

impl Mcp {
    /// `talon mcp` for the client of a running supervisor.
    pub fn of(supervisor: &Supervisor, args: &[&str]) -> Self {
        let socket = supervisor.socket();
        let socket = socket.to_str().expect("our paths are text");
        let words: Vec<&str> = ["--socket", socket, "mcp"].into_iter().chain(args.iter().copied()).collect();
        Self::with(&words, &[])
    }

    /// `talon` with these arguments and variables.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn with(words: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(program("talon"))
            .args(words)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("talon starts");
        let output = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { input: child.stdin.take(), child, output, unread: VecDeque::new(), last_id: 0 }
    }

    /// Its process.
    ///
    /// # Panics
    /// When it was waited for.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends one line.
    ///
    /// # Panics
    /// When it takes none.
    pub async fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }

    /// Sends a message.
    pub async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request and returns its id.
    pub async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// The next message that satisfies the predicate; the others stay.
    ///
    /// # Panics
    /// When none comes, or what comes is no JSON-RPC.
    pub async fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&wanted) {
            return self.unread.remove(at).expect("it was just found");
        }
        let next = async {
            loop {
                let line = self.output.next_line().await.expect("its output is UTF-8");
                let line = line.unwrap_or_else(|| panic!("it ended before {what}: {:?}", self.unread));
                let message: Value =
                    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
                assert_eq!(message["jsonrpc"], "2.0", "{message}");
                if wanted(&message) {
                    return message;
                }
                self.unread.push_back(message);
            }
        };
        match tokio::time::timeout(WAIT_TIMEOUT, next).await {
            Ok(message) => message,
            Err(_) => panic!("there was no {what}"),
        }
    }

    /// Waits for a notification.
    pub async fn notified(&mut self, method: &str) -> Value {
        self.wait(method, |message| message["method"] == method).await
    }

    /// Waits for the answer to a request.
    pub async fn answer(&mut self, id: u64) -> Value {
        self.wait("answer", |message| message["id"] == id && message.get("method").is_none()).await
    }

    /// Sends a request and waits for the result.
    ///
    /// # Panics
    /// When it is an error.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        let mut answer = self.answer(id).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Sends `initialize` as clients do up to 2025-11-25.
    pub async fn initialize(&mut self, version: &str) -> Value {
        let about = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let result = self.result("initialize", about).await;
        self.notify("notifications/initialized", json!({})).await;
        result
    }

    /// The names of all tools.
    ///
    /// # Panics
    /// When the list is invalid.
    pub async fn tool_names(&mut self) -> Vec<String> {
        let list = self.result("tools/list", json!({})).await;
        let tools = list["tools"].as_array().expect("a list").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Waits until the names of the tools satisfy the predicate. It lists them at each change notification:
    /// one change may come in several steps.
    pub async fn until_tools(&mut self, wanted: impl Fn(&[String]) -> bool) {
        loop {
            self.notified("notifications/tools/list_changed").await;
            if wanted(&self.tool_names().await) {
                return;
            }
        }
    }

    /// Calls a tool.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Closes its input and waits for its end; returns its exit status and its stderr.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn close(mut self) -> (std::process::ExitStatus, String) {
        drop(self.input.take());
        let mut said = String::new();
        let mut errors = self.child.stderr.take().expect("it is piped");
        let ended = async {
            let status = self.child.wait().await.expect("it is ours");
            // A supervisor that it started may hold its stderr a moment longer.
            errors.read_to_string(&mut said).await.expect("its log is text");
            status
        };
        let status = tokio::time::timeout(WAIT_TIMEOUT, ended).await.expect("it ends with its input");
        (status, said)
    }

    /// Kills it.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it is ours");
    }
}

/// The `_meta` that every request carries from 2026-07-28 on, with additional fields.
#[must_use]
pub fn meta(more: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    if let (Value::Object(meta), Value::Object(more)) = (&mut meta, more) {
        meta.extend(more);
    }
    meta
}
