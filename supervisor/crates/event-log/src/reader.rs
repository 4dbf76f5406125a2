//! Reads pages of events.

use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::index::Index;
use crate::record;

/// How much a page holds at most, in bytes of its events: some hundred events of the usual size. One event may exceed it.
const PAGE_BYTES: usize = 256 << 10;

/// Reads a log while it is written. Clones share the log; they stay usable when its writer is closed.
#[derive(Debug, Clone)]
pub struct EventReader {
    pub(crate) index: Arc<RwLock<Index>>,
}

/// Events in the order of their numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Numbers before these events that are not there any more.
    pub missing: Option<RangeInclusive<u64>>,
    /// The events with their numbers, without a hole.
    pub events: Vec<(u64, Vec<u8>)>,
}

impl EventReader {
    /// The first events after a number. An empty page means that there is none yet. After a hole the page ends, and the next one
    /// names it.
    ///
    /// # Errors
    /// The error of reading a file; [`io::ErrorKind::InvalidData`] if it was changed since it was written.
    pub fn page_after(&self, number: u64) -> io::Result<Page> {
        let mut page = Page::default();
        let mut places = Vec::new();
        {
            let index = self.index.read();
            let (mut expected, mut bytes) = (number.saturating_add(1), 0);
            for (place, file) in index.after(number) {
                if place.number != expected {
                    if !places.is_empty() {
                        break;
                    }
                    page.missing = Some(expected..=place.number - 1);
                }
                bytes += place.bytes;
                if bytes > PAGE_BYTES && !places.is_empty() {
                    break;
                }
                places.push((place, Arc::clone(file)));
                expected = place.number + 1;
            }
        }
        for (place, file) in places {
            let mut bytes = vec![0; place.bytes];
            file.read_exact_at(&mut bytes, place.offset)?;
            let found = record::decode(&bytes).filter(|found| found.number == place.number);
            let data = found.ok_or(io::ErrorKind::InvalidData)?.data.to_vec();
            page.events.push((place.number, data));
        }
        Ok(page)
    }

    /// The number of the last event; one less than the first number of the log if there was none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.index.read().next - 1
    }

    /// The number of the oldest event that is kept, or of the next one if none is.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.index.read().oldest()
    }

    /// The first number that this log ever gave.
    #[must_use]
    pub fn origin(&self) -> u64 {
        self.index.read().origin
    }

    /// What a subscriber has acknowledged, if anything.
    #[must_use]
    pub fn acknowledged(&self, subscriber: &str) -> Option<u64> {
        self.index.read().acknowledged.get(subscriber).copied()
    }
}
