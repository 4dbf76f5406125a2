//! Appends to a session that can be checked for completeness.

use sha2::{Digest as _, Sha256};
use talon_store::{NewMessage, Role};

/// Words of a digest in one message. Every word is also indexed, which is most of the work: with these sizes,
/// one append changes from a few pages of the database to some dozens.
const SIZES: [usize; 4] = [1, 4, 16, 64];

/// The messages that one writer appends at once as its `number`-th batch: one to four, whose number and
/// length follow from the arguments.
#[must_use]
pub fn batch(writer: &str, number: u32) -> Vec<NewMessage> {
    let length = 1 + number as usize % 4;
    let of = |part| NewMessage::text(Role::User, content(writer, number, part, length));
    (0..length).map(of).collect()
}

/// The content of one message: its writer, its position, and a digest of them, repeated to the length.
fn content(writer: &str, number: u32, part: usize, length: usize) -> String {
    let head = format!("{writer} {number} {part} {length}");
    let digest: String = Sha256::digest(&head).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let words = SIZES[(number as usize + part) % SIZES.len()];
    format!("{head}{}", format!(" {digest}").repeat(words))
}

/// The batch that begins with this message.
///
/// # Errors
/// The message, if it is not the complete first message of a batch.
pub fn first_of(content: &str) -> Result<(String, u32), String> {
    let wrong = || content.chars().take(200).collect::<String>();
    let mut words = content.split(' ');
    let writer = words.next().ok_or_else(wrong)?;
    let number = words.next().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let first = batch(writer, number).swap_remove(0);
    if first.content == content { Ok((writer.to_owned(), number)) } else { Err(wrong()) }
}
