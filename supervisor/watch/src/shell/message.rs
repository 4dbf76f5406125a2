//! The datagram of a shell: one command that ended, as one JSON object.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use talon_redact::redact;

use crate::limits::COMMAND_BYTES;

/// The version of the message; a listener that does not know it drops the message, and says so once.
const VERSION: u32 = 1;

/// A command that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShellMessage {
    version: u32,
    /// The command line, redacted, at most [`COMMAND_BYTES`].
    pub(super) command: String,
    /// How many bytes of it are missing.
    pub(super) left_out: u64,
    pub(super) exit_code: i32,
    /// Absolute.
    pub(super) directory: PathBuf,
    pub(super) duration_ms: u64,
}

impl ShellMessage {
    /// None if nothing is to be sent: an empty command, or one that its person began with a space.
    pub(super) fn new(command: &str, exit_code: i32, directory: PathBuf, duration_ms: u64) -> Option<Self> {
        let command = command.trim_end_matches(['\n', '\r']);
        if command.trim().is_empty() || command.starts_with([' ', '\t']) {
            return None;
        }
        // Redacted as a whole: half a secret at the end would not be told.
        let redacted = redact(command).text;
        let end = redacted.floor_char_boundary(COMMAND_BYTES);
        Some(Self {
            version: VERSION,
            command: redacted[..end].to_owned(),
            left_out: u64::try_from(redacted.len() - end).unwrap_or(u64::MAX),
            exit_code,
            directory,
            duration_ms,
        })
    }

    /// The datagram's bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        // A struct of texts and numbers cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a datagram; none if it is no message of this version.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let message: Self = serde_json::from_slice(bytes).ok()?;
        let is_good = message.version == VERSION
            && message.directory.is_absolute()
            && message.command.len() <= COMMAND_BYTES
            && !message.command.starts_with([' ', '\t']);
        is_good.then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::MESSAGE_BYTES;

    // Promises: SHADOW-74
    #[test]
    fn commands_with_a_leading_space_and_secrets_are_not_sent() {
        let message = |command: &str| ShellMessage::new(command, 1, "/w".into(), 5);
        for command in [" make", "\tmake", "", "   ", "\n"] {
            assert_eq!(message(command), None, "{command:?}");
        }
        let sent = message("deploy --token abcd1234efgh\n").unwrap();
        assert_eq!(sent.command, "deploy --token [redacted: secret option]");
        assert_eq!(ShellMessage::read(&sent.bytes()), Some(sent));
    }

    // Promises: SHADOW-74
    #[test]
    fn foreign_datagrams_are_refused() {
        for bytes in [
            &b""[..],
            b"{}",
            b"\xff\xfe",
            b"[1]",
            br#"{"version":2,"command":"x","left_out":0,"exit_code":0,"directory":"/","duration_ms":0}"#,
        ] {
            assert_eq!(ShellMessage::read(bytes), None);
        }
        let relative =
            br#"{"version":1,"command":"x","left_out":0,"exit_code":0,"directory":"w","duration_ms":0}"#;
        assert_eq!(ShellMessage::read(relative), None);
    }

    proptest! {
        // Promises: SHADOW-74
        #[test]
        fn every_message_fits_and_is_read_as_it_was(command in "\\PC{0,200}", times in 1usize..100, code in any::<i32>()) {
            if let Some(message) = ShellMessage::new(&command.repeat(times), code, "/w".into(), 7) {
                prop_assert!(message.bytes().len() <= MESSAGE_BYTES);
                prop_assert_eq!(ShellMessage::read(&message.bytes()), Some(message));
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            ShellMessage::read(&bytes);
        }
    }
}
