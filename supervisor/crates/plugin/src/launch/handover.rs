//! What a launcher has to do with another supervisor's, beside the processes themselves.

use std::collections::BTreeSet;

use talon_control::parcel::Packer;
use talon_jail::Groups;
use tokio::time::timeout;

use super::attempt::LAST_NEWS;
use super::{Launcher, Shared};
use crate::handover::{Adopted, HandOverError, Handed};

impl Launcher {
    /// The directories that the processes are in, and their locks, for another supervisor.
    pub(crate) fn hand_over(&self, packer: &mut Packer) -> Result<Handed, HandOverError> {
        let Shared { runtime, views, .. } = &*self.shared;
        let failed =
            |source| HandOverError::Descriptors { whose: "the runtime directory".to_owned(), source };
        let (lock, views_lock) = (runtime.share_lock().map_err(failed)?, views.share_lock().map_err(failed)?);
        Ok(Handed::new(runtime.path(), packer.add(lock), packer.add(views_lock)))
    }

    /// Starts nothing more, and removes nothing more: it is another supervisor's from here on.
    pub(crate) fn let_go(&self) {
        self.starts.close();
        self.shared.runtime.let_go();
        self.shared.views.let_go();
    }

    /// Waits until everything that processes have printed is in their logs, once they were released.
    pub(crate) async fn read_out(&self) {
        self.shared.readers.close();
        // On a machine that hardly moves the last lines are given up.
        let _ = timeout(LAST_NEWS, self.shared.readers.wait()).await;
    }

    /// Takes back the controllers of cgroups, where the next supervisor could not be started otherwise.
    pub(crate) fn let_go_of_groups(&self) -> bool {
        self.shared.groups.as_ref().is_some_and(Groups::let_go)
    }

    /// What became of the processes that were handed over.
    pub(crate) fn adopted(&self) -> Adopted {
        self.shelf.counts()
    }

    /// Their monitors, as far as they live.
    pub(crate) fn monitors(&self) -> BTreeSet<u32> {
        self.shelf.living_monitors()
    }

    /// Ends those that nobody asked for.
    pub(crate) fn discard_unclaimed(&self) -> usize {
        self.shelf.discard()
    }
}
