//! What a program prints over go-plugin's stream, as lines for the host's log.

use std::io;
use std::mem;

use parking_lot::Mutex;
use talon_bridge::output::{MAX_LINE_BYTES, forward_line};
use talon_proto::goplugin::StdioData;
use talon_proto::goplugin::stdio_data::Channel;

/// Joins pieces to lines, of each of the two streams for itself.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    stdout: Mutex<Vec<u8>>,
    stderr: Mutex<Vec<u8>>,
}

impl Lines {
    /// Prints the lines that a piece completes to standard error. A line longer than [`MAX_LINE_BYTES`] is
    /// printed in parts.
    pub(crate) fn forward(&self, piece: &StdioData) {
        for line in self.complete(piece) {
            forward_line(line, &mut io::stderr());
        }
    }

    fn complete(&self, piece: &StdioData) -> Vec<Vec<u8>> {
        let begun = if piece.channel() == Channel::Stdout { &self.stdout } else { &self.stderr };
        let mut begun = begun.lock();
        let mut lines = Vec::new();
        for &byte in &piece.data {
            begun.push(byte);
            if byte == b'\n' || begun.len() == MAX_LINE_BYTES {
                lines.push(mem::take(&mut *begun));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_two_streams_become_their_lines() {
        let lines = Lines::default();
        let complete = |channel: Channel, data: &[u8]| {
            lines.complete(&StdioData { channel: channel.into(), data: data.to_vec() })
        };
        assert!(complete(Channel::Stdout, b"one").is_empty());
        assert_eq!(complete(Channel::Stderr, b"two\nth"), [b"two\n".to_vec()]);
        assert_eq!(complete(Channel::Stdout, b"!\n\n"), [b"one!\n".to_vec(), b"\n".to_vec()]);
        let long = complete(Channel::Stdout, &vec![b'x'; MAX_LINE_BYTES + 1]);
        assert_eq!(long, [vec![b'x'; MAX_LINE_BYTES]]);
    }
}
