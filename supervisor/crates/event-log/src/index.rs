//! Where each event is, shared by the writer and its readers.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::sync::Arc;

/// One event within its segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
}

/// One segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The number in its name.
    pub(crate) first: u64,
    /// Readers keep it open when it is removed meanwhile.
    pub(crate) file: Arc<File>,
    /// Its length, as far as it is written whole.
    pub(crate) bytes: u64,
    pub(crate) events: Vec<Position>,
}

/// All segments of a log, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) segments: VecDeque<Segment>,
    /// The first number that the log ever gave.
    pub(crate) origin: u64,
    /// The number of the next event.
    pub(crate) next: u64,
    /// What each subscriber has acknowledged.
    pub(crate) acknowledged: BTreeMap<String, u64>,
}

impl Index {
    /// The number of the oldest event that is kept; that of the next one if none is.
    pub(crate) fn oldest(&self) -> u64 {
        let oldest = self.segments.iter().find_map(|segment| segment.events.first());
        oldest.map_or(self.next, |event| event.number)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    pub(crate) fn events(&self) -> usize {
        self.segments.iter().map(|segment| segment.events.len()).sum()
    }

    /// The events after a number, each with its file.
    pub(crate) fn after(&self, number: u64) -> impl Iterator<Item = (Position, &Arc<File>)> {
        self.segments.iter().flat_map(move |segment| {
            let from = segment.events.partition_point(|event| event.number <= number);
            segment.events[from..].iter().map(move |event| (*event, &segment.file))
        })
    }
}
