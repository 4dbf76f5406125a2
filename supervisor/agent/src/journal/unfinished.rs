//! A turn without an end.

use talon_store::{SessionId, Sessions};

use super::{Journal, JournalEntry, JournalError, TurnOptions, TurnOutcome, log};

/// An interrupted turn: the agent ended or was killed while it ran.
#[derive(Debug, Clone, PartialEq)]
pub struct UnfinishedTurn {
    /// Its number in the session.
    pub turn: u64,
    /// The request.
    pub request: String,
    /// The options for this turn alone.
    pub options: TurnOptions,
    /// Its entries; the first is the request: as its hooks let it through, or as they have still to see it.
    pub entries: Vec<JournalEntry>,
}

impl UnfinishedTurn {
    /// A turn of these entries; `None` if its beginning is not among them.
    pub(crate) fn of(turn: u64, mut entries: Vec<JournalEntry>) -> Option<Self> {
        // What its hooks let through stands in place of what they got.
        if let [JournalEntry::Received { .. }, JournalEntry::Asked { .. }, ..] = entries[..] {
            entries.remove(0);
        }
        let (JournalEntry::Received { text, with } | JournalEntry::Asked { text, with }) = entries.first()?
        else {
            return None;
        };
        Some(Self { turn, request: text.clone(), options: (**with).clone(), entries })
    }

    /// Whether its filters and request hooks have still to see the message.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self.entries.first(), Some(JournalEntry::Received { .. }))
    }
}

/// The position of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionPosition {
    /// The number of its last turn; 0 before the first.
    pub last_turn: u64,
    /// That turn, if it has no end.
    pub unfinished: Option<UnfinishedTurn>,
}

/// The last turn of a session, if it has no end.
///
/// # Errors
/// [`JournalError`]
pub async fn unfinished(
    sessions: &dyn Sessions,
    id: SessionId,
) -> Result<Option<UnfinishedTurn>, JournalError> {
    Ok(session_position(sessions, id).await?.unfinished)
}

/// Returns the position of a session: its next turn has the number after the last.
///
/// # Errors
/// [`JournalError`]
pub async fn session_position(
    sessions: &dyn Sessions,
    id: SessionId,
) -> Result<SessionPosition, JournalError> {
    let log = log::read(sessions, id).await?;
    let last_turn = log.last_turn;
    let entries: Vec<JournalEntry> = log
        .records
        .into_iter()
        .filter(|record| record.turn == last_turn)
        .map(|record| record.entry)
        .collect();
    let unfinished = match entries.last() {
        Some(JournalEntry::Ended(_)) => None,
        _ => UnfinishedTurn::of(last_turn, entries),
    };
    Ok(SessionPosition { last_turn, unfinished })
}

/// What the journal has of one turn, without its end: to go on with it, or to come to the same end again.
///
/// # Errors
/// [`JournalError`]
pub async fn turn_entries(
    sessions: &dyn Sessions,
    id: SessionId,
    turn: u64,
) -> Result<Option<UnfinishedTurn>, JournalError> {
    let log = log::read(sessions, id).await?;
    let of_turn = log.records.into_iter().filter(|record| record.turn == turn).map(|record| record.entry);
    let entries: Vec<JournalEntry> =
        of_turn.filter(|entry| !matches!(entry, JournalEntry::Ended(_))).collect();
    Ok(UnfinishedTurn::of(turn, entries))
}

/// Ends an interrupted turn instead of resuming it. `message` is for the person.
///
/// # Errors
/// [`JournalError`]
pub async fn close(journal: &dyn Journal, turn: u64, message: &str) -> Result<(), JournalError> {
    let note = "[The turn was interrupted before a final answer, and was not gone on with. Do not begin it anew unasked.]";
    let ended = TurnOutcome {
        reason: "interrupted".to_owned(),
        message: message.to_owned(),
        note: note.to_owned(),
        ..TurnOutcome::default()
    };
    journal.add(turn, JournalEntry::Ended(ended)).await
}
