//! Which images of a session are shown again.
//!
//! Those of the current turn always are: the person, or a tool, has just sent them. Those of earlier turns are while
//! there is room, the newest first; a text says what was there.

use std::borrow::Cow;

use talon_llm::model::{Image, Message, NOTE_BEGINS};

use super::message::{HistoryMessage, count_messages};
use crate::tokens::TokenCounter;

/// The share of the room for turns that images of earlier turns may have, as a divisor: text says more with less.
const EARLIER_SHARE: usize = 4;
/// The most images of a question. From 21 on Anthropic takes only small ones
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>).
const MAX_IMAGES: usize = 20;

/// The history with those images that fit, and how many do not. `room` is in tokens, `bytes` are those of the images.
pub(super) fn within_budget<'h>(
    history: &'h [HistoryMessage],
    room: usize,
    bytes: u32,
    counter: &dyn TokenCounter,
) -> (Cow<'h, [HistoryMessage]>, usize) {
    if !history.iter().any(|past| matches!(past.message, Message::Images { .. })) {
        return (Cow::Borrowed(history), 0);
    }
    let current = history.last().map_or(0, |past| past.turn);
    let size = |past: &HistoryMessage| match past.message {
        Message::Images { .. } => 0,
        _ => count_messages(std::slice::from_ref(&past.message), counter),
    };
    let texts: usize = history.iter().map(size).sum();
    let mut left = ImageRoom {
        tokens: (room / EARLIER_SHARE).min(room.saturating_sub(texts)),
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        images: MAX_IMAGES,
    };
    // What the person has just sent comes first, then the newest.
    let (asked, others): (Vec<usize>, Vec<usize>) = (0..history.len()).rev().partition(|&at| {
        let HistoryMessage { turn, message } = &history[at];
        *turn == current && matches!(message, Message::Images { introduction, .. } if introduction.is_empty())
    });
    let mut shown = history.to_vec();
    let mut left_out = 0;
    for at in asked.into_iter().chain(others) {
        let past = &mut shown[at];
        let Message::Images { images, .. } = &past.message else { continue };
        if !images.is_empty() && !left.take(images, past.turn == current) {
            left_out += images.len();
            past.message = Message::User { text: description(images) };
        }
    }
    (Cow::Owned(shown), left_out)
}

/// What is left for images.
struct ImageRoom {
    tokens: usize,
    bytes: usize,
    images: usize,
}

impl ImageRoom {
    /// Takes the room of images, if there is enough. Those of the current turn may have more tokens.
    fn take(&mut self, images: &[Image], is_current: bool) -> bool {
        let tokens: usize = images.iter().map(Image::tokens).sum();
        let bytes: usize = images.iter().map(|image| image.bytes).sum();
        let fits =
            images.len() <= self.images && bytes <= self.bytes && (is_current || tokens <= self.tokens);
        if fits {
            self.tokens = self.tokens.saturating_sub(tokens);
            self.bytes -= bytes;
            self.images -= images.len();
        }
        fits
    }
}

/// What stands in the place of images.
fn description(images: &[Image]) -> String {
    let each: Vec<String> = images.iter().map(|image| format!("({image})")).collect();
    format!(
        "{NOTE_BEGINS}what was shown here is not shown again, since there is no room for it: {}. Ask for it if it matters.]",
        each.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use talon_llm::model::ImageKind;

    use super::*;
    use crate::tokens::Estimate;

    fn images(turn: u64, from: &str, bytes: usize) -> HistoryMessage {
        let image = Image {
            digest: format!("{turn}{from}{bytes}"),
            kind: ImageKind::Png,
            bytes,
            width: 560,
            height: 560,
            name: format!("{turn}.png"),
        };
        let (introduction, images) = (from.to_owned(), vec![image]);
        HistoryMessage { turn, message: Message::Images { introduction, images } }
    }

    fn says(turn: u64, text: &str) -> HistoryMessage {
        HistoryMessage { turn, message: Message::User { text: text.to_owned() } }
    }

    /// The turns whose images are shown, with whose they are.
    fn shown(history: &[HistoryMessage], room: usize, bytes: u32) -> (Vec<String>, usize) {
        let (history, left_out) = within_budget(history, room, bytes, &Estimate);
        let of = |past: &HistoryMessage| match &past.message {
            Message::Images { introduction, .. } => Some(format!("{}{introduction}", past.turn)),
            _ => None,
        };
        (history.iter().filter_map(of).collect(), left_out)
    }

    // Promises: AGENT-163
    #[test]
    fn earlier_images_are_shown_while_there_is_room_the_newest_first() {
        // Each has 400 tokens.
        let history = [
            says(1, "a"),
            images(1, "", 10),
            says(2, "b"),
            images(2, "", 10),
            says(3, "c"),
            images(3, "", 10),
        ];
        assert_eq!(
            shown(&history, 100_000, 1_000),
            (vec!["1".to_owned(), "2".to_owned(), "3".to_owned()], 0)
        );
        // A quarter of 4,000: those of the current turn count, and one more fits.
        assert_eq!(shown(&history, 4_000, 1_000), (vec!["2".to_owned(), "3".to_owned()], 1));
        assert_eq!(shown(&history, 100, 1_000), (vec!["3".to_owned()], 2));
        let (described, _) = within_budget(&history, 100, 1_000, &Estimate);
        let Message::User { text } = &described[1].message else { panic!("{:?}", described[1]) };
        assert!(text.starts_with(NOTE_BEGINS) && text.contains("1.png, PNG, 560 × 560 pixels"), "{text}");
    }

    // Promises: AGENT-163
    #[test]
    fn bytes_are_a_limit_for_all_and_the_persons_come_first() {
        let history = [says(1, "a"), images(1, "", 60), images(1, "camera", 50), images(1, "camera", 40)];
        assert_eq!(shown(&history, 100_000, 100), (vec!["1".to_owned(), "1camera".to_owned()], 1));
        let many: Vec<_> =
            std::iter::once(says(1, "a")).chain((0..30).map(|_| images(1, "camera", 1))).collect();
        assert_eq!(shown(&many, 100_000, 1_000).1, 10);
    }

    #[test]
    fn a_history_without_images_is_not_copied() {
        let history = [says(1, "a")];
        assert!(matches!(within_budget(&history, 10, 10, &Estimate), (Cow::Borrowed(_), 0)));
    }
}
