//! Calls during a change, and replacing programs under a plugin's name.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use talon_proto::host::Outcome;
use tokio::task::JoinSet;

use talon_harness::Client;

/// Callers that call one plugin as fast as it answers, until they are stopped.
#[derive(Debug)]
pub struct Traffic {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    callers: JoinSet<Vec<String>>,
}

impl Traffic {
    /// This many callers of an action that takes some milliseconds, so that calls are in flight at every
    /// moment.
    #[must_use]
    pub fn start(client: &Client, plugin: &'static str, callers: usize) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut set = JoinSet::new();
        for caller in 0..callers {
            let (client, stop, answered) = (client.clone(), stop.clone(), answered.clone());
            set.spawn(async move {
                let mut failures = Vec::new();
                let mut number = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    let text = format!("{caller}.{number}");
                    match client.try_call(plugin, "slow", &[("ms", "5"), ("text", &text)]).await {
                        Ok(answer)
                            if answer.outcome() == Outcome::Ok
                                && answer.content == format!("slow {text}") =>
                        {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        other => failures.push(format!("{text}: {other:?}")),
                    }
                }
                failures
            });
        }
        Self { stop, answered, callers: set }
    }

    /// The number of calls answered so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits for this many more answers, so that calls certainly took place during a change.
    pub async fn wait_more(&self, calls: u64) {
        let wanted = self.answered() + calls;
        talon_harness::until("more answers", || self.answered() >= wanted).await;
    }

    /// Stops it; returns the number of answered calls, and the errors of the others.
    ///
    /// # Panics
    /// When a caller did.
    pub async fn end(mut self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        while let Some(caller) = self.callers.join_next().await {
            failures.extend(caller.expect("no caller panics"));
        }
        (self.answered(), failures)
    }
}

/// Puts another program under a name as a careful installer does: written next to it, then renamed. Bytes
/// after the end of a program make it a different file that does the same.
///
/// # Panics
/// When the directory cannot be written.
pub fn install_over(path: &Path, program: &Path, mark: &str) {
    let mut bytes = std::fs::read(program).expect("the program can be read");
    bytes.extend(mark.as_bytes());
    install_bytes_over(path, &bytes);
}

/// The same with a script's text.
///
/// # Panics
/// When the directory cannot be written.
pub fn install_script_over(path: &Path, text: &str) {
    install_bytes_over(path, text.as_bytes());
}

fn install_bytes_over(path: &Path, bytes: &[u8]) {
    let name = path.file_name().expect("a program has a name").to_string_lossy();
    // Hidden, because discovery skips hidden files and this one is incomplete.
    let beside = path.with_file_name(format!(".{name}.new"));
    std::fs::write(&beside, bytes).expect("the directory takes files");
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).expect("it is our own file");
    std::fs::rename(&beside, path).expect("it stays in its directory");
}
