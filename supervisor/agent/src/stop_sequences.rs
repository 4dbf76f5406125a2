//! Texts before which an answer ends. They are looked for here, so that they hold whatever provider answers.

use std::mem;

/// Cuts a text before the stop that is complete first, and says whether there is one.
pub(crate) fn cut_at_stop(stops: &[String], text: &mut String) -> bool {
    let found = stops.iter().filter_map(|stop| text.find(stop.as_str()).map(|at| (at + stop.len(), at)));
    let first = found.min();
    if let Some((_, at)) = first {
        text.truncate(at);
    }
    first.is_some()
}

/// Passes pieces of an answer on up to the first stop. What may be the beginning of one waits until that is known.
#[derive(Debug, Default)]
pub(crate) struct StopFilter {
    stops: Vec<String>,
    waiting: String,
    is_stopped: bool,
}

impl StopFilter {
    pub(crate) fn new(stops: Vec<String>) -> Self {
        Self { stops, ..Self::default() }
    }

    /// What can be passed on after this piece.
    pub(crate) fn push(&mut self, piece: String) -> String {
        if self.stops.is_empty() {
            return piece;
        }
        if self.is_stopped {
            return String::new();
        }
        self.waiting.push_str(&piece);
        if cut_at_stop(&self.stops, &mut self.waiting) {
            self.is_stopped = true;
            return mem::take(&mut self.waiting);
        }
        let waits = self.stops.iter().map(|stop| begun(stop, &self.waiting)).max().unwrap_or_default();
        let rest = self.waiting.split_off(self.waiting.len() - waits);
        mem::replace(&mut self.waiting, rest)
    }

    /// What still waits when the answer has ended.
    pub(crate) fn end(&mut self) -> String {
        mem::take(&mut self.waiting)
    }

    /// Another answer begins.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
        self.is_stopped = false;
    }
}

/// How many bytes at the end of a text may be the beginning of a stop.
fn begun(stop: &str, text: &str) -> usize {
    let begins = |bytes: &usize| stop.is_char_boundary(*bytes) && text.ends_with(&stop[..*bytes]);
    (1..stop.len()).rev().find(begins).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(stops: &[String], pieces: &[String]) -> String {
        let mut filter = StopFilter::new(stops.to_vec());
        let mut passed: String = pieces.iter().map(|piece| filter.push(piece.clone())).collect();
        passed.push_str(&filter.end());
        passed
    }

    proptest! {
        // Promises: GW-250
        #[test]
        fn pieces_come_to_the_same_as_the_whole_however_it_is_cut(
            stops in prop::collection::vec("[abä]{1,3}", 0..4),
            pieces in prop::collection::vec("[abcä]{0,3}", 0..12),
        ) {
            let mut whole = pieces.concat();
            cut_at_stop(&stops, &mut whole);
            prop_assert_eq!(passed(&stops, &pieces), whole);
        }
    }

    // Promises: GW-250
    #[test]
    fn what_may_begin_a_stop_waits_and_another_answer_begins_anew() {
        let mut filter = StopFilter::new(vec!["END".to_owned()]);
        assert_eq!(filter.push("one E".to_owned()), "one ");
        assert_eq!(filter.push("N".to_owned()), "");
        assert_eq!(filter.push("e".to_owned()), "ENe");
        assert_eq!(filter.push("END two".to_owned()), "");
        assert_eq!(filter.push("three".to_owned()), "");
        filter.restart();
        assert_eq!(filter.push("four".to_owned()), "four");
    }
}
