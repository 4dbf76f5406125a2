//! Appends to a session that show when they are not whole.

use sha2::{Digest as _, Sha256};
use talon_store::{NewMessage, Role};

/// Words of a digest in one message. Every word is also indexed, which is most of the work: with these, one append changes
/// a few pages of the database to some dozen.
const SIZES: [usize; 4] = [1, 4, 16, 64];

/// The messages that one writer appends at once as its `number`-th: one to four, and which and how long follow from these
/// two.
#[must_use]
pub fn batch(writer: &str, number: u32) -> Vec<NewMessage> {
    let length = 1 + number as usize % 4;
    let of = |part| NewMessage::text(Role::User, content(writer, number, part, length));
    (0..length).map(of).collect()
}

/// What one of them says: whose it is, which of how many, and as much of a digest of that as it is long.
fn content(writer: &str, number: u32, part: usize, length: usize) -> String {
    let head = format!("{writer} {number} {part} {length}");
    let digest: String = Sha256::digest(&head).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let words = SIZES[(number as usize + part) % SIZES.len()];
    format!("{head}{}", format!(" {digest}").repeat(words))
}

/// Whose batch begins with this message.
///
/// # Errors
/// The message, if it is no batch's first, whole one.
pub fn first_of(content: &str) -> Result<(String, u32), String> {
    let wrong = || content.chars().take(200).collect::<String>();
    let mut words = content.split(' ');
    let writer = words.next().ok_or_else(wrong)?;
    let number = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let first = batch(writer, number).swap_remove(0);
    if first.content == content { Ok((writer.to_owned(), number)) } else { Err(wrong()) }
}
