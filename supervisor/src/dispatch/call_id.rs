//! Ids of calls: chosen by the caller if valid, or else generated.

use tonic::Status;
use ulid::Ulid;

/// The longest id: room for a UUID, a trace id and a prefix.
const MAX_CALL_ID_BYTES: usize = 128;

/// The two ids of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallId {
    /// The id that the caller uses.
    pub(super) requested: String,
    /// The unique internal id: in logs, events and on the plugin's wire.
    pub(super) unique: String,
}

/// The ids of a call. A generated id is a ULID, so that ids sort by time. An id chosen by the caller gets a
/// ULID appended.
///
/// Callers can choose the same id twice. A plugin that stores its answers by id, and is late with one, would
/// answer the second call with the first one's answer, and the mistake could not be detected. With unique
/// ids, `validate` refuses such an answer. Refusing the second call instead would not help once the first one
/// is over, and would let one caller block the ids of another.
///
/// An id ends up in logs, in metrics' exemplars and on the plugin's wire, so its characters are limited.
pub(super) fn call_id(asked: String) -> Result<CallId, Status> {
    let new = Ulid::generate().to_string();
    if asked.is_empty() {
        return Ok(CallId { requested: new.clone(), unique: new });
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if asked.len() > MAX_CALL_ID_BYTES || !asked.bytes().all(plain) {
        return Err(Status::invalid_argument(format!(
            "call_id: use at most {MAX_CALL_ID_BYTES} characters of A-Z, a-z, 0-9, '_', '.', ':' and '-', or leave it \
             empty and get one"
        )));
    }
    // A generated id has no dot, so a caller cannot choose an id that becomes equal to a generated one.
    Ok(CallId { unique: format!("{asked}.{new}"), requested: asked })
}

/// The caller's id for an internal id.
pub(crate) fn requested_id(unique: &str) -> &str {
    match unique.rsplit_once('.') {
        Some((asked, new)) if Ulid::from_string(new).is_ok() => asked,
        _ => unique,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HOST-8
    #[test]
    fn an_empty_id_is_replaced_and_new_ids_differ() {
        let (first, second) = (call_id(String::new()).unwrap(), call_id(String::new()).unwrap());
        assert_eq!((first.requested.len(), &first.unique), (26, &first.requested));
        assert_ne!(first, second);
    }

    // Promises: GUARD-61
    #[test]
    fn the_same_id_chosen_twice_is_two_ids_inside() {
        let (first, second) = (call_id("c1".into()).unwrap(), call_id("c1".into()).unwrap());
        assert_eq!(first.requested, second.requested);
        assert_ne!(first.unique, second.unique);
        assert!(first.unique.starts_with("c1."), "{first:?}");
        // A caller may choose another call's internal id; the result is a different id all the same.
        let copied = call_id(first.unique.clone()).unwrap();
        assert_ne!(copied.unique, first.unique);
        assert_eq!(
            (requested_id(&first.unique), requested_id(&copied.unique), requested_id("a.b")),
            ("c1", copied.requested.as_str(), "a.b")
        );
    }

    // Promises: HOST-8
    #[test]
    fn ids_that_could_forge_a_log_line_are_refused() {
        assert_eq!(call_id("req-1:a.b_c".into()).unwrap().requested, "req-1:a.b_c");
        assert!(call_id("x".repeat(128)).is_ok());
        for bad in ["a b", "a\nb", "ä", "a/b", &"x".repeat(129)] {
            let status = call_id(bad.to_owned()).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            assert!(status.message().len() < 300);
        }
    }
}
