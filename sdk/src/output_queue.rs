//! What running calls put out, until the host takes it.

use std::collections::VecDeque;

use talon_proto::notices::CallOutput;

use crate::text::cut;

/// How much of a line is sent; hosts keep no more (`talon.plugin.v1`).
const MAX_LINE_BYTES: usize = 4096;
/// How much of all calls waits for the host, some seconds of what it takes. Further lines are left out and counted.
const MAX_BYTES: usize = 256 << 10;
/// The bytes and lines of one notice, which has 16 KiB at most.
const MAX_NOTICE_BYTES: usize = 8 << 10;
const MAX_NOTICE_LINES: usize = 256;
/// Calls with output that waits; more do not run at once. The lines of further ones are not sent.
const MAX_CALLS: usize = 256;

/// The output of calls, the oldest first, each call once.
#[derive(Debug, Default)]
pub(crate) struct OutputQueue {
    calls: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    call_id: String,
    lines: VecDeque<String>,
    left_out: u64,
}

impl OutputQueue {
    /// Adds the lines of a text.
    pub(crate) fn push(&mut self, call_id: &str, text: &str) {
        let at = self.calls.iter().position(|call| call.call_id == call_id);
        let at = match at {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => return,
            None => {
                let call_id = call_id.to_owned();
                self.calls.push_back(Waiting { call_id, lines: VecDeque::new(), left_out: 0 });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return };
        let text = text.strip_suffix('\n').unwrap_or(text);
        for line in text.split('\n') {
            let line = cut(line.strip_suffix('\r').unwrap_or(line), MAX_LINE_BYTES);
            // An empty line takes room, too.
            let bytes = line.len() + 1;
            if self.bytes + bytes > MAX_BYTES {
                call.left_out += 1;
            } else {
                self.bytes += bytes;
                call.lines.push_back(line.to_owned());
            }
        }
    }

    /// The next message, with as many lines of a call as fit.
    pub(crate) fn pop(&mut self) -> Option<CallOutput> {
        let call = self.calls.front_mut()?;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while let Some(line) = call.lines.pop_front_if(|line| bytes + line.len() < MAX_NOTICE_BYTES) {
            bytes += line.len() + 1;
            lines.push(line);
            if lines.len() == MAX_NOTICE_LINES {
                break;
            }
        }
        self.bytes -= bytes;
        // What was left out came after the lines.
        let left_out_lines = if call.lines.is_empty() { std::mem::take(&mut call.left_out) } else { 0 };
        let call_id = call.call_id.clone();
        if call.lines.is_empty() {
            self.calls.pop_front();
        }
        Some(CallOutput { call_id, lines, left_out_lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_order_and_what_does_not_fit_is_counted() {
        let mut queue = OutputQueue::default();
        queue.push("a", "one\r\ntwo\n");
        queue.push("b", "");
        queue.push("a", "three");
        let first = queue.pop().expect("a's");
        assert_eq!((first.call_id.as_str(), first.lines.join(",").as_str()), ("a", "one,two,three"));
        assert_eq!(queue.pop().expect("b's").lines, [""]);
        assert!(queue.pop().is_none());
        let line = "x".repeat(2 * MAX_LINE_BYTES);
        for _ in 0..100 {
            queue.push("a", &line);
        }
        let (mut lines, mut left_out) = (0, 0);
        while let Some(output) = queue.pop() {
            assert!(output.lines.iter().map(String::len).sum::<usize>() <= MAX_NOTICE_BYTES);
            lines += output.lines.len();
            left_out += output.left_out_lines;
        }
        assert_eq!((lines, lines as u64 + left_out), (MAX_BYTES / (MAX_LINE_BYTES + 1), 100));
        assert_eq!(queue.bytes, 0);
    }
}
