//! How many messages of a session people are shown.

use talon_store::Message;

use super::client_view::{client_messages, is_fact};

/// Counts what [`client_messages`] shows of a session that is read page by page, with one message kept between pages: what follows decides
/// whether a request is shown.
#[derive(Debug, Default)]
pub struct ShownCount {
    before: u64,
    last: Option<Message>,
}

impl ShownCount {
    /// Goes on from an earlier count, which had so many before its last message. That one is to be added first, again.
    #[must_use]
    pub fn after(before: u64) -> Self {
        Self { before, last: None }
    }

    /// How many are shown before the last message, and the sequence of that one: what follows decides whether it is shown.
    #[must_use]
    pub fn before_last(&self) -> (u64, Option<u64>) {
        (self.before, self.last.as_ref().map(|message| message.sequence))
    }

    /// Counts the next messages, in order.
    pub fn add(&mut self, page: Vec<Message>) {
        let page = page.into_iter().filter(|message| !is_fact(message));
        let mut messages: Vec<Message> = self.last.take().into_iter().chain(page).collect();
        let shown = count(&messages);
        self.last = messages.pop();
        self.before = self.before.saturating_add(shown).saturating_sub(count(self.last.as_slice()));
    }

    /// How many there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.before.saturating_add(count(self.last.as_slice()))
    }
}

fn count(messages: &[Message]) -> u64 {
    client_messages(messages).len() as u64
}

#[cfg(test)]
mod tests {
    use talon_store::{PageRequest, View};

    use super::*;
    use crate::journal::tests::{TestSession, asked, calls, ended, received, result, says};
    use crate::journal::{Journal as _, JournalEntry, SessionFact};

    // Promises: GW-274
    #[tokio::test]
    async fn it_counts_what_is_shown_however_it_is_cut() {
        let place = TestSession::new().await;
        let first = [
            asked("1?"),
            calls(&["a"]),
            JournalEntry::CallStarted { place: 0 },
            JournalEntry::CallsFinished(vec![result("read")]),
            says("1."),
            ended(),
        ];
        for (turn, entry) in first.into_iter().map(|entry| (1, entry)).chain([
            (2, received("2?")),
            (2, asked("2?")),
            (2, says("2.")),
        ]) {
            place.journal().add(turn, entry).await.unwrap();
        }
        let fact = SessionFact::Updated { fields: vec!["model".to_owned()] };
        place.sessions.note(place.id, vec![fact.into_message()]).await.unwrap();
        let all =
            place.sessions.messages(place.id, View::Live, &PageRequest::first(1000)).await.unwrap().items;
        let shown = client_messages(&all).len() as u64;
        assert!(shown >= 6 && shown + 3 <= all.len() as u64, "{shown} of {}", all.len());
        for size in 1..=all.len() {
            let mut counted = ShownCount::default();
            all.chunks(size).for_each(|page| counted.add(page.to_vec()));
            assert_eq!(counted.total(), shown, "in pages of {size}");
        }
        assert_eq!(ShownCount::default().total(), 0);
    }
}
