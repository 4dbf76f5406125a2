//! `agent.identities`: who is the same person on several channels.

use std::collections::{BTreeMap, BTreeSet};

/// An entry that cannot hold, since a sender would be two persons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProblem {
    /// The name of the entry.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// The name under which everything of a sender is kept: its own if it is linked to none.
#[must_use]
pub fn linked_sender<'a>(identities: &'a BTreeMap<String, Vec<String>>, sender: &'a str) -> &'a str {
    let linked = identities.iter().find(|(_, others)| others.iter().any(|other| other == sender));
    linked.map_or(sender, |(name, _)| name)
}

/// What cannot hold: a sender that is linked twice, or that is itself the name of an entry.
#[must_use]
pub fn identity_problems(identities: &BTreeMap<String, Vec<String>>) -> Vec<IdentityProblem> {
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for (name, others) in identities {
        for other in others {
            let why = if identities.contains_key(other) {
                format!("{other:?} is the name of an entry itself, and cannot be somebody else")
            } else if !seen.insert(other) {
                format!("{other:?} is linked twice, and is one person only")
            } else {
                continue;
            };
            problems.push(IdentityProblem { name: name.clone(), why });
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identities(entries: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let entry = |(name, others): &(&str, &[&str])| {
            ((*name).to_owned(), others.iter().map(|other| (*other).to_owned()).collect())
        };
        entries.iter().map(entry).collect()
    }

    // Promises: GW-67
    #[test]
    fn a_linked_sender_has_one_name_and_others_keep_theirs() {
        let all = identities(&[("alice", &["gw:telegram/1", "gw:web/a"]), ("bob", &["gw:telegram/2"])]);
        let expected = [("gw:web/a", "alice"), ("gw:telegram/2", "bob"), ("alice", "alice"), ("eve", "eve")];
        for (sender, name) in expected {
            assert_eq!(linked_sender(&all, sender), name);
        }
        assert!(identity_problems(&all).is_empty());
    }

    #[test]
    fn nobody_is_two_persons() {
        let twice = identity_problems(&identities(&[("alice", &["x"]), ("bob", &["x"])]));
        assert!(twice.len() == 1 && twice[0].name == "bob" && twice[0].why.contains("twice"), "{twice:?}");
        let chained = identity_problems(&identities(&[("alice", &["bob"]), ("bob", &["x"])]));
        assert!(chained.len() == 1 && chained[0].why.contains("itself"), "{chained:?}");
    }
}
