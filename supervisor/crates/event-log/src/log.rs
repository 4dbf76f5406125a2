//! Opens a log, appends to it, and drops what is over the bound.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::directory::{Directory, OpenError, segment_name};
use crate::index::{Index, Position, Segment};
use crate::reader::EventReader;
use crate::record::{MAX_EVENT_BYTES, RecordKind, encode, scan};

/// A segment is closed at this part of the bounds. So at least seven eighths of them are kept.
const SEGMENTS: u64 = 8;
/// How many subscribers may acknowledge; ours are a handful of services.
pub const MAX_SUBSCRIBERS: usize = 16;
/// The longest name of a subscriber, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// How a log is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory; created with mode 0700 if it is missing. The one above it has to exist.
    pub dir: PathBuf,
    /// The most bytes of all segments together. The oldest segment goes when there are more.
    pub max_bytes: u64,
    /// The most events. The oldest segment goes when there are more.
    pub max_events: usize,
    /// The number of the first event if a new log is begun. Take it from the clock, so that numbers of a lost log are not given
    /// again.
    pub first_number: u64,
}

/// A log that was opened.
#[derive(Debug)]
pub struct OpenedLog {
    /// The log.
    pub log: EventLog,
    /// What was wrong with its files, and what was done about it.
    pub findings: Vec<String>,
}

/// Why events were not appended. The log is as before, and appending may be tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// An event is too large.
    #[error("an event of {0} bytes is over the limit of {MAX_EVENT_BYTES}")]
    TooLarge(usize),
    /// The disk refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why events were not acknowledged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcknowledgeError {
    /// No event has this number yet.
    #[error("event {through} was never given out: the last one is {last}")]
    Unknown {
        /// The acknowledged number.
        through: u64,
        /// The number of the last event.
        last: u64,
    },
    /// There are too many subscribers, or the name is too long.
    #[error("there are {MAX_SUBSCRIBERS} subscribers with names of {MAX_NAME_BYTES} bytes at most")]
    Subscriber,
    /// The disk refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A log that is open for writing.
#[derive(Debug)]
pub struct EventLog {
    directory: Directory,
    max_bytes: u64,
    max_events: usize,
    /// Never without a segment.
    index: Arc<RwLock<Index>>,
}

impl EventLog {
    /// Opens the log and cuts off what is no whole record at its end, or begins a new one.
    ///
    /// # Errors
    /// Another process has it open, or the disk refuses.
    pub fn open(settings: &Settings) -> Result<OpenedLog, OpenError> {
        let directory = Directory::open(&settings.dir)?;
        let failed = |source| OpenError::Io { path: settings.dir.clone(), source };
        let mut index = Index { next: settings.first_number.max(1), ..Index::default() };
        let mut findings = Vec::new();
        let names = directory.segments().map_err(failed)?;
        for (at, first) in names.iter().enumerate() {
            let last = at + 1 == names.len();
            let segment =
                read_segment(&directory, *first, last, at == 0, &mut index, &mut findings).map_err(failed)?;
            index.segments.extend(segment);
        }
        if index.origin == 0 {
            index.origin = index.segments.front().map_or(index.next, |oldest| oldest.first);
        }
        let index = Arc::new(RwLock::new(index));
        let mut log =
            Self { directory, max_bytes: settings.max_bytes, max_events: settings.max_events, index };
        if log.index.read().segments.is_empty() {
            log.begin_segment().map_err(failed)?;
        }
        log.drop_oldest().map_err(failed)?;
        Ok(OpenedLog { log, findings })
    }

    /// A reader of this log.
    #[must_use]
    pub fn reader(&self) -> EventReader {
        EventReader { index: Arc::clone(&self.index) }
    }

