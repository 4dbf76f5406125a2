//! The child's output: read in bounded lines, and passed on to the supervisor.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::sync::oneshot;

/// The longest line that is passed on: below the 8 KiB at which the supervisor cuts. A longer one ends with
/// `…`.
pub const MAX_LINE_BYTES: usize = 8000;
/// How long the last output of an ended child may take to be passed on. It is in a pipe already; this passes
/// only if another process holds the other end.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

const CUT: &str = "…";

/// Reads a pipe in a thread, because passing output on blocks while the supervisor reads slowly. The returned
/// channel is closed when `read` has returned.
///
/// # Errors
/// When the system starts no thread.
pub fn spawn_reader(
    name: &str,
    pipe: OwnedFd,
    read: impl FnOnce(BufReader<File>) + Send + 'static,
) -> io::Result<oneshot::Receiver<()>> {
    let (done, drained) = oneshot::channel::<()>();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _done = done;
        read(BufReader::new(File::from(pipe)));
    })?;
    Ok(drained)
}

/// A line with its end, or its next part of `limit` bytes; `None` at the end of the output.
pub fn read_line(output: &mut impl BufRead, limit: usize) -> Option<Vec<u8>> {
    let mut piece = Vec::new();
    let read = output.take(limit as u64).read_until(b'\n', &mut piece);
    read.is_ok_and(|bytes| bytes > 0).then_some(piece)
}

/// Passes on lines up to the end of the output. The rest of a line that is too long is left out: alone it
/// means nothing.
pub fn forward_lines(output: &mut impl BufRead, to: &mut impl Write) {
    let mut within = false;
    while let Some(mut piece) = read_line(output, MAX_LINE_BYTES) {
        let ends = piece.ends_with(b"\n");
        if !within {
            if !ends && piece.len() == MAX_LINE_BYTES {
                piece.truncate(MAX_LINE_BYTES - CUT.len());
                piece.extend_from_slice(CUT.as_bytes());
            }
            forward_line(piece, to);
        }
        within = !ends;
    }
}

/// Passes on one line in one write, so that it does not mix with the lines of others.
pub fn forward_line(mut line: Vec<u8>, to: &mut impl Write) {
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    // If there is no reader, there is nowhere to report the error.
    let _ = to.write_all(&line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_cut_and_whole() {
        let mut output = b"one\n".to_vec();
        output.extend(vec![b'x'; 50_000]);
        output.extend(b"\ntwo\nlast");
        let mut passed = Vec::new();
        forward_lines(&mut output.as_slice(), &mut passed);
        let lines: Vec<_> = passed.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 5);
        assert_eq!((lines[0], lines[2], lines[3]), (&b"one"[..], &b"two"[..], &b"last"[..]));
        assert_eq!(lines[1].len(), MAX_LINE_BYTES);
        assert!(lines[1].ends_with("x…".as_bytes()));
    }
}
