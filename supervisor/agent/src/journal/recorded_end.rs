//! The end of a turn as its journal has it, for a client that asks the same again.

use talon_proto::agent::chunk::Kind as Chunk;
use talon_proto::agent::event::Kind;
use talon_store::{Message, PageRequest, Session, Sessions, View};

use super::fact::request_key;
use super::log::store_error;
use super::record::request_turn;
use super::{EventTranslator, JournalError};

/// Messages read at once.
const PAGE: u32 = 100;

/// The message that a client gave this name in a session, and its turn. `None` if there is none.
///
/// # Errors
/// [`JournalError`]
pub async fn find_request(
    sessions: &dyn Sessions,
    session: &Session,
    client_id: &str,
) -> Result<Option<(Message, u64)>, JournalError> {
    let found = sessions.keyed(session.id, &request_key(client_id)).await.map_err(store_error)?;
    Ok(found.and_then(|message| request_turn(&message).map(|turn| (message, turn))))
}

/// The end of the turn that this message began, also if a summary stands for it. `None` if it has none.
///
/// # Errors
/// [`JournalError`]
pub async fn recorded_end(
    sessions: &dyn Sessions,
    session: &Session,
    request: &Message,
    turn: u64,
) -> Result<Option<Chunk>, JournalError> {
    let mut translator = EventTranslator::default();
    let (mut at, mut answer) = (request.sequence.saturating_sub(1), String::new());
    loop {
        let page = PageRequest::after_message(at, PAGE);
        let page = sessions.messages(session.id, View::All, &page).await.map_err(store_error)?;
        let events = page.items.iter().flat_map(|message| translator.events(session, message));
        for event in events.filter(|event| event.turn == turn) {
            match event.kind {
                Some(Kind::Answer(said)) => answer = said.text,
                Some(Kind::Done(done)) => {
                    return Ok(Some(Chunk::Done(talon_proto::agent::Done { text: answer, ..done })));
                }
                Some(Kind::Error(error)) => return Ok(Some(Chunk::Error(error))),
                _ => {}
            }
        }
        match page.items.last() {
            Some(last) if page.next.is_some() => at = last.sequence,
            _ => return Ok(None),
        }
    }
}
