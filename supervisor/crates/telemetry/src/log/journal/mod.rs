//! systemd's journal, by its native protocol: one datagram an entry, `NAME=value` a line.
//!
//! | field | what |
//! |---|---|
//! | `MESSAGE` | the line's text |
//! | `PRIORITY` | 3 error, 4 warn, 6 info, 7 debug and trace |
//! | `SYSLOG_IDENTIFIER` | the program: `talon` |
//! | `TALON_TARGET` | where in the program it was logged; `plugin` for a plugin's own lines |
//! | `TALON_…` | every field of the line, by its name in capitals: `TALON_PLUGIN`, `TALON_CALL_ID` |

mod socket;

use talon_sanitize::Raw;
use tracing::Level;

pub(crate) use self::socket::{Journal, stderr_is_the_journal};
use super::line::Line;

/// The longest entry, in bytes: well below the kernel's default limit of a datagram (208 KiB), so that no
/// entry needs a separate file. Longer entries are cut, starting with the last field.
const MAX_ENTRY_BYTES: usize = 64 << 10;
/// The longest field name that the journal accepts.
const MAX_NAME_BYTES: usize = 64;
/// The program's name in the journal.
const IDENTIFIER: &str = "talon";

/// The line as a journal entry, neutralized field by field.
pub(crate) fn entry(line: &Line) -> Vec<u8> {
    let mut entry = Vec::with_capacity(512);
    // Fields with a bounded length go first, so that only long ones are cut.
    field(&mut entry, "PRIORITY", priority(line.level));
    field(&mut entry, "SYSLOG_IDENTIFIER", IDENTIFIER);
    text(&mut entry, "TALON_TARGET", &line.target);
    text(&mut entry, "MESSAGE", &line.message);
    for (key, value) in line.fields.iter() {
        match value.as_str() {
            Some(value) => text(&mut entry, &name(key), value),
            None => field(&mut entry, &name(key), &value.to_string()),
        }
    }
    entry
}

/// Adds untrusted text as one line.
fn text(entry: &mut Vec<u8>, name: &str, value: &str) {
    field(entry, name, &Raw::from(value).line());
}

/// Adds a value without line breaks. It is cut if it does not fit, and left out if there is no room at all.
fn field(entry: &mut Vec<u8>, name: &str, value: &str) {
    const CUT: &str = "…";
    let around = name.len() + "=\n".len() + CUT.len();
    let Some(room) = MAX_ENTRY_BYTES.checked_sub(entry.len() + around).filter(|room| *room > 0) else {
        return;
    };
    entry.extend_from_slice(name.as_bytes());
    entry.push(b'=');
    entry.extend_from_slice(&value.as_bytes()[..value.floor_char_boundary(room)]);
    if value.len() > room {
        entry.extend_from_slice(CUT.as_bytes());
    }
    entry.push(b'\n');
}

/// A journal field name: capital letters, digits and `_`.
fn name(key: &str) -> String {
    let capitals = key.bytes().map(|byte| match byte.to_ascii_uppercase() {
        byte if byte.is_ascii_uppercase() || byte.is_ascii_digit() => char::from(byte),
        _ => '_',
    });
    "TALON_".chars().chain(capitals).take(MAX_NAME_BYTES).collect()
}

fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        _ => "7",
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
