//! The output of one call that waits for its reader.

use parking_lot::Mutex;
use talon_guard::{Omitted, OutputObserver, Sanitized};
use talon_proto::host::CallOutput;
use tokio::sync::Notify;

/// How many bytes wait for a slow reader: as much as a call may put out in a second. What comes then is left out and counted.
const MAX_BYTES: usize = talon_guard::call_output::MAX_BYTES_IN_WINDOW;
/// The same for lines.
const MAX_LINES: usize = talon_guard::call_output::MAX_LINES_IN_WINDOW;

/// Sanitized lines, and what was left out since they were taken the last time.
#[derive(Debug, Default)]
pub(super) struct OutputQueue {
    waiting: Mutex<Waiting>,
    wakeup: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<String>,
    bytes: usize,
    left_out: Omitted,
    /// A line was left out: so are all that follow until the reader has taken these, since no line may move up to another with which
    /// it was not checked.
    full: bool,
}

impl OutputQueue {
    /// Waits for output, and takes all of it.
    pub(super) async fn next(&self) -> CallOutput {
        loop {
            let notified = self.wakeup.notified();
            if let Some(output) = self.take() {
                return output;
            }
            notified.await;
        }
    }

    /// Takes all that waits; `None` if that is nothing.
    pub(super) fn take(&self) -> Option<CallOutput> {
        let Waiting { lines, left_out, .. } = std::mem::take(&mut *self.waiting.lock());
        (!lines.is_empty() || !left_out.is_empty()).then_some(CallOutput {
            lines,
            left_out_lines: left_out.lines,
            left_out_bytes: left_out.bytes,
        })
    }
}

impl OutputObserver for OutputQueue {
    fn output(&self, lines: Vec<Sanitized>, left_out: Omitted) {
        let mut waiting = self.waiting.lock();
        waiting.left_out.add(left_out);
        for line in lines {
            let bytes = waiting.bytes + line.len();
            waiting.full |= bytes > MAX_BYTES || waiting.lines.len() >= MAX_LINES;
            if waiting.full {
                waiting.left_out.add(Omitted::line(line.len()));
            } else {
                waiting.bytes = bytes;
                waiting.lines.push(line.into_string());
            }
        }
        drop(waiting);
        self.wakeup.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-141
    #[tokio::test]
    async fn what_a_slow_reader_misses_is_counted() {
        let queue = OutputQueue::default();
        let line = || Sanitized::literal("abc");
        for _ in 0..MAX_LINES + 3 {
            queue.output(vec![line()], Omitted { lines: 1, bytes: 0 });
        }
        let output = queue.next().await;
        let lines = u64::try_from(MAX_LINES).unwrap();
        assert_eq!(
            (output.lines.len(), output.left_out_lines, output.left_out_bytes),
            (MAX_LINES, lines + 6, 9)
        );
        assert_eq!(queue.take(), None);
    }

    // Promises: EXT-140
    #[test]
    fn a_line_does_not_move_up_to_one_with_which_it_was_not_checked() {
        let queue = OutputQueue::default();
        let nearly_full = talon_sanitize::Raw::from(&"x".repeat(MAX_BYTES - 2)).text();
        let (long, short) = (Sanitized::literal("abc"), Sanitized::literal("a"));
        queue.output(vec![nearly_full, long, short], Omitted::default());
        let output = queue.take().expect("a line");
        assert_eq!((output.lines.len(), output.left_out_lines), (1, 2));
        queue.output(vec![Sanitized::literal("a")], Omitted::default());
        assert_eq!(queue.take().expect("a line").lines, ["a"]);
    }
}
