//! What running calls put out, until the host takes it.

use std::collections::VecDeque;

use talon_proto::notices::CallOutput;

use crate::text::cut;

/// How much of a line is sent; hosts keep no more (`talon.plugin.v1`).
const MAX_LINE_BYTES: usize = 4096;
/// How much of all calls waits for the host, some seconds of what it takes. Further lines are left out and counted.
const MAX_BYTES: usize = 256 << 10;
/// How much of one call waits: what a host takes of it in a second.
const MAX_CALL_BYTES: usize = 64 << 10;
/// What each call may have waiting, however much waits of others: one notice of it. So 2 MiB more wait at most.
const RESERVED_BYTES: usize = MAX_NOTICE_BYTES;
/// The bytes and lines of one notice, which has 16 KiB at most.
const MAX_NOTICE_BYTES: usize = 8 << 10;
const MAX_NOTICE_LINES: usize = 256;
/// Calls with output that waits; more do not run at once. The lines of further ones are not sent.
const MAX_CALLS: usize = 256;

/// The output of calls, each call once: who was sent last comes last.
#[derive(Debug, Default)]
pub(crate) struct OutputQueue {
    calls: VecDeque<WaitingCall>,
    bytes: usize,
}

#[derive(Debug)]
struct WaitingCall {
    call_id: String,
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines after the last one that waits. Until all of those are sent, every further line is left out, too: a line that follows
    /// a gap must not look as if it followed the line before.
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
                self.calls.push_back(WaitingCall { call_id, lines: VecDeque::new(), bytes: 0, left_out: 0 });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return };
        let text = text.strip_suffix('\n').unwrap_or(text);
        for line in text.split('\n') {
            let line = cut(line.strip_suffix('\r').unwrap_or(line), MAX_LINE_BYTES);
            // An empty line takes room, too.
            let bytes = line.len() + 1;
            let (of_call, of_all) = (call.bytes + bytes, self.bytes + bytes);
            let fits = of_call <= RESERVED_BYTES || (of_call <= MAX_CALL_BYTES && of_all <= MAX_BYTES);
            if call.left_out > 0 || !fits {
                call.left_out += 1;
            } else {
                (call.bytes, self.bytes) = (of_call, of_all);
                call.lines.push_back(line.to_owned());
            }
        }
    }

    /// The next message, with as many lines of a call as fit. The calls take turns.
    pub(crate) fn pop(&mut self) -> Option<CallOutput> {
        let mut call = self.calls.pop_front()?;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while let Some(line) = call.lines.pop_front_if(|line| bytes + line.len() < MAX_NOTICE_BYTES) {
            bytes += line.len() + 1;
            lines.push(line);
            if lines.len() == MAX_NOTICE_LINES {
                break;
            }
        }
        self.bytes -= bytes;
        call.bytes -= bytes;
        let call_id = call.call_id.clone();
        // What was left out came after the lines.
        let left_out_lines = if call.lines.is_empty() { call.left_out } else { 0 };
        if !call.lines.is_empty() {
            self.calls.push_back(call);
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
        assert_eq!((lines, lines as u64 + left_out), (MAX_CALL_BYTES / (MAX_LINE_BYTES + 1), 100));
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn a_call_that_puts_out_much_starves_no_other() {
        let mut queue = OutputQueue::default();
        let line = "x".repeat(MAX_LINE_BYTES);
        let loud: Vec<String> = (0..8).map(|at| format!("loud {at}")).collect();
        let shout = |queue: &mut OutputQueue| {
            for call in &loud {
                (0..32).for_each(|_| queue.push(call, &line));
            }
        };
        shout(&mut queue);
        queue.push("quiet", "one");
        let mut turns = 0;
        loop {
            let output = queue.pop().expect("there is more");
            if output.call_id == "quiet" {
                assert_eq!((output.lines, output.left_out_lines), (vec!["one".to_owned()], 0));
                break;
            }
            shout(&mut queue);
            turns += 1;
            assert!(turns <= loud.len(), "everybody had a turn but the quiet one");
        }
        assert!(queue.bytes <= MAX_BYTES + MAX_CALLS * RESERVED_BYTES);
    }

    #[test]
    fn a_line_does_not_move_up_over_a_gap() {
        let mut queue = OutputQueue::default();
        let line = "x".repeat(MAX_LINE_BYTES);
        let fits = MAX_CALL_BYTES / (MAX_LINE_BYTES + 1);
        (0..fits + 2).for_each(|_| queue.push("a", &line));
        queue.push("a", "short enough for what is left");
        let mut sent: Vec<CallOutput> = std::iter::from_fn(|| queue.pop()).collect();
        let last = sent.pop().expect("there was output");
        assert_eq!(last.left_out_lines, 3);
        assert!(sent.iter().all(|output| output.left_out_lines == 0));
        assert!(sent.iter().chain([&last]).all(|output| output.lines.iter().all(|sent| *sent == line)));
        queue.push("a", "after the gap");
        assert_eq!(queue.pop().map(|output| output.lines), Some(vec!["after the gap".to_owned()]));
    }
}
