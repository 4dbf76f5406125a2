//! The message: headers, and the notification as plain text.

use lettre::Message;
use lettre::message::SinglePart;
use lettre::message::header::{HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};
use talon_sdk::Event;
use talon_sink::peer_text::bounded_line;
use talon_sink::text::{Plain, head, text};

use crate::account::Account;

/// The longest subject after its prefix, in characters: what mail programs show, and some more.
const MAX_SUBJECT_CHARS: usize = 150;
/// The longest text, in UTF-16 units: the details of one event, or a digest of 100, whole.
const MAX_TEXT_UNITS: usize = 128 << 10;
/// The longest id that becomes a Message-ID as it is; of others, it is a digest.
const MAX_ID_BYTES: usize = 64;

/// A message that cannot be made: a defect, since the addresses were checked and everything else is encoded.
pub(crate) type MessageError = lettre::error::Error;

/// The message about an event, or about the events of a digest.
pub(crate) fn message(account: &Account, event: &Event, events: &[Event]) -> Result<Message, MessageError> {
    let subject = format!("{} {}: {}", account.subject_prefix, head(event), event.summary);
    let most = account.subject_prefix.chars().count() + MAX_SUBJECT_CHARS;
    let automatic =
        HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
    let mut builder = Message::builder()
        .from(account.from.clone())
        .subject(bounded_line(&subject, most))
        .date_now()
        .message_id(Some(message_id(account, &event.id)))
        // So that nobody's vacation answers (RFC 3834).
        .raw_header(automatic);
    for receiver in &account.to {
        builder = builder.to(receiver.clone());
    }
    builder.singlepart(SinglePart::plain(text(event, events, &Plain, MAX_TEXT_UNITS)))
}

/// The same id for each attempt to deliver an event, by which a mail program drops repeats.
pub(crate) fn message_id(account: &Account, id: &str) -> String {
    let plain =
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let id = if plain { id.to_owned() } else { hex::encode(Sha256::digest(id.as_bytes())) };
    format!("<{id}@{}>", account.from.email.domain())
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
