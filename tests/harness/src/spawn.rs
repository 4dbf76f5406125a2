//! Starts a `talon serve`, collects its log, and waits until it answers.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::Client;

/// Only a limit for hangs, not an expectation of speed.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts it, with a reader of its log.
pub(crate) fn spawn(mut command: Command, log: &Arc<Mutex<String>>) -> (Child, tokio::task::JoinHandle<()>) {
    let says = command.as_std().get_envs().any(|(name, _)| name == "TALON_LOG");
    if !says {
        command.env("TALON_LOG", "info");
    }
    let mut child = command
        .env_remove("XDG_RUNTIME_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("talon starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    let kept = log.clone();
    let reader = tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            let mut kept = kept.lock();
            kept.push_str(&line);
            kept.push('\n');
        }
    });
    (child, reader)
}

/// There is no notification of a new socket: connects until it answers or the
/// process has ended.
pub(crate) async fn connect(socket: &Path, child: &mut Child) -> Option<Client> {
    let mut pause = tokio::time::interval(Duration::from_millis(10));
    loop {
        if let Ok(client) = Client::connect(socket).await {
            return Some(client);
        }
        if matches!(child.try_wait(), Ok(Some(_))) {
            return None;
        }
        pause.tick().await;
    }
}

/// There is no notification of a log line: polls until it is there.
pub(crate) async fn wait_for_log(log: &Mutex<String>, text: &str) {
    let looks = async {
        let mut pause = tokio::time::interval(Duration::from_millis(10));
        while !log.lock().contains(text) {
            pause.tick().await;
        }
    };
    if tokio::time::timeout(WAIT_TIMEOUT, looks).await.is_err() {
        panic!("{text:?} was not logged:\n{}", log.lock());
    }
}
