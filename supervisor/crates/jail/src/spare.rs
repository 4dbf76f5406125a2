//! A stage that is there before it is asked for.
//!
//! Namespaces are the dearest part of a start, the network's first of all, and all that a stage has to know of a program to
//! be born into them is which. So a supervisor that goes on has one made ahead for the next program like the last one. It waits
//! for its order as every stage does; its control socket ends it if none comes. Mounts are the one thing that it takes later: it
//! would hold on to what is unmounted meanwhile, and not see what is mounted.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::PollFlags;

use crate::graveyard;
use crate::wire::{self, Call, Note, Received, Wanted};
use crate::zygote::{Zygote, ready};

/// How long one that nobody needs may take to say who it is, so that it can be reaped. That is the first thing it does, so that a
/// second is a thousand times what it needs; after it, it is left to whoever reaps what the supervisor leaves.
const BIRTH: Duration = Duration::from_secs(1);

/// Our ends of a stage's descriptors.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) control: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Ends {
    /// Ours, and the stage's: control socket, standard output, standard error. An error says what could not be had.
    pub(crate) fn make() -> Result<(Self, [OwnedFd; 3]), (&'static str, io::Error)> {
        let failed = |what| move |error| (what, error);
        let (control, stage_control) = wire::pair().map_err(failed("control socket"))?;
        let (stdout, stage_stdout) = io::pipe().map_err(failed("pipe for its output"))?;
        let (stderr, stage_stderr) = io::pipe().map_err(failed("pipe for its errors"))?;
        let ours = Self { control, stdout: stdout.into(), stderr: stderr.into() };
        Ok((ours, [stage_control, stage_stdout.into(), stage_stderr.into()]))
    }
}

/// A stage that was asked for.
#[derive(Debug)]
pub(crate) struct Newborn {
    pub(crate) ends: Ends,
    /// Who was asked.
    pub(crate) zygote: Arc<Zygote>,
}

impl Newborn {
    /// Ends it, and has it reaped.
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

/// The place for one, which is used if it is wanted.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    wanted: AtomicBool,
    place: Mutex<Option<(Wanted, Newborn)>>,
}

impl Spare {
    /// From now on one is kept.
    pub(crate) fn keep(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// The one that is there, if it is of this kind.
    pub(crate) fn take(&self, call: &Call) -> Option<Newborn> {
        let wanted = call.namespaces.as_ref()?;
        let (_, newborn) = self.place().take_if(|(kind, _)| kind == wanted)?;
        Some(newborn)
    }

    /// What to ask for, so that there is one for the next call like this.
    pub(crate) fn wants(&self, call: &Call) -> Option<Call> {
        let namespaces = call.namespaces.clone()?;
        let wants = self.wanted.load(Ordering::Relaxed) && self.place().is_none();
        wants.then_some(Call { namespaces: Some(namespaces), ahead: true })
    }

    /// Puts it there, unless somebody else was faster.
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
