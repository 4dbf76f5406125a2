//! Images and files of a session as YAML: a map of pieces' names and bytes.
//!
//! The agent stores a piece by `SESSION/TIME.DIGEST/PIECE`; a session's file has it without the session.

use talon_store::{Key, SessionId};

use super::entries::{self, Entry, SeenKeys};
use super::node::{Node, Problem};

/// The digits of a time in milliseconds.
const TIME_DIGITS: usize = 13;
/// The digits of a SHA-256.
const DIGEST_DIGITS: usize = 64;
/// The digits of a piece's number.
const PIECE_DIGITS: usize = 2;
/// What stands in the place of the number for what is known of a file.
const ABOUT: &str = "about";

/// The session and the piece of a key; `None` for a key that the agent does not write.
pub(super) fn split(key: &str) -> Option<(SessionId, &str)> {
    let (session, piece) = key.split_once('/')?;
    Some((session.parse().ok()?, piece)).filter(|(_, piece)| is_piece(piece))
}

/// Whether this is `TIME.DIGEST/PIECE`.
fn is_piece(text: &str) -> bool {
    let of_digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let Some((name, piece)) = text.split_once('/') else { return false };
    let Some((time, digest)) = name.split_once('.') else { return false };
    let is_hex = digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    of_digits(time, TIME_DIGITS)
        && digest.len() == DIGEST_DIGITS
        && is_hex
        && (piece == ABOUT || of_digits(piece, PIECE_DIGITS))
}

/// Reads a piece of a session's file. Returns its name for reports, and its entry.
pub(super) fn read(
    session: SessionId,
    key: Node,
    value: Node,
    seen: &mut SeenKeys,
) -> (String, Result<Entry, Problem>) {
    let (record, entry) = entries::read(key, value, seen);
    let checked = entry.and_then(|(at, key, value)| {
        let wrong = |reason: &str| Problem { at, reason: reason.to_owned() };
        if !is_piece(key.as_str()) {
            return Err(wrong("a piece of an image or file is TIME.SHA256/NUMBER"));
        }
        let key = Key::new(format!("{session}/{}", key.as_str()));
        Ok((at, key.map_err(|error| wrong(&error.to_string()))?, value))
    });
    (record, checked)
}
