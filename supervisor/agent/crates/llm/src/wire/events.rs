//! Server-sent events, as the HTML standard has them (section 9.2.6), bounded.
//!
//! Our own, since what there is holds an event of any length, or ends the stream at a field that comes twice
//! or that it does not know; providers send both.

use super::{Frame, Framing, LineBreaks, Lines, TooLongError};
use crate::limits::MAX_EVENT_BYTES;

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Puts events together.
pub(crate) struct Events {
    lines: Lines,
    event: Open,
    max_bytes: usize,
}

/// The event that is being read.
#[derive(Default)]
struct Open {
    event: String,
    /// Each line of data and a line break. Empty: there was none, and the event is none.
    data: String,
    /// The first line of a stream may start with a mark that is not part of it.
    begun: bool,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { lines: Lines::new(LineBreaks::Any), event: Open::default(), max_bytes: MAX_EVENT_BYTES }
    }

    #[cfg(test)]
    fn bounded(max_bytes: usize) -> Self {
        Self { lines: Lines::bounded(LineBreaks::Any, max_bytes), max_bytes, ..Self::new() }
    }
}

impl Framing for Events {
    fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLongError> {
        let Self { lines, event, max_bytes } = self;
        lines.split(bytes, |line| {
            frames.extend(event.line(line));
            if event.data.len() > *max_bytes { Err(TooLongError) } else { Ok(()) }
        })
    }

    /// An event without the empty line after it is cut off, and is none.
    fn end(&mut self, _: &mut Vec<Frame>) {}
}

impl Open {
    fn line(&mut self, line: &[u8]) -> Option<Frame> {
        let begun = std::mem::replace(&mut self.begun, true);
        let line = if begun { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let mut data = std::mem::take(&mut self.data);
            data.pop()?;
            return Some(Frame { event, data });
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => {
                self.data.push_str(&value);
                self.data.push('\n');
            }
            b"event" => self.event = value.into_owned(),
            // Comments have an empty name. Nothing is resumed, so ids and times to reconnect say nothing to
            // us.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Events::new();
        let mut frames = Vec::new();
        for chunk in chunks {
            events.feed(chunk, &mut frames).expect("small events");
        }
        events.end(&mut frames);
        frames.into_iter().map(|frame| (frame.event, frame.data)).collect()
    }

    fn data(text: &str) -> Vec<String> {
        read(&[text.as_bytes()]).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn events_are_read_as_the_standard_has_them() {
        assert_eq!(data("data: one\n\ndata:two\r\n\r\ndata: three\r\r"), ["one", "two", "three"]);
        assert_eq!(data("data: a\ndata:  b\ndata\n\n"), ["a\n b\n"]);
        assert_eq!(data(": OPENROUTER PROCESSING\n\ndata: x\n\n"), ["x"]);
        assert_eq!(data("\u{feff}data: x\nid: 1\nretry: soon\nnonsense\n\n"), ["x"]);
        assert_eq!(data("event: ping\n\n"), Vec::<String>::new());
        assert_eq!(read(&[b"event: a\nevent: b\ndata: x\n\n"]), [("b".to_owned(), "x".to_owned())]);
        assert_eq!(data("data: whole\n\ndata: cut"), ["whole"]);
        assert_eq!(data("data: [DONE]\n\n"), ["[DONE]"]);
        assert_eq!(data("data\n\n"), [""]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        for endless in ["data: xxxxxxxx", "data: x\n", "data: x\r\n", ": xxxxxxxx"] {
            let mut events = Events::bounded(64);
            let mut frames = Vec::new();
            let fed = (0..100).try_for_each(|_| events.feed(endless.as_bytes(), &mut frames));
            assert_eq!(fed, Err(TooLongError), "{endless:?}");
        }
        let mut events = Events::bounded(64);
        let mut frames = Vec::new();
        let many = (0..100).try_for_each(|_| events.feed(b"data: xxxxxxxx\n\n", &mut frames));
        assert_eq!((many, frames.len()), (Ok(()), 100));
    }

    #[test]
    fn characters_arrive_in_pieces() {
        let whole = "event: é\ndata: Grüße 😀\r\n\r\n".as_bytes();
        let bytes: Vec<_> = whole.chunks(1).collect();
        assert_eq!(read(&bytes), [("é".to_owned(), "Grüße 😀".to_owned())]);
    }

    proptest! {
        // Promises: AGENT-11
        #[test]
        fn events_are_the_same_however_they_are_cut(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "data: {\"a\":1}", "data:", "data: äöü", "data: 😀→", ": note", "event: x", "\n", "\r\n", "\r",
                    "\n\n", "\r\n\r\n", "\r\r", "id: 7", "data", "\u{feff}",
                ]),
                0..24,
            ),
            cuts in prop::collection::vec(0_usize..260, 0..12),
        ) {
            let whole = parts.concat().into_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[&whole]));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut frames = Vec::new();
            let mut events = Events::new();
            events.feed(&bytes, &mut frames).expect("small events");
            for frame in frames {
                prop_assert!(!frame.event.contains(['\r', '\n']));
            }
        }
    }
}
