//! Closes a log, also one that takes no more writes.

use std::io;
use std::time::SystemTime;

use super::{NOT_WRITTEN, Writer};
use crate::clock::unix_ms;
use crate::record::Body;
use crate::tail::{self, Tail};

/// What could not be written before the log was closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unwritten {
    /// Calls and operations.
    pub(crate) records: u64,
    /// Lost records that were to be noted.
    pub(crate) lost: u64,
}

impl Writer {
    /// Closes the log in order.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.append(&Body::Stopped { pid: std::process::id() }, unix_ms(SystemTime::now()));
        self.flush()?;
        self.file.sync_data()
    }

    /// Closes a log that takes no more writes, and returns what is not in it, and whether it says so.
    /// `queued` is what was not even appended. The file then ends in a whole record; the reserve gives room
    /// for the last ones.
    pub(crate) fn close_incomplete(&mut self, queued: Unwritten) -> (Unwritten, bool) {
        let rewound = self.rewind();
        // If the end of the file cannot be read, none of what was to be written counts as written.
        let end = rewound.as_ref().map_or(self.first_seq.saturating_sub(1), |()| self.seq);
        let mut missing = queued;
        for pending in self.pending_records.iter().filter(|pending| pending.seq > end) {
            missing.records += pending.records;
            missing.lost += pending.lost;
        }
        self.clear_pending();
        let mut is_noted = false;
        if rewound.is_ok() {
            let (bytes, seq, head) = (self.bytes, self.seq, self.head);
            let count = missing.records + missing.lost;
            if count > 0 {
                self.append_lost(count, NOT_WRITTEN.to_owned());
            }
            is_noted = self.write_last().is_ok();
            if !is_noted {
                // As before: a torn line at the end would look like a crash.
                let _ = self.file.set_len(bytes);
                (self.bytes, self.seq, self.head) = (bytes, seq, head);
                self.clear_pending();
            }
        }
        (missing, is_noted)
    }

    fn write_last(&mut self) -> io::Result<()> {
        // Without a reserve there may be room all the same.
        let _ = self.directory.release_reserve();
        self.close()
    }

    /// Goes back to the last whole record in the file, and cuts off what follows it.
    fn rewind(&mut self) -> io::Result<()> {
        let cut = match tail::read_tail(&mut self.file)? {
            Tail::Whole { last, cut } => {
                (self.seq, self.head) = (last.seq, last.hash);
                cut
            }
            Tail::Empty { cut } => {
                (self.seq, self.head) = (self.first_seq.saturating_sub(1), self.head_before);
                cut
            }
            Tail::Damaged { why } => return Err(io::Error::other(why)),
        };
        if let Some(cut) = cut {
            self.file.set_len(cut.at)?;
        }
        self.bytes = self.file.metadata()?.len();
        Ok(())
    }
}
