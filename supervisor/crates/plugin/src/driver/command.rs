//! What a driver can be asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::handover::InstanceCounters;
use crate::lifecycle::event::MachineEvent;
use crate::traits::process::ProcessHandle;

/// Commands for a driver, from an operator or from the registry.
pub(crate) enum Command {
    /// An event for the machine; answered once its actions have begun and the status is published. Boxed,
    /// because every driver allocates a block of commands at its start, and events are by far the largest.
    Event(Box<MachineEvent>, oneshot::Sender<()>),
    /// Stop for good: a later start is refused. Answered like `Event`; an `Event` after it is never answered.
    Retire { grace: Option<Duration>, done: oneshot::Sender<()> },
    /// End the task, and with it the process, if there still is one. If the launcher has released its
    /// processes, the process keeps running, because another supervisor owns it.
    End,
    /// Answered between two events if the driver responds.
    Ping(oneshot::Sender<()>),
    /// Return what another supervisor needs to take over the process; `None` if it is not ready.
    ReadyProcess(oneshot::Sender<Option<ReadyProcess>>),
}

/// A ready process and the counters of its instance.
pub(crate) struct ReadyProcess {
    pub(crate) instance: u32,
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) counted: InstanceCounters,
}