    /// Appends events and syncs them: all or none. Only then readers see them. Returns the number of the first.
    ///
    /// # Errors
    /// [`AppendError`]; then none of them has a number.
    pub fn append(&mut self, events: &[Vec<u8>]) -> Result<u64, AppendError> {
        if let Some(large) = events.iter().find(|event| event.len() > MAX_EVENT_BYTES) {
            return Err(AppendError::TooLarge(large.len()));
        }
        // Before anything is written, so that a directory from which nothing can be removed does not grow.
        self.drop_oldest()?;
        if self.is_full() {
            self.begin_segment()?;
        }
        let (next, start) = {
            let index = self.index.read();
            (index.next, index.segments.back().map_or(0, |segment| segment.bytes))
        };
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(events.len()));
        for (number, event) in (next..).zip(events) {
            let offset = start + bytes.len() as u64;
            let length = encode(RecordKind::Event, number, event, &mut bytes);
            places.push(Position { number, offset, bytes: length });
        }
        self.write(&bytes, true)?;
        {
            let mut index = self.index.write();
            index.next += places.len() as u64;
            if let Some(segment) = index.segments.back_mut() {
                segment.bytes += bytes.len() as u64;
                segment.events.extend(places);
            }
        }
        // They have their numbers; what is over the bound goes with the next append if it does not go now.
        let _ = self.drop_oldest();
        Ok(next)
    }

    /// Records what a subscriber has acknowledged; returns its last acknowledged number. It is not synced: after a power cut a
    /// subscriber may be told of a gap that it knows.
    ///
    /// # Errors
    /// [`AcknowledgeError`].
    pub fn acknowledge(&mut self, subscriber: &str, through: u64) -> Result<u64, AcknowledgeError> {
        let last = {
            let index = self.index.read();
            let known = index.acknowledged.get(subscriber).copied();
            if through >= index.next {
                return Err(AcknowledgeError::Unknown { through, last: index.next - 1 });
            }
            if known.is_none() && index.acknowledged.len() >= MAX_SUBSCRIBERS
                || subscriber.len() > MAX_NAME_BYTES
            {
                return Err(AcknowledgeError::Subscriber);
            }
            known.unwrap_or_default()
        };
        if through <= last {
            return Ok(last);
        }
        let mut bytes = Vec::new();
        encode(RecordKind::Acknowledged, through, subscriber.as_bytes(), &mut bytes);
        self.write(&bytes, false)?;
        let mut index = self.index.write();
        index.acknowledged.insert(subscriber.to_owned(), through);
        if let Some(segment) = index.segments.back_mut() {
            segment.bytes += bytes.len() as u64;
        }
        Ok(through)
    }

    fn is_full(&self) -> bool {
        let index = self.index.read();
        let Some(segment) = index.segments.back() else { return true };
        let is_large = segment.bytes >= self.max_bytes / SEGMENTS
            || segment.events.len() >= (self.max_events / SEGMENTS as usize).max(1);
        // Two segments never begin with the same number.
        is_large && !segment.events.is_empty()
    }

    /// Appends bytes to the last segment: all or nothing, as far as readers and the next write are concerned.
    fn write(&self, bytes: &[u8], sync: bool) -> io::Result<()> {
        let (file, whole) = {
            let index = self.index.read();
            let segment = index.segments.back().ok_or(io::ErrorKind::NotFound)?;
            (Arc::clone(&segment.file), segment.bytes)
        };
        // What an earlier attempt left.
        if file.metadata()?.len() != whole {
            file.set_len(whole)?;
        }
        let written = (&*file).write_all(bytes).and_then(|()| if sync { file.sync_data() } else { Ok(()) });
        if written.is_err() {
            // If that fails too, the next attempt does it, or the next opening.
            let _ = file.set_len(whole);
        }
        written
    }

    /// Begins a segment, with all that has to outlive the ones before it.
    fn begin_segment(&mut self) -> io::Result<()> {
        let (first, head) = {
            let index = self.index.read();
            let mut head = Vec::new();
            encode(RecordKind::Head, index.origin, &[], &mut head);
            for (name, through) in &index.acknowledged {
                encode(RecordKind::Acknowledged, *through, name.as_bytes(), &mut head);
            }
            (index.next, head)
        };
        let file = match self.directory.create(first) {
            // Left by a process that ended at this point, or that could not write its head.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = self.directory.open_segment(first)?;
                file.set_len(0)?;
                file
            }
            created => created?,
        };
        (&file).write_all(&head)?;
        file.sync_data()?;
        let segment = Segment { first, file: Arc::new(file), bytes: head.len() as u64, events: Vec::new() };
        self.index.write().segments.push_back(segment);
        Ok(())
    }

    /// Removes the oldest segments while there is more than the bounds allow.
    fn drop_oldest(&mut self) -> io::Result<()> {
        loop {
            let first = {
                let index = self.index.read();
                let over = index.bytes() > self.max_bytes || index.events() > self.max_events;
                match index.segments.front() {
                    Some(oldest) if over && index.segments.len() > 1 => oldest.first,
                    _ => return Ok(()),
                }
            };
            self.directory.remove(first)?;
            self.index.write().segments.pop_front();
        }
    }
}

/// Reads a segment into the index. Damage at the end of the last one is cut off; other damage is left where it is, and its events
/// are missing.
fn read_segment(
    directory: &Directory,
    first: u64,
    is_last: bool,
    is_oldest: bool,
    index: &mut Index,
    findings: &mut Vec<String>,
) -> io::Result<Option<Segment>> {
    let mut file = directory.open_segment(first)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut events: Vec<Position> = Vec::new();
    let mut has_head = false;
    // The bounds of a log may be raised and lowered, but its numbers go on from every segment that there ever was.
    index.next = if is_oldest { first } else { index.next.max(first) };
    let damaged = scan(&bytes, |offset, record| match record.kind {
        RecordKind::Head => {
            has_head = true;
            index.origin = record.number;
        }
        RecordKind::Event if record.number >= index.next => {
            events.push(Position { number: record.number, offset: offset as u64, bytes: record.bytes });
            index.next = record.number + 1;
        }
        // A number that is there already: of a file that somebody copied.
        RecordKind::Event => {}
        RecordKind::Acknowledged => {
            let name = String::from_utf8_lossy(record.data).into_owned();
            let known = index.acknowledged.entry(name).or_default();
            *known = record.number.max(*known);
        }
    });
    let mut length = bytes.len();
    for range in damaged {
        let name = segment_name(first);
        if is_last && range.end == bytes.len() {
            file.set_len(range.start as u64)?;
            file.sync_data()?;
            length = range.start;
            findings.push(format!(
                "{} bytes at the end of {name} were no whole record and were cut off: a write did not end, as at a crash or on a \
                 full disk; nobody had been given what they said",
                range.len()
            ));
        } else {
            findings.push(format!(
                "{name} is damaged from byte {} to {}: events in it are missing; check the disk",
                range.start, range.end
            ));
        }
    }
    if is_last && !has_head && events.is_empty() && !index.segments.is_empty() {
        // Its process ended while it began the segment: the segment is begun anew when one is needed.
        directory.remove(first)?;
        return Ok(None);
    }
    let file: Arc<File> = Arc::new(file);
    Ok(Some(Segment { first, file, bytes: length as u64, events }))
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
