//! As whom people on a channel count: `gw:CHANNEL/ID`, as over the gateway.

use std::fmt::Write as _;

use talon_listen::delegation::{is_plain_in_subject, is_subject};

/// What the subject of a group begins with, behind its channel. No sender's does.
const GROUP: &str = "group:";

/// The subject of a sender; `None` if the id is empty, too long, or begins as a group's.
pub(super) fn sender_subject(channel: &str, sender: &str) -> Option<String> {
    if sender.starts_with(GROUP) { None } else { subject(channel, sender) }
}

/// The subject of a group; `None` if the id is empty or too long.
pub(super) fn group_subject(channel: &str, group: &str) -> Option<String> {
    if group.is_empty() { None } else { subject(channel, &format!("{GROUP}{group}")) }
}

fn subject(channel: &str, id: &str) -> Option<String> {
    let mut text = "gw:".to_owned();
    escape(channel, &mut text);
    text.push('/');
    escape(id, &mut text);
    is_subject(&text).then_some(text)
}

fn escape(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if is_plain_in_subject(byte) {
            into.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sender_is_never_a_group() {
        assert_eq!(sender_subject("telegram", "42").as_deref(), Some("gw:telegram/42"));
        assert_eq!(group_subject("telegram", "-100").as_deref(), Some("gw:telegram/group:-100"));
        assert_eq!(sender_subject("telegram", "a b/ü").as_deref(), Some("gw:telegram/a%20b%2F%C3%BC"));
        for id in ["", "group:-100", &"x".repeat(300)] {
            assert_eq!(sender_subject("telegram", id), None, "{id}");
        }
        assert_eq!(group_subject("telegram", ""), None);
    }

    proptest! {
        // Promises: GW-204
        #[test]
        fn two_people_are_never_one_subject(one in ".{1,20}", other in ".{1,20}", channel in "[a-z]{1,8}") {
            let of = |id: &str| sender_subject(&channel, id);
            if let (Some(a), Some(b)) = (of(&one), of(&other)) {
                prop_assert_eq!(a == b, one == other);
                prop_assert_ne!(Some(a), group_subject(&channel, &other));
            }
        }
    }
}
