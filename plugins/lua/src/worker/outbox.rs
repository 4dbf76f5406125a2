//! The way back to the plugin.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::frame;
use crate::message::{FromWorker, MachineId, WorkerMessage};

/// The way back to the plugin.
#[derive(Clone)]
pub(super) struct Outbox(Arc<Mutex<UnixStream>>);

impl Outbox {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// A plugin that is gone ends the worker by the end of its input; nothing is to be done here.
    pub(super) fn tell(&self, machine: MachineId, message: WorkerMessage) {
        let _ = frame::write(&mut *self.0.lock(), &FromWorker { machine, message });
    }
}
