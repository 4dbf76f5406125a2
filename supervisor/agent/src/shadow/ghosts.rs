//! Writes of ghosts. Each one compares: where several agents have one database, a ghost is made once, and decided about once.

use talon_proto::agent::{GetGhostResponse, Ghost};
use talon_shadow_policy::GhostEnd;
use talon_store::Error;

use super::shadow_loop::{ShadowLoop, ShadowState, WAITING};
use super::store::{GhostWrite, is_same};
use crate::notify::ghost_waiting;

impl ShadowLoop {
    /// Stores a new ghost, and tells of it. One that another agent made of the same question is taken as it is.
    pub(super) async fn create(
        &self,
        inner: &mut ShadowState,
        id: &str,
        mut found: GetGhostResponse,
    ) -> Result<(), Error> {
        let sequence = inner.next_sequence();
        if let Some(ghost) = &mut found.ghost {
            ghost.sequence = sequence;
        }
        if let GhostWrite::Differs(current) = self.store.create_ghost(id, &found).await? {
            self.take_over(inner, id, current.map(|ghost| *ghost));
            return Ok(());
        }
        if let Some(ghost) = &found.ghost {
            self.notifier.notify(ghost_waiting(ghost));
            self.emit_ghost(ghost);
        }
        inner.stored.ghosts.insert(id.to_owned(), found);
        inner.sequence = sequence;
        self.changed.send_replace(sequence);
        self.metrics.count_shadow_ghost("made");
        Ok(())
    }

    /// Stores a changed ghost with its next sequence, and what its end means for its trigger. `None` if another agent changed it
    /// meanwhile: then it is as that one left it, and nothing was stored.
    pub(super) async fn put(
        &self,
        inner: &mut ShadowState,
        mut ghost: Ghost,
        end: Option<GhostEnd>,
    ) -> Result<Option<Ghost>, Error> {
        let sequence = inner.next_sequence();
        ghost.sequence = sequence;
        let Some(before) = inner.stored.ghosts.get(&ghost.id) else { return Ok(Some(ghost)) };
        let next = GetGhostResponse { ghost: Some(ghost.clone()), ..before.clone() };
        if let GhostWrite::Differs(current) = self.store.replace_ghost(&ghost.id, before, &next).await? {
            self.take_over(inner, &ghost.id, current.map(|ghost| *ghost));
            return Ok(None);
        }
        inner.stored.ghosts.insert(ghost.id.clone(), next);
        inner.sequence = sequence;
        self.changed.send_replace(sequence);
        self.emit_ghost(&ghost);
        self.wake.notify_one();
        // One that was snoozed and waits again is none that was made.
        if ghost.state != WAITING {
            self.metrics.count_shadow_ghost(&ghost.state);
        }
        let Some(end) = end else { return Ok(Some(ghost)) };
        while let Some(mut record) = inner.stored.senders.get(&ghost.sender).cloned() {
            record.policy.ended(&ghost.rule, end);
            if self.store_sender(inner, record).await? {
                break;
            }
        }
        Ok(Some(ghost))
    }

    /// Takes a ghost as it is on the disk, where another agent may have changed it. `None` if it is not there.
    pub(super) async fn refresh_ghost(
        &self,
        inner: &mut ShadowState,
        id: &str,
    ) -> Result<Option<Ghost>, Error> {
        let current = self.store.ghost(id).await?;
        let is_known = match (inner.stored.ghosts.get(id), &current) {
            (Some(known), Some(current)) => is_same(known, current),
            (known, current) => known.is_none() && current.is_none(),
        };
        let ghost = current.as_ref().and_then(|one| one.ghost.clone());
        if !is_known {
            self.take_over(inner, id, current);
        }
        Ok(ghost)
    }

    /// A ghost is as another agent left it; absent if that one removed it. Followers here hear of it.
    fn take_over(&self, inner: &mut ShadowState, id: &str, current: Option<GetGhostResponse>) {
        let sequence = inner.next_sequence();
        match current {
            Some(mut current) => {
                if let Some(ghost) = &mut current.ghost {
                    ghost.sequence = sequence;
                    self.emit_ghost(ghost);
                }
                inner.stored.ghosts.insert(id.to_owned(), current);
            }
            None => drop(inner.stored.ghosts.remove(id)),
        }
        inner.sequence = sequence;
        self.changed.send_replace(sequence);
        self.wake.notify_one();
    }
}
