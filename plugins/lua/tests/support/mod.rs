//! The program under the SDK's mock host, with scripts in a directory.
#![allow(dead_code, clippy::allow_attributes, reason = "each test binary uses a part of it")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use talon_sdk::testing::{Answer, Host, MemoryState};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_talon-lua");

/// Writes a script as editors do: beside, and then in its place.
pub(crate) fn write(dir: &Path, name: &str, source: impl AsRef<[u8]>) {
    let beside = dir.join(format!("{name}.new"));
    fs::write(&beside, source).expect("written");
    fs::rename(beside, dir.join(name)).expect("renamed");
}

pub(crate) fn scripts(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().expect("a directory");
    for (name, source) in files {
        write(dir.path(), name, source);
    }
    dir
}

pub(crate) async fn launch(dir: &Path, further: Value) -> Host {
    let mut config = json!({ "scripts_dir": dir });
    let (Value::Object(config_members), Value::Object(further)) = (&mut config, further) else {
        panic!("objects")
    };
    config_members.extend(further);
    let host =
        Host::builder(PROGRAM).config(config).state(&MemoryState::new()).launch().await.expect("it launches");
    // What it offers depends on its settings, and is made when a host asks.
    let _ = host.capabilities().await.expect("it has some");
    host
}

pub(crate) async fn hook(host: &Host, action: &str, message: &str) -> Answer {
    host.call_within(action, json!({ "message": message }), Duration::from_secs(60))
        .await
        .expect("it answers")
}

/// What it says is wrong; nothing if nothing is.
pub(crate) fn error(answer: &Answer) -> &str {
    answer.error.as_deref().unwrap_or_default()
}

pub(crate) async fn status(host: &Host) -> Value {
    host.call("status", json!({})).await.expect("it answers").structured.expect("data")
}

/// How long a condition is waited for.
pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// Asks until the answer is as wanted, and shows the last one if it never is.
pub(crate) async fn until<T: std::fmt::Debug>(ask: impl AsyncFn() -> T, wanted: impl Fn(&T) -> bool) -> T {
    let end = tokio::time::Instant::now() + WAIT;
    loop {
        let answer = ask().await;
        if wanted(&answer) {
            return answer;
        }
        assert!(tokio::time::Instant::now() < end, "not within {WAIT:?}; the last answer: {answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(crate) async fn wait_for(host: &Host, wanted: impl Fn(&Value) -> bool) -> Value {
    until(async || status(host).await, wanted).await
}
