//! The launcher's part of a handover, apart from the processes themselves.

use std::collections::BTreeSet;

use talon_control::fd_bundle::Packer;
use talon_jail::Groups;
use tokio::time::timeout;

use super::Launcher;
use super::attempt::LAST_OUTPUT_WAIT;
use super::shared::Shared;
use crate::handover::{AdoptionCounts, HandoverDocument, HandoverError};

impl Launcher {
    /// The directories of the processes, and their locks, for another supervisor.
    pub(crate) fn hand_over(&self, packer: &mut Packer) -> Result<HandoverDocument, HandoverError> {
        let Shared { runtime, views, .. } = &*self.shared;
        let failed =
            |source| HandoverError::Descriptors { whose: "the runtime directory".to_owned(), source };
        let (lock, views_lock) =
            (runtime.duplicate_lock().map_err(failed)?, views.duplicate_lock().map_err(failed)?);
        Ok(HandoverDocument::new(runtime.path(), packer.add(lock), packer.add(views_lock)))
    }

    /// Stops starting processes and removing files: another supervisor owns both from now on.
    pub(crate) fn release(&self) {
        self.starts.close();
        self.shared.runtime.release();
        self.shared.views.release();
    }

    /// Waits until all output of released processes is in their logs.
    pub(crate) async fn flush_output(&self) {
        self.shared.readers.close();
        // On a heavily loaded machine the last lines are lost.
        let _ = timeout(LAST_OUTPUT_WAIT, self.shared.readers.wait()).await;
    }

    /// Disables the delegated cgroup controllers again, if the next supervisor could not be started
    /// otherwise.
    pub(crate) fn release_cgroup_controllers(&self) -> bool {
        self.shared.groups.as_ref().is_some_and(Groups::disable_controllers)
    }

    /// Counts of the processes that were handed over.
    pub(crate) fn adoption_counts(&self) -> AdoptionCounts {
        self.adoption_pool.counts()
    }

    /// The monitors of those processes that are still alive.
    pub(crate) fn adopted_monitors(&self) -> BTreeSet<u32> {
        self.adoption_pool.living_monitors()
    }

    /// Ends the handed-over processes that no plugin claimed.
    pub(crate) fn discard_unclaimed(&self) -> usize {
        self.adoption_pool.discard()
    }
}
