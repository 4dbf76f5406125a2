//! The scripts that a plugin runs, and which of them the host does not know yet.

use std::collections::BTreeMap;

use talon_proto::notices::ScriptStatus;

/// The most scripts, as `talon.plugin.v1` has it.
const MAX_SCRIPTS: usize = 256;
/// How many scripts that are gone are remembered, for a host that has lost its stream meanwhile: as many as there may be.
const MAX_GONE: usize = 256;
/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The latest status of each script, and whether it waits for the host.
#[derive(Debug, Default)]
pub(crate) struct ScriptBoard {
    by_name: BTreeMap<String, Slot>,
    /// Counts the changes, so that what has waited longest is told first.
    changes: u64,
}

#[derive(Debug)]
struct Slot {
    status: ScriptStatus,
    /// Since which change it waits; `None` if the host took it.
    waits_since: Option<u64>,
}

impl ScriptBoard {
    /// Replaces the status of a script.
    pub(crate) fn put(&mut self, status: ScriptStatus) {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let name = &status.name;
        let is_name = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(plain);
        let is_known = self.by_name.get(name).is_some_and(|slot| !slot.status.removed);
        let present = || self.by_name.values().filter(|slot| !slot.status.removed).count();
        if !is_name || !is_known && present() >= MAX_SCRIPTS {
            return;
        }
        self.set(status);
    }

    /// Says that a script is gone.
    pub(crate) fn remove(&mut self, name: &str) {
        if !self.by_name.contains_key(name) {
            return;
        }
        self.set(ScriptStatus { name: name.to_owned(), removed: true, ..ScriptStatus::default() });
        let gone = self.by_name.iter().filter(|(_, slot)| slot.status.removed);
        if gone.clone().count() > MAX_GONE
            && let Some(oldest) = gone.min_by_key(|(_, slot)| slot.waits_since).map(|(name, _)| name.clone())
        {
            let _ = self.by_name.remove(&oldest);
        }
    }

    fn set(&mut self, status: ScriptStatus) {
        self.changes += 1;
        let waits_since = self.by_name.get(&status.name).and_then(|slot| slot.waits_since);
        let waits_since = waits_since.unwrap_or(self.changes);
        let _ = self.by_name.insert(status.name.clone(), Slot { status, waits_since: Some(waits_since) });
    }

    /// Another host listens: it gets all of them.
    pub(crate) fn tell_all(&mut self) {
        self.changes += 1;
        for slot in self.by_name.values_mut() {
            let _ = slot.waits_since.get_or_insert(self.changes);
        }
    }

    /// The status that has waited longest.
    pub(crate) fn take(&mut self) -> Option<ScriptStatus> {
        let waiting = self.by_name.values_mut().filter(|slot| slot.waits_since.is_some());
        let slot = waiting.min_by_key(|slot| slot.waits_since)?;
        slot.waits_since = None;
        Some(slot.status.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, loads: u64) -> ScriptStatus {
        ScriptStatus { name: name.to_owned(), loads, ..ScriptStatus::default() }
    }

    fn taken(board: &mut ScriptBoard) -> Vec<(String, u64, bool)> {
        std::iter::from_fn(|| board.take())
            .map(|status| (status.name, status.loads, status.removed))
            .collect()
    }

    #[test]
    fn the_latest_status_of_each_script_is_told_and_all_to_a_new_host() {
        let mut board = ScriptBoard::default();
        board.put(status("b", 1));
        board.put(status("a", 1));
        board.put(status("b", 2));
        assert_eq!(taken(&mut board), [("b".to_owned(), 2, false), ("a".to_owned(), 1, false)]);
        assert_eq!(taken(&mut board), []);
        board.remove("a");
        board.remove("never");
        board.tell_all();
        assert_eq!(taken(&mut board), [("a".to_owned(), 0, true), ("b".to_owned(), 2, false)]);
        board.put(status("a", 3));
        assert_eq!(taken(&mut board), [("a".to_owned(), 3, false)]);
    }

    #[test]
    fn what_is_too_much_or_no_name_is_dropped() {
        let mut board = ScriptBoard::default();
        for number in 0..MAX_SCRIPTS + 3 {
            board.put(status(&format!("s{number}"), 1));
        }
        for name in ["", "a b", "ä", &"x".repeat(MAX_NAME_BYTES + 1)] {
            board.put(status(name, 1));
        }
        assert_eq!(taken(&mut board).len(), MAX_SCRIPTS);
        for _ in 0..3 {
            for number in 0..MAX_SCRIPTS {
                board.remove(&format!("s{number}"));
                board.put(status(&format!("t{number}"), 1));
                board.remove(&format!("t{number}"));
            }
        }
        assert!(board.by_name.len() <= MAX_GONE, "{}", board.by_name.len());
    }
}
