//! Ids of calls: the caller's, if it chose a decent one, or else a new one.

use tonic::Status;
use ulid::Ulid;

/// The longest id: room for a UUID, a trace id and a prefix.
const MAX_CALL_ID_BYTES: usize = 128;

/// The id of a call. A new one is a ULID, so that ids sort by time.
///
/// An id ends up in logs, in metrics' exemplars and on the plugin's wire, so its characters are limited.
pub(super) fn call_id(asked: String) -> Result<String, Status> {
    if asked.is_empty() {
        return Ok(Ulid::generate().to_string());
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if asked.len() > MAX_CALL_ID_BYTES || !asked.bytes().all(plain) {
        return Err(Status::invalid_argument(format!(
            "call_id: use at most {MAX_CALL_ID_BYTES} characters of A-Z, a-z, 0-9, '_', '.', ':' and '-', or leave it \
             empty and get one"
        )));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_id_is_replaced_and_new_ids_differ() {
        let (first, second) = (call_id(String::new()).unwrap(), call_id(String::new()).unwrap());
        assert_eq!(first.len(), 26);
        assert_ne!(first, second);
    }

    #[test]
    fn ids_that_could_forge_a_log_line_are_refused() {
        assert_eq!(call_id("req-1:a.b_c".into()).unwrap(), "req-1:a.b_c");
        assert!(call_id("x".repeat(128)).is_ok());
        for bad in ["a b", "a\nb", "ä", "a/b", &"x".repeat(129)] {
            let status = call_id(bad.to_owned()).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            assert!(status.message().len() < 300);
        }
    }
}
