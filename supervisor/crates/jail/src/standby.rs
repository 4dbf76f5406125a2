//! A standby stage: made before it is needed.
//!
//! Namespaces are the most expensive part of a start, most of all the network's, and to make a stage in them,
//! only their kinds have to be known. So a long-running supervisor keeps one stage ready for the next program
//! like the last one. It waits for its command as every stage does, and ends when its control socket is
//! closed. Only its mount namespace is made later: otherwise it would keep unmounted file systems busy, and
//! not see new mounts.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::PollFlags;

use crate::reaper;
use crate::wire::{self, NamespaceRequest, ReceiveOutcome, StageNote, StageRequest};
use crate::zygote::{Zygote, wait_ready};

/// How long an unneeded standby stage may take to send its pidfd, so that it can be reaped. That is the first
/// thing it does, so a second is a thousand times what it needs. After that, it is left to the process that
/// reaps the supervisor's orphans.
const START_TIMEOUT: Duration = Duration::from_secs(1);

/// The supervisor's endpoints of a stage's descriptors.
#[derive(Debug)]
pub(crate) struct StageEndpoints {
    pub(crate) control: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl StageEndpoints {
    /// Our endpoints, and the stage's: control socket, standard output, standard error. An error names what
    /// could not be made.
    pub(crate) fn create() -> Result<(Self, [OwnedFd; 3]), (&'static str, io::Error)> {
        let failed = |what| move |error| (what, error);
        let (control, stage_control) = wire::socket_pair().map_err(failed("control socket"))?;
        let (stdout, stage_stdout) = io::pipe().map_err(failed("pipe for its output"))?;
        let (stderr, stage_stderr) = io::pipe().map_err(failed("pipe for its errors"))?;
        let ours = Self { control, stdout: stdout.into(), stderr: stderr.into() };
        Ok((ours, [stage_control, stage_stdout.into(), stage_stderr.into()]))
    }
}

/// A stage that was requested.
#[derive(Debug)]
pub(crate) struct StartedStage {
    pub(crate) endpoints: StageEndpoints,
    /// The zygote that makes it.
    pub(crate) zygote: Arc<Zygote>,
}

impl StartedStage {
    /// Ends the stage, and has it reaped.
    pub(crate) fn discard(self) {
        let StageEndpoints { control, .. } = self.endpoints;
        let reported = wait_ready(control.as_fd(), PollFlags::IN, START_TIMEOUT).unwrap_or(false);
        let note = if reported { wire::receive::<StageNote>(&control).ok() } else { None };
        drop(control);
        if let Some(ReceiveOutcome::Packet(StageNote::Born, descriptors)) = note {
            descriptors.into_iter().for_each(reaper::reap_later);
        }
    }
}

/// The slot for one standby stage, which is used if enabled.
#[derive(Debug, Default)]
pub(crate) struct StandbySlot {
    enabled: AtomicBool,
    slot: Mutex<Option<(NamespaceRequest, StartedStage)>>,
}

impl StandbySlot {
    /// Enables the standby stage.
    pub(crate) fn enable(&self) {
        self.enabled.store(true, Ordering::Relaxed);
    }

    /// Takes the standby stage, if there is one of the requested kind.
    pub(crate) fn take(&self, call: &StageRequest) -> Option<StartedStage> {
        let requested = call.namespaces.as_ref()?;
        let (_, newborn) = self.slot.lock().take_if(|(kind, _)| kind == requested)?;
        Some(newborn)
    }

    /// The request for a standby stage that fits the next request like this one; `None` if disabled or if
    /// there is one.
    pub(crate) fn next_request(&self, call: &StageRequest) -> Option<StageRequest> {
        let namespaces = call.namespaces.clone()?;
        let wants = self.enabled.load(Ordering::Relaxed) && self.slot.lock().is_none();
        wants.then_some(StageRequest { namespaces: Some(namespaces), ahead: true })
    }

    /// Stores a standby stage, unless another thread was faster; then it is discarded.
    pub(crate) fn put(&self, call: StageRequest, newborn: StartedStage) {
        let mut place = self.slot.lock();
        match (&*place, call.namespaces) {
            (None, Some(kind)) => *place = Some((kind, newborn)),
            _ => {
                drop(place);
                newborn.discard();
            }
        }
    }
}

impl Drop for StandbySlot {
    fn drop(&mut self) {
        if let Some((_, newborn)) = self.slot.lock().take() {
            newborn.discard();
        }
    }
}
