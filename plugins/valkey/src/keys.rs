//! Names of keys in the server.
//!
//! A key is a hash with its revision and its value, and a member of one sorted set, whose members of one score are in the order
//! of their bytes. Both are written in one transaction.

/// The field of the revision.
pub(crate) const REVISION: &str = "r";
/// The field of the value.
pub(crate) const VALUE: &str = "v";

/// The hash of a key.
pub(crate) fn row(prefix: &str, key: &[u8]) -> Vec<u8> {
    [prefix.as_bytes(), b":v:", key].concat()
}

/// The sorted set of all keys.
pub(crate) fn index(prefix: &str) -> Vec<u8> {
    [prefix.as_bytes(), b":i"].concat()
}

/// The bounds of a range of members: those that begin with `prefix`, behind `after`.
pub(crate) fn bounds(prefix: &[u8], after: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let from = if after >= prefix && !after.is_empty() {
        [b"(", after].concat()
    } else if prefix.is_empty() {
        b"-".to_vec()
    } else {
        [b"[", prefix].concat()
    };
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX);
    let to = match last {
        Some(at) => [b"(", &prefix[..at], &[prefix[at] + 1]].concat(),
        None => b"+".to_vec(),
    };
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_a_prefix() {
        assert_eq!(bounds(b"a/", b""), (b"[a/".to_vec(), b"(a0".to_vec()));
        assert_eq!(bounds(b"a/", b"a/x"), (b"(a/x".to_vec(), b"(a0".to_vec()));
        assert_eq!(bounds(b"b/", b"a/x"), (b"[b/".to_vec(), b"(b0".to_vec()));
        assert_eq!(bounds(b"", b""), (b"-".to_vec(), b"+".to_vec()));
        assert_eq!(bounds(b"a\xff", b""), (b"[a\xff".to_vec(), b"(b".to_vec()));
        assert_eq!(bounds(b"\xff", b""), (b"[\xff".to_vec(), b"+".to_vec()));
    }
}
