//! Takes the last turns of a conversation back.

use std::collections::BTreeSet;

use talon_store::{Expected, SessionId, Sessions};

use super::log::{self, store_error};
use super::{JournalEntry, JournalError, record};

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneTurns {
    /// How many turns.
    pub turns: u32,
    /// The message that began the first of them.
    pub request: String,
    /// Calls that were made in them, and stay made.
    pub calls: u32,
}

/// Takes back the last `turns` turns: models no longer see them. They stay in the store. `None`: no turn is left that a
/// summary does not stand for. The session must be in no turn.
///
/// # Errors
/// [`JournalError`]; nothing was taken back.
pub async fn undo(
    sessions: &dyn Sessions,
    id: SessionId,
    turns: usize,
) -> Result<Option<UndoneTurns>, JournalError> {
    let log = log::read(sessions, id).await?;
    let all: BTreeSet<u64> = log.records.iter().map(|record| record.turn).collect();
    let last: Vec<u64> = all.into_iter().rev().take(turns).collect();
    let Some(&from) = last.last() else { return Ok(None) };
    let mut undone = UndoneTurns {
        turns: u32::try_from(last.len()).unwrap_or(u32::MAX),
        request: String::new(),
        calls: 0,
    };
    for record in log.records.into_iter().filter(|record| record.turn >= from) {
        match record.entry {
            // People get back what they wrote.
            JournalEntry::Received { text, .. } if record.turn == from => undone.request = text,
            JournalEntry::Asked { text, with } if record.turn == from => {
                undone.request = with.hooks.and_then(|hooks| hooks.original).unwrap_or(text);
            }
            JournalEntry::CallStarted { .. } => undone.calls = undone.calls.saturating_add(1),
            _ => {}
        }
    }
    let entry = record::encode(log.last_turn, JournalEntry::Undone { from });
    sessions.append(id, Expected::Any, entry).await.map_err(store_error)?;
    Ok(Some(undone))
}

#[cfg(test)]
mod tests {
    use talon_llm::model::Message;
    use talon_store::{PageRequest, View};

    use super::*;
    use crate::context::Summary;
    use crate::journal::Journal as _;
    use crate::journal::tests::{TestSession, asked, calls, ended, result, says};

    async fn turn(place: &TestSession, turn: u64) {
        let journal = place.journal();
        let call = [
            calls(&["a"]),
            JournalEntry::CallStarted { place: 0 },
            JournalEntry::CallsFinished(vec![result("read")]),
        ];
        let all = [asked(&format!("question {turn}"))].into_iter().chain(call);
        for entry in all.chain([says(&format!("answer {turn}")), ended()]) {
            journal.add(turn, entry).await.unwrap();
        }
    }

    /// The questions that a model sees.
    async fn questions(place: &TestSession) -> Vec<String> {
        let (past, _) = place.journal().past().await.unwrap();
        let question = |message: &Message| match message {
            Message::User { text } => Some(text.clone()),
            _ => None,
        };
        past.iter().filter_map(|past| question(&past.message)).collect()
    }

    // Promises: AGENT-124
    #[tokio::test]
    async fn what_was_undone_is_stored_and_no_model_sees_it() {
        let place = TestSession::new().await;
        for number in 1..=4 {
            turn(&place, number).await;
        }
        let undone = undo(&*place.sessions, place.id, 2).await.unwrap().unwrap();
        assert_eq!(undone, UndoneTurns { turns: 2, request: "question 3".to_owned(), calls: 2 });
        assert_eq!(questions(&place).await, ["question 1", "question 2"]);
        // Numbers of turns are not used again.
        let position = place.look().await;
        assert_eq!((position.last_turn, position.unfinished), (4, None));
        turn(&place, 5).await;
        assert_eq!(questions(&place).await, ["question 1", "question 2", "question 5"]);
        let all = place.sessions.messages(place.id, View::All, &PageRequest::first(1000)).await.unwrap();
        assert!(all.items.iter().any(|message| message.content == "question 3"));
        let shown = crate::journal::client_messages(&all.items);
        assert!(
            shown.iter().any(|message| message.content.contains("took back what was said from turn 3 on"))
        );
        // A summary stands for what is left, and not for what was undone.
        place
            .journal()
            .summarized(8, Summary { text: "so far".to_owned(), ..Summary::default() })
            .await
            .unwrap();
        assert_eq!(questions(&place).await, ["question 5"]);
        let undone = undo(&*place.sessions, place.id, 9).await.unwrap().unwrap();
        assert_eq!((undone.turns, undone.request.as_str()), (1, "question 5"));
        assert_eq!(questions(&place).await, [""; 0]);
        assert_eq!(undo(&*place.sessions, place.id, 1).await.unwrap(), None);
        turn(&place, 6).await;
        assert_eq!(questions(&place).await, ["question 6"]);
    }
}
