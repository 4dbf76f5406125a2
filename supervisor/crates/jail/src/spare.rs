//! A standby stage: made before it is needed.
//!
//! Namespaces are the most expensive part of a start, most of all the network's, and to make a stage in them, only
//! their kinds have to be known. So a long-running supervisor keeps one stage ready for the next program like the last
//! one. It waits for its command as every stage does, and ends when its control socket is closed. Only its mount
//! namespace is made later: otherwise it would keep unmounted file systems busy, and not see new mounts.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::PollFlags;

use crate::graveyard;
use crate::wire::{self, Call, Note, Received, Wanted};
use crate::zygote::{Zygote, ready};

/// How long an unneeded standby stage may take to send its pidfd, so that it can be reaped. That is the first thing it
/// does, so a second is a thousand times what it needs. After that, it is left to the process that reaps the
/// supervisor's orphans.
const BIRTH: Duration = Duration::from_secs(1);

/// The supervisor's endpoints of a stage's descriptors.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) control: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Ends {
    /// Our endpoints, and the stage's: control socket, standard output, standard error. An error names what could not
    /// be made.
    pub(crate) fn make() -> Result<(Self, [OwnedFd; 3]), (&'static str, io::Error)> {
        let failed = |what| move |error| (what, error);
        let (control, stage_control) = wire::pair().map_err(failed("control socket"))?;
        let (stdout, stage_stdout) = io::pipe().map_err(failed("pipe for its output"))?;
        let (stderr, stage_stderr) = io::pipe().map_err(failed("pipe for its errors"))?;
        let ours = Self { control, stdout: stdout.into(), stderr: stderr.into() };
        Ok((ours, [stage_control, stage_stdout.into(), stage_stderr.into()]))
    }
}

/// A stage that was requested.
#[derive(Debug)]
pub(crate) struct Newborn {
    pub(crate) ends: Ends,
    /// The zygote that makes it.
    pub(crate) zygote: Arc<Zygote>,
}

impl Newborn {
    /// Ends the stage, and has it reaped.
    pub(crate) fn discard(self) {
        let Ends { control, .. } = self.ends;
        let told = ready(control.as_fd(), PollFlags::IN, BIRTH).unwrap_or(false);
        let note = if told { wire::receive::<Note>(&control).ok() } else { None };
        drop(control);
        if let Some(Received::Packet(Note::Born, descriptors)) = note {
            descriptors.into_iter().for_each(graveyard::bury);
        }
    }
}

/// The slot for one standby stage, which is used if enabled.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    wanted: AtomicBool,
    place: Mutex<Option<(Wanted, Newborn)>>,
}

impl Spare {
    /// Enables the standby stage.
    pub(crate) fn keep(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Takes the standby stage, if there is one of the requested kind.
    pub(crate) fn take(&self, call: &Call) -> Option<Newborn> {
        let wanted = call.namespaces.as_ref()?;
        let (_, newborn) = self.place().take_if(|(kind, _)| kind == wanted)?;
        Some(newborn)
    }

    /// The request for a standby stage that fits the next request like this one; `None` if disabled or if there is one.
    pub(crate) fn wants(&self, call: &Call) -> Option<Call> {
        let namespaces = call.namespaces.clone()?;
        let wants = self.wanted.load(Ordering::Relaxed) && self.place().is_none();
        wants.then_some(Call { namespaces: Some(namespaces), ahead: true })
    }

    /// Stores a standby stage, unless another thread was faster; then it is discarded.
    pub(crate) fn put(&self, call: Call, newborn: Newborn) {
        let mut place = self.place();
        match (&*place, call.namespaces) {
            (None, Some(kind)) => *place = Some((kind, newborn)),
            _ => {
                drop(place);
                newborn.discard();
            }
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<(Wanted, Newborn)>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some((_, newborn)) = self.place().take() {
            newborn.discard();
        }
    }
}
