//! What is said to the person, on stderr: each thing once, until it is over.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many different things are remembered as said. Beyond it, new ones are no longer said: whoever has
/// these many is not helped by more.
const REMEMBERED: usize = 256;

/// Says each thing once. Clones share what was said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<SaidNotices>>);

#[derive(Debug, Default)]
struct SaidNotices {
    keys: HashSet<String>,
    /// What cannot be watched at present, by its key: the agent is told, for `talon doctor`.
    limits: BTreeMap<&'static str, String>,
}

impl Notices {
    /// Says `text`, unless something was said under this key. Returns whether it was said now.
    pub(crate) fn once(&self, key: impl Into<String>, text: impl Display) -> bool {
        {
            let mut said = self.lock();
            if said.keys.len() >= REMEMBERED || !said.keys.insert(key.into()) {
                return false;
            }
        }
        say(text);
        true
    }

    /// Says once what cannot be watched. The agent is told as well, so that it names no path.
    pub(crate) fn limit(&self, key: &'static str, text: impl Display) {
        let text = text.to_string();
        self.lock().limits.insert(key, text.clone());
        self.once(key, text);
    }

    /// What cannot be watched at present.
    pub(crate) fn limits(&self) -> Vec<String> {
        self.lock().limits.values().cloned().collect()
    }

    /// What was said under this key is over, and is said again if it comes back.
    pub(crate) fn over(&self, key: &str) -> bool {
        let mut said = self.lock();
        said.limits.remove(key);
        said.keys.remove(key)
    }

    fn lock(&self) -> MutexGuard<'_, SaidNotices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One line on stderr, without what acts on a terminal. Errors are ignored: there is nowhere to tell them.
pub(crate) fn say(text: impl Display) {
    let line = talon_sanitize::Raw::of(text).line_within(2048);
    let _ = writeln!(std::io::stderr(), "talon-watch: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-54
    #[test]
    fn a_thing_is_said_once_until_it_is_over() {
        let notices = Notices::default();
        assert!(notices.once("limit", "one"));
        assert!(!notices.clone().once("limit", "two"));
        assert!(notices.over("limit") && notices.once("limit", "three"));
        let said = (0..2 * REMEMBERED).filter(|n| notices.once(n.to_string(), "more")).count();
        assert!(said < REMEMBERED);
    }

    // Promises: SHADOW-54
    #[test]
    fn a_limit_is_told_to_the_agent_until_it_is_over() {
        let notices = Notices::default();
        notices.once("state", "no limit");
        notices.limit("files", "too many");
        notices.limit("files", "too many files");
        assert_eq!(notices.limits(), ["too many files"]);
        assert!(notices.over("files") && notices.limits().is_empty());
    }
}
