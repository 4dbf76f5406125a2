//! Options: what may be done with a plugin, and which checks to perform.

use std::collections::BTreeMap;

use talon_sanitize::{Raw, Sanitized};

use crate::check::Check;
use crate::list::{CHECKS, find};

/// An action that the author allows to be called, with the arguments of a valid call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAction {
    /// Its name.
    pub action: String,
    /// The arguments.
    pub args: BTreeMap<String, String>,
}

/// What may be done with a plugin, and which checks to perform.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only these checks; all if empty.
    pub only: Vec<&'static Check>,
    /// Checks to leave out.
    pub skip: Vec<&'static Check>,
    /// Actions that may be called although they are not `read_only`. They are called first.
    pub actions: Vec<NamedAction>,
    /// Whether every action may be called, whatever it does.
    pub allow_calls: bool,
}

/// There is no such check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no check {id:?}; `talon conformance --list` names all of them")]
pub struct UnknownCheckError {
    id: Sanitized,
}

impl Options {
    /// The checks with these ids or groups, such as `execute`.
    ///
    /// # Errors
    /// [`UnknownCheckError`] for the first word that matches none.
    pub fn select(words: &[String]) -> Result<Vec<&'static Check>, UnknownCheckError> {
        let mut named = Vec::new();
        for word in words {
            let before = named.len();
            match find(word) {
                Some(check) => named.push(check),
                None => named.extend(CHECKS.iter().filter(|check| check.group() == word)),
            }
            if named.len() == before {
                return Err(UnknownCheckError { id: Raw::from(word).line_within(64) });
            }
        }
        Ok(named)
    }

    /// Whether a check is selected.
    #[must_use]
    pub fn includes(&self, check: &Check) -> bool {
        let holds = |list: &[&Check]| list.iter().any(|named| named.id == check.id);
        (self.only.is_empty() || holds(&self.only)) && !holds(&self.skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_named_one_by_one_or_by_their_group() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let ids = |named: Vec<&Check>| named.iter().map(|check| check.id).collect::<Vec<_>>();
        assert_eq!(ids(Options::select(&words(&["jail.strict"])).unwrap()), ["jail.strict"]);
        let stop = ["stop.shutdown", "stop.sigterm", "stop.nothing-left"];
        assert_eq!(ids(Options::select(&words(&["stop"])).unwrap()), stop);
        let unknown = Options::select(&words(&["stop", "sto"])).unwrap_err();
        assert!(unknown.to_string().contains("\"sto\""), "{unknown}");
    }

    #[test]
    fn what_is_skipped_wins() {
        let of = |only: &[&str], skip: &[&str]| Options {
            only: only.iter().filter_map(|id| find(id)).collect(),
            skip: skip.iter().filter_map(|id| find(id)).collect(),
            ..Options::default()
        };
        let wants = |options: Options, id: &str| options.includes(find(id).unwrap());
        assert!(wants(of(&[], &[]), "jail.strict"));
        assert!(!wants(of(&["stop.shutdown"], &[]), "jail.strict"));
        assert!(!wants(of(&["jail.strict"], &["jail.strict"]), "jail.strict"));
    }
}
