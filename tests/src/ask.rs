//! Shared by the tests of the agent: a configuration with a provider on loopback, and the result of
//! `talon ask` as a value.

use std::process::Output;

use serde_json::Value;

use crate::provider::Provider;
use crate::{Builder, Supervisor};

/// The model that the tests use.
pub const MODEL: &str = "local/test";

/// Adds an agent that asks this provider. `agent` and `models` are more lines of those sections, indented by
/// two.
#[must_use]
pub fn with_agent(builder: Builder, provider: &Provider, agent: &str, models: &str) -> Builder {
    let url = provider.url();
    builder.config(&format!(
        "agent:\n  enabled: true\n{agent}\nmodels:\n{models}\n  providers:\n    local: {{ kind: openai, base_url: \"{url}\" }}\n  \
         catalog:\n    {MODEL}: {{ tier: mid, context_window: 128000, tools: true, free: true }}\n"
    ))
}

/// One turn through the command line.
#[derive(Debug)]
pub struct AskResult {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output, as JSON.
    pub said: Value,
    /// Its standard error.
    pub stderr: String,
}

impl AskResult {
    /// The result of a command with `--output json`.
    #[must_use]
    pub fn of(output: &Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout);
        Self {
            code: output.status.code(),
            said: serde_json::from_str(&stdout).unwrap_or_else(|_| Value::String(stdout.into_owned())),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A field as text; empty if it is missing.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.said.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Asks, with more arguments after the question.
pub async fn ask(supervisor: &Supervisor, question: &str, more: &[&str]) -> AskResult {
    let arguments = [&["ask", question, "--output", "json"], more].concat();
    AskResult::of(&supervisor.cli(&arguments).await)
}

/// Makes a directory readable for every user: plugins run under separate uids.
///
/// # Panics
/// When it is not ours.
pub fn make_readable(directory: &std::path::Path) {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory, open).expect("it is ours");
}

/// Shows a session, once it contains this text.
///
/// # Panics
/// When it does not for a long time.
pub async fn wait_session_text(supervisor: &Supervisor, session: &str, text: &str) -> String {
    let mut last = String::new();
    for _ in 0..600 {
        let output = supervisor.cli(&["session", "show", session]).await;
        last = String::from_utf8_lossy(&output.stdout).into_owned();
        if last.contains(text) {
            return last;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("session {session} never held {text:?}: {last}")
}
