//! Fields of a record that the store cannot hold. They are reported rather than dropped silently.

use std::collections::BTreeMap;

use super::excerpt::excerpt;
use super::limits::MAX_OMITTED;
use super::node::{Mark, Problem};

/// Omitted fields by name: where the first of them stood, and how many there are.
#[derive(Debug, Default)]
pub(super) struct OmittedFields {
    parts: BTreeMap<String, (Mark, u64)>,
}

impl OmittedFields {
    pub(super) fn add(&mut self, part: &str, at: Mark) {
        let mut part = excerpt(part);
        if self.parts.len() >= MAX_OMITTED && !self.parts.contains_key(&part) {
            part = "(others)".to_owned();
        }
        self.parts.entry(part).or_insert((at, 0)).1 += 1;
    }

    /// One problem for each name.
    pub(super) fn problems(self) -> impl Iterator<Item = (String, Problem)> {
        self.parts.into_iter().map(|(part, (at, count))| {
            let times = if count == 1 { String::new() } else { format!(" ({count} times)") };
            (part, Problem { at, reason: format!("was left out{times}: there is no place for it here") })
        })
    }
}
