//! Shows on stderr what a plugin logs while `talon exec` runs it.

use std::time::Duration;

use talon_plugin::logs::Stream;
use talon_plugin::{LogLine, Plugin};
use talon_sanitize::inert;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::output::write_stderr;

/// How long the last lines of a plugin that has ended may take; they are in memory already.
const LAST_LINES_WAIT: Duration = Duration::from_millis(500);

/// The task that shows the lines.
pub(super) struct Echo {
    task: JoinHandle<()>,
    done: CancellationToken,
}

impl Echo {
    pub(super) fn start(plugin: &Plugin) -> Self {
        let tail = plugin.logs();
        let done = CancellationToken::new();
        let ended = done.clone();
        let task = tokio::spawn(async move {
            for line in &tail.recent {
                show(line);
            }
            let mut live = tail.live;
            loop {
                // Lines before the end: what is there when the plugin is gone is still shown.
                let next = tokio::select! {
                    biased;
                    next = live.recv() => next,
                    () = ended.cancelled() => return,
                };
                match next {
                    Ok(line) => show(&line),
                    Err(RecvError::Lagged(count)) => {
                        write_stderr(inert!("… {} lines are missing here", count), false)
                    }
                    Err(RecvError::Closed) => return,
                }
            }
        });
        Self { task, done }
    }

    /// Shows what is left; the plugin has ended.
    pub(super) async fn finish(&mut self) {
        self.done.cancel();
        // A stderr that takes no more lines must not hold up the end.
        let _ = tokio::time::timeout(LAST_LINES_WAIT, &mut self.task).await;
    }
}

fn show(line: &LogLine) {
    // Talon's own remarks are about restarts and processes, of which there are none to speak of here.
    if line.stream != Stream::Supervisor {
        write_stderr(inert!("{}: {}", line.plugin, line.text), false);
    }
}
