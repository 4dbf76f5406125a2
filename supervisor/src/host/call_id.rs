//! Ids of calls: the caller's, if it chose a decent one, or else a new one.

use tonic::Status;
use ulid::Ulid;

/// The longest id: room for a UUID, a trace id and a prefix.
const MAX_CALL_ID_BYTES: usize = 128;

/// The two names of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallId {
    /// What the caller knows it by.
    pub(super) asked: String,
    /// What it goes by inside: in logs, events and on the plugin's wire. No other call ever has it.
    pub(super) unique: String,
}

/// The id of a call. A new one is a ULID, so that ids sort by time; one that the caller chose gets a ULID behind it.
///
/// Nothing keeps callers from choosing the same id twice. A plugin that keeps its answers by id, and is late with one,
/// would answer the second call with what belongs to the first, and nobody could tell. With an id that no other call
/// has, an answer to another call is one: `validate` refuses it. To refuse the second call instead would not help once
/// the first is over, and would let one caller keep ids from another.
///
/// An id ends up in logs, in metrics' exemplars and on the plugin's wire, so its characters are limited.
pub(super) fn call_id(asked: String) -> Result<CallId, Status> {
    let new = Ulid::generate().to_string();
    if asked.is_empty() {
        return Ok(CallId { asked: new.clone(), unique: new });
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if asked.len() > MAX_CALL_ID_BYTES || !asked.bytes().all(plain) {
        return Err(Status::invalid_argument(format!(
            "call_id: use at most {MAX_CALL_ID_BYTES} characters of A-Z, a-z, 0-9, '_', '.', ':' and '-', or leave it \
             empty and get one"
        )));
    }
    // A new id alone has no dot, so that nobody can choose one that another call gets.
    Ok(CallId { unique: format!("{asked}.{new}"), asked })
}

/// What a caller knows the call by that goes by this id inside.
pub(super) fn asked(unique: &str) -> &str {
    match unique.rsplit_once('.') {
        Some((asked, new)) if Ulid::from_string(new).is_ok() => asked,
        _ => unique,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_id_is_replaced_and_new_ids_differ() {
        let (first, second) = (call_id(String::new()).unwrap(), call_id(String::new()).unwrap());
        assert_eq!((first.asked.len(), &first.unique), (26, &first.asked));
        assert_ne!(first, second);
    }

    #[test]
    fn the_same_id_chosen_twice_is_two_ids_inside() {
        let (first, second) = (call_id("c1".into()).unwrap(), call_id("c1".into()).unwrap());
        assert_eq!(first.asked, second.asked);
        assert_ne!(first.unique, second.unique);
        assert!(first.unique.starts_with("c1."), "{first:?}");
        // What another call goes by inside can be chosen, and is another id all the same.
        let copied = call_id(first.unique.clone()).unwrap();
        assert_ne!(copied.unique, first.unique);
        assert_eq!(
            (asked(&first.unique), asked(&copied.unique), asked("a.b")),
            ("c1", copied.asked.as_str(), "a.b")
        );
    }

    #[test]
    fn ids_that_could_forge_a_log_line_are_refused() {
        assert_eq!(call_id("req-1:a.b_c".into()).unwrap().asked, "req-1:a.b_c");
        assert!(call_id("x".repeat(128)).is_ok());
        for bad in ["a b", "a\nb", "ä", "a/b", &"x".repeat(129)] {
            let status = call_id(bad.to_owned()).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            assert!(status.message().len() < 300);
        }
    }
}
