//! What a record has and nothing here has a place for. It is told rather than dropped in silence.

use std::collections::BTreeMap;

use super::limits::MAX_LEFT_OUT;
use super::node::{Mark, Problem};
use super::shown::shown;

/// Left-out parts by their names: where the first of them stood, and how many.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    parts: BTreeMap<String, (Mark, u64)>,
}

impl LeftOut {
    pub(super) fn add(&mut self, part: &str, at: Mark) {
        let mut part = shown(part);
        if self.parts.len() >= MAX_LEFT_OUT && !self.parts.contains_key(&part) {
            part = "(others)".to_owned();
        }
        self.parts.entry(part).or_insert((at, 0)).1 += 1;
    }

    /// One for each name.
    pub(super) fn problems(self) -> impl Iterator<Item = (String, Problem)> {
        self.parts.into_iter().map(|(part, (at, count))| {
            let times = if count == 1 { String::new() } else { format!(" ({count} times)") };
            (part, Problem { at, reason: format!("was left out{times}: there is no place for it here") })
        })
    }
}
