//! Ends this process when a script is in one long operation, which no limit of the machine reaches: a worker of the plugin is ended
//! from outside then, and here nobody is outside.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// How much longer than its limits a step may take. What the machine ends itself is over some milliseconds after the limit; a second
/// is for a busy computer.
const GRACE: Duration = Duration::from_secs(1);

/// What is under way, and how long it may take.
struct Step {
    what: String,
    limit: Duration,
}

/// Watches one step after the other.
pub(super) struct Watchdog(Sender<Step>);

impl Watchdog {
    pub(super) fn start() -> Result<Self, String> {
        let (steps, begun) = mpsc::channel::<Step>();
        let watch = move || {
            let Ok(mut step) = begun.recv() else { return };
            loop {
                match begun.recv_timeout(step.limit) {
                    Ok(next) => step = next,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!(
                            "{}: the time limit passed in one long operation, such as string.find of plain text: let it do less",
                            step.what
                        );
                        process::exit(1);
                    }
                }
            }
        };
        let started = std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch);
        let _ = started.map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(Self(steps))
    }

    /// A step begins, whose limits of time are so long together.
    pub(super) fn begin(&self, what: &str, limits: Duration) {
        let limit = limits.saturating_add(GRACE);
        // Without the thread there is nobody to tell.
        let _ = self.0.send(Step { what: what.to_owned(), limit });
    }
}
