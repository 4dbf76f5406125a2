//! Takes a sender's events out of what is told.

use serde_json::Value;

/// What is left of a payload without a sender's events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// It has none of them.
    Unchanged,
    /// It has no others.
    Nothing,
    /// The others.
    Payload {
        /// What is told now.
        payload: String,
        /// How many events went.
        gone: u64,
    },
}

/// A text that each payload holds that has events of this sender, and perhaps others.
pub(crate) fn mark_of(sender: &str) -> String {
    Value::from(sender).to_string()
}

/// Takes the events out of `events` whose field `sender` is this one.
pub(crate) fn without_sender(payload: &str, sender: &str) -> Remainder {
    let Ok(mut parsed) = serde_json::from_str::<Value>(payload) else { return Remainder::Unchanged };
    let Some(events) = parsed.get_mut("events").and_then(Value::as_array_mut) else {
        return Remainder::Unchanged;
    };
    let mut gone = 0_u64;
    events.retain(|event| {
        let is_theirs = event.pointer("/fields/sender").and_then(Value::as_str) == Some(sender);
        if is_theirs {
            gone += event.get("count").and_then(Value::as_u64).unwrap_or(1);
        }
        !is_theirs
    });
    match (gone, events.is_empty()) {
        (0, _) => Remainder::Unchanged,
        (_, true) => Remainder::Nothing,
        (gone, false) => Remainder::Payload { payload: parsed.to_string(), gone },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_events_of_the_sender_go() {
        let of = |sender: &str| format!(r#"{{"fields":{{"sender":"{sender}"}},"count":2}}"#);
        let both = format!(r#"{{"digest":true,"events":[{},{}]}}"#, of("ada"), of("bob"));
        let Remainder::Payload { payload, gone } = without_sender(&both, "ada") else {
            panic!("some are left")
        };
        assert!(
            gone == 2 && payload.contains("bob") && !payload.contains("ada") && payload.contains("digest")
        );
        assert_eq!(without_sender(&payload, "bob"), Remainder::Nothing);
        for other in ["eve", "ad", "a\"da"] {
            assert_eq!(without_sender(&both, other), Remainder::Unchanged);
        }
        assert_eq!(without_sender("ada", "ada"), Remainder::Unchanged);
        assert!(both.contains(&mark_of("ada")));
    }
}
