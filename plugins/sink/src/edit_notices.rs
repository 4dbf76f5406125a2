//! When people are told that edits are not passed on. Chat services say that a message was edited for changes of their own, too, which nobody
//! made, such as a preview of a link, so it is not said each time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use talon_sdk::SourceEvent;
use talon_sdk::channel::UNSUPPORTED_TOPIC;

/// What an edit of a message is called, which is not passed on.
pub const EDITS: &str = "edits of messages";

/// For how long it is not said again in a conversation. An hour: long enough that nobody is bothered, and short enough that whoever edits on
/// another day is told.
const PAUSE: Duration = Duration::from_secs(60 * 60);
/// The most conversations that are remembered. 1,024, of some hundred bytes each; of a further one the earliest is forgotten, and told again.
const MAX_CONVERSATIONS: usize = 1024;

/// The conversation in which an edit would be said to be not passed on, apart by whether it is for the bot: the agent says nothing where it
/// is not. `None` for other events.
#[must_use]
pub fn edited_conversation(event: &SourceEvent) -> Option<String> {
    let is_edit = event.topic() == UNSUPPORTED_TOPIC && event.details_text() == EDITS;
    let of = |field: &str| event.value(field).unwrap_or_default();
    is_edit.then(|| format!("{} {}", of("conversation"), of("mentioned")))
}

/// Where it was said.
#[derive(Debug, Default)]
pub struct EditNotices {
    said: HashMap<String, Instant>,
}

impl EditNotices {
    /// Whether it is to be said in a conversation; then it counts as said.
    pub fn is_due(&mut self, conversation: &str, now: Instant) -> bool {
        self.said.retain(|_, said| now.saturating_duration_since(*said) < PAUSE);
        if self.said.contains_key(conversation) {
            return false;
        }
        if self.said.len() >= MAX_CONVERSATIONS {
            let earliest =
                self.said.iter().min_by_key(|(_, said)| **said).map(|(earliest, _)| earliest.clone());
            if let Some(earliest) = earliest {
                self.said.remove(&earliest);
            }
        }
        self.said.insert(conversation.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_an_hour_and_conversation() {
        let (mut notices, now) = (EditNotices::default(), Instant::now());
        assert!(notices.is_due("42", now) && notices.is_due("-1001/3", now));
        assert!(!notices.is_due("42", now + PAUSE / 2));
        assert!(notices.is_due("42", now + PAUSE));
        assert!(!notices.is_due("42", now + PAUSE * 3 / 2));
    }

    #[test]
    fn of_too_many_conversations_the_earliest_is_forgotten() {
        let (mut notices, began) = (EditNotices::default(), Instant::now());
        let at = |number: usize| began + Duration::from_millis(number as u64);
        for number in 0..=MAX_CONVERSATIONS {
            assert!(notices.is_due(&number.to_string(), at(number)));
        }
        assert_eq!(notices.said.len(), MAX_CONVERSATIONS);
        assert!(!notices.is_due("1", at(MAX_CONVERSATIONS)) && notices.is_due("0", at(MAX_CONVERSATIONS)));
    }
}
