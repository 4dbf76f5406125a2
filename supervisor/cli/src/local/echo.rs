//! Shows on stderr what a plugin logs while `talon exec` runs it.

use std::time::Duration;

use talon_plugin::logs::Stream;
use talon_plugin::{LogLine, Plugin};
use talon_sanitize::sanitized;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::output::write_stderr;

/// How long the last lines of an exited plugin may take; they are in memory already.
const LAST_LINES_WAIT: Duration = Duration::from_millis(500);

/// A task that prints a plugin's log lines.
pub(crate) struct Echo {
    task: JoinHandle<()>,
    done: CancellationToken,
}

impl Echo {
    pub(crate) fn start(plugin: &Plugin) -> Self {
        let tail = plugin.logs();
        let done = CancellationToken::new();
        let ended = done.clone();
        let task = tokio::spawn(async move {
            for line in &tail.recent {
                show(line);
            }
            let mut live = tail.live;
            loop {
                // Lines first: lines that are pending when the plugin exits are still printed.
                let next = tokio::select! {
                    biased;
                    next = live.recv() => next,
                    () = ended.cancelled() => return,
                };
                match next {
                    Ok(line) => show(&line),
                    Err(RecvError::Lagged(count)) => {
                        write_stderr(sanitized!("… {} lines are missing here", count), false)
                    }
                    Err(RecvError::Closed) => return,
                }
            }
        });
        Self { task, done }
    }

    /// Prints the remaining lines after the plugin has exited.
    pub(crate) async fn finish(&mut self) {
        self.done.cancel();
        // A blocked stderr must not hold up the exit.
        let _ = tokio::time::timeout(LAST_LINES_WAIT, &mut self.task).await;
    }
}

fn show(line: &LogLine) {
    // Talon's own lines are about restarts and processes, which do not matter for a single run.
    if line.stream != Stream::Supervisor {
        write_stderr(sanitized!("{}: {}", line.plugin, line.text), false);
    }
}
