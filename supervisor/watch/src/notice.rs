//! What is said to the person, on stderr: each thing once, until it is over.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// How many different things are remembered as said. Beyond it, new ones are no longer said: whoever has
/// these many is not helped by more.
const REMEMBERED: usize = 256;

/// Says each thing once. Clones share what was said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<HashSet<String>>>);

impl Notices {
    /// Says `text`, unless something was said under this key. Returns whether it was said now.
    pub(crate) fn once(&self, key: impl Into<String>, text: impl Display) -> bool {
        {
            let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() >= REMEMBERED || !said.insert(key.into()) {
                return false;
            }
        }
        say(text);
        true
    }

    /// What was said under this key is over, and is said again if it comes back.
    pub(crate) fn over(&self, key: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
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
}
