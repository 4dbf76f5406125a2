//! Ids outside the agent: nanoids with a prefix. An event that is sent again has the same id, so ids of what is recorded are derived
//! from what they stand for; others are random.

use sha2::{Digest as _, Sha256};

use crate::random;

/// What ids of sessions begin with. The rest is the agent's own id.
const SESSION: &str = "sess_";
/// What the subject of a group begins with. No sender's does.
pub(crate) const GROUP: &str = "group:";

/// The id of a session, for clients.
pub(crate) fn session_id(id: &str) -> String {
    format!("{SESSION}{id}")
}

/// The agent's id of a session, of what a client sent: the same with or without its prefix.
pub(crate) fn agent_session_id(id: &str) -> &str {
    id.strip_prefix(SESSION).unwrap_or(id)
}

/// The channel's own id of a group, of a sender: that of a group is `gw:CHANNEL/group:ID`.
pub(crate) fn group_id(sender: &str) -> Option<&str> {
    let (_, subject) = sender.strip_prefix("gw:")?.split_once('/')?;
    subject.strip_prefix(GROUP)
}

/// A new id of an event that is not recorded.
pub(crate) fn new_message_id() -> String {
    random::id("msg")
}

/// The id of a recorded event or message of a session, by its sequence there.
pub(crate) fn message_id(session: &str, sequence: u64) -> String {
    derived("msg", &[session, &sequence.to_string()])
}

/// The id of a call, by the model's own: those of two sessions may be equal.
pub(crate) fn tool_call_id(session: &str, call: &str) -> String {
    derived("tc", &[session, call])
}

fn derived(prefix: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With the lengths, no two lists of parts are the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    random::id_of(prefix, &hash.finalize())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_same_is_the_same_and_other_things_differ(
            one in (".{0,8}", ".{0,8}"),
            other in (".{0,8}", ".{0,8}"),
        ) {
            let of = |(session, call): &(String, String)| tool_call_id(session, call);
            prop_assert_eq!(of(&one) == of(&other), one == other);
            prop_assert!(of(&one).starts_with("tc_") && of(&one).len() == "tc_".len() + 21);
        }

        #[test]
        fn a_sessions_id_comes_back(id in "[0-9A-Z]{1,26}") {
            let outside = session_id(&id);
            prop_assert_eq!(agent_session_id(&outside), id.as_str());
            prop_assert_eq!(agent_session_id(&id), id.as_str());
        }
    }
}
