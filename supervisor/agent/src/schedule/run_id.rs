//! What identifies a run, found again without being stored.

use sha2::{Digest as _, Sha256};
use talon_store::{Occurrence, SessionId};

/// The id of a run, by its job and its planned time. A run that asks has its conversation under it.
pub(super) fn run_id(occurrence: &Occurrence) -> SessionId {
    let millis = occurrence.planned_at.as_millis();
    id(millis, &format!("schedule run {} {millis}", occurrence.job))
}

/// The id of a conversation that goes on from run to run.
pub(super) fn conversation_id(name: &str) -> SessionId {
    id(0, &format!("schedule conversation {name}"))
}

fn id(millis: i64, text: &str) -> SessionId {
    let digest: [u8; 32] = Sha256::digest(text).into();
    let mut bytes = [0; 16];
    // As in every ULID, 48 bits of time come first, by which lists are sorted.
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&digest[..10]);
    SessionId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fixture::occurrence;

    #[test]
    fn a_run_is_found_again_and_sorted_by_its_time() {
        let run = |job: &str, millis| run_id(&occurrence(job, millis));
        assert_eq!(run("a", 1_800_000_000_000), run("a", 1_800_000_000_000));
        assert_ne!(run("a", 1_800_000_000_000), run("b", 1_800_000_000_000));
        assert!(run("z", 1_800_000_000_000) < run("a", 1_800_000_060_000));
        assert_eq!(conversation_id("ops"), conversation_id("ops"));
        assert_ne!(conversation_id("ops"), conversation_id("dev"));
    }
}
