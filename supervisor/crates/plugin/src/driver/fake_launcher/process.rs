//! A process that does not exist.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use talon_sanitize::{Raw, Sanitized};
use tokio::sync::watch;

use super::alive::AliveGuard;
use super::behavior::FakeBehavior;
use crate::traits::process::ProcessHandle;

pub(crate) struct FakeProcess {
    pub(crate) instance: u32,
    pub(super) behavior: FakeBehavior,
    pub(super) exit: watch::Sender<Option<String>>,
    pub(super) killed: watch::Sender<bool>,
    /// Set once it is to exceed its budget of frames.
    pub(crate) flood: watch::Sender<bool>,
    /// The requests and signals that it received, in order.
    pub(crate) received: Mutex<Vec<&'static str>>,
    pub(super) alive: Mutex<Option<AliveGuard>>,
}

impl FakeProcess {
    /// Ends the process without being asked.
    pub(crate) fn exit(&self, how: &str) {
        self.exit.send_if_modified(|exit| {
            let first = exit.is_none();
            exit.get_or_insert_with(|| how.to_owned());
            first
        });
    }

    pub(super) fn record(&self, what: &'static str) {
        self.received.lock().push(what);
    }
}

impl ProcessHandle for FakeProcess {
    fn pid(&self) -> u32 {
        100 + self.instance
    }
    fn uid(&self) -> u32 {
        70_000
    }
    fn exited(&self) -> BoxFuture<'_, Sanitized> {
        async move {
            let mut exit = self.exit.subscribe();
            Raw::from(exit.wait_for(Option::is_some).await.unwrap().clone().unwrap()).line()
        }
        .boxed()
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        async move {
            self.exited().await;
            self.killed.subscribe().wait_for(|killed| *killed).await.unwrap();
            *self.alive.lock() = None;
        }
        .boxed()
    }
    fn interrupt(&self) {
        self.record("SIGINT");
        if self.behavior.heeds_signals {
            self.exit("killed by SIGINT");
        }
    }
    fn terminate(&self) {
        self.record("SIGTERM");
        if self.behavior.heeds_signals {
            self.exit("killed by SIGTERM");
        }
    }
    fn kill_all(&self) {
        self.record("SIGKILL");
        self.exit("killed by SIGKILL");
        self.killed.send_replace(true);
    }
}
