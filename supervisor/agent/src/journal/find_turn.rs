//! One turn of a session, by its number.

use talon_store::{SessionId, Sessions};

use super::{JournalEntry, JournalError, TurnOutcome, log};

/// A turn as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTurn {
    /// What was asked, as it was asked.
    pub request: String,
    /// What the person got; empty without an answer.
    pub answer: String,
    /// How it ended; `None` for a turn that runs or was interrupted.
    pub outcome: Option<TurnOutcome>,
}

/// Finds a turn. `None` if it has not begun, or is only in a summary.
///
/// # Errors
/// [`JournalError`]
pub async fn find_turn(
    sessions: &dyn Sessions,
    id: SessionId,
    turn: u64,
) -> Result<Option<FoundTurn>, JournalError> {
    let log = log::read(sessions, id).await?;
    let mut found = None;
    for entry in log.records.into_iter().filter(|record| record.turn == turn).map(|record| record.entry) {
        match (entry, &mut found) {
            (JournalEntry::Received { text, .. }, None) => {
                found = Some(FoundTurn { request: text, answer: String::new(), outcome: None });
            }
            (JournalEntry::Asked { text, with }, None) => {
                // Hooks may have put another message in its place.
                let original = with.hooks.and_then(|hooks| hooks.original);
                let request = original.unwrap_or(text);
                found = Some(FoundTurn { request, answer: String::new(), outcome: None });
            }
            // Of one that is withheld, its hooks say what the person gets.
            (JournalEntry::Answered { answer, withheld: false, .. }, Some(found))
                if answer.calls.is_empty() =>
            {
                found.answer = answer.text;
            }
            (JournalEntry::AnswerHooked(hooked), Some(found)) => found.answer = hooked.text,
            (JournalEntry::Ended(outcome), Some(found)) => found.outcome = Some(outcome),
            _ => {}
        }
    }
    Ok(found)
}
