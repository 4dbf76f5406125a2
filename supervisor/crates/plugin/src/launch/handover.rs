//! The launcher's part of a handover, apart from the processes themselves.

use std::collections::BTreeSet;

use talon_control::parcel::Packer;
use talon_jail::Groups;
use tokio::time::timeout;

use super::attempt::LAST_NEWS;
use super::{Launcher, Shared};
use crate::handover::{Adopted, HandOverError, Handed};

impl Launcher {
    /// The directories of the processes, and their locks, for another supervisor.
    pub(crate) fn hand_over(&self, packer: &mut Packer) -> Result<Handed, HandOverError> {
        let Shared { runtime, views, .. } = &*self.shared;
        let failed =
            |source| HandOverError::Descriptors { whose: "the runtime directory".to_owned(), source };
        let (lock, views_lock) = (runtime.share_lock().map_err(failed)?, views.share_lock().map_err(failed)?);
        Ok(Handed::new(runtime.path(), packer.add(lock), packer.add(views_lock)))
    }

    /// Stops starting processes and removing files: another supervisor owns both from now on.
    pub(crate) fn let_go(&self) {
        self.starts.close();
        self.shared.runtime.let_go();
        self.shared.views.let_go();
    }

    /// Waits until all output of released processes is in their logs.
    pub(crate) async fn read_out(&self) {
        self.shared.readers.close();
        // On a heavily loaded machine the last lines are lost.
        let _ = timeout(LAST_NEWS, self.shared.readers.wait()).await;
    }

    /// Disables the delegated cgroup controllers again, if the next supervisor could not be started otherwise.
    pub(crate) fn let_go_of_groups(&self) -> bool {
        self.shared.groups.as_ref().is_some_and(Groups::let_go)
    }

    /// Counts of the processes that were handed over.
    pub(crate) fn adopted(&self) -> Adopted {
        self.shelf.counts()
    }

    /// The monitors of those processes that are still alive.
    pub(crate) fn monitors(&self) -> BTreeSet<u32> {
        self.shelf.living_monitors()
    }

    /// Ends the handed-over processes that no plugin claimed.
    pub(crate) fn discard_unclaimed(&self) -> usize {
        self.shelf.discard()
    }
}
