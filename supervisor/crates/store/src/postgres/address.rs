//! The TLS options in an address. `sslmode=verify-full` and `sslrootcert` are libpq options that the client
//! library does not know, so they are removed from the address before the library parses it.

use std::borrow::Cow;
use std::ops::Range;

/// An address without its options for verifying the server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Address {
    /// The rest, for the client library.
    pub(super) rest: String,
    /// The last `sslmode`, including values that the library knows.
    pub(super) ssl_mode: Option<String>,
    /// The last `sslrootcert`.
    pub(super) root_cert: Option<String>,
}

impl Address {
    /// Removes the options. A malformed address is left to the library, which refuses it.
    pub(super) fn parse(text: &str) -> Self {
        let mut address = Self::default();
        let mut kept_from = 0;
        for Pair { at, key, value } in pairs(text) {
            match &*key {
                "sslmode" => address.ssl_mode = Some(value),
                "sslrootcert" => address.root_cert = Some(value),
                _ => continue,
            }
            address.rest.push_str(&text[kept_from..at.start]);
            kept_from = at.end;
        }
        address.rest.push_str(&text[kept_from..]);
        address
    }
}

struct Pair<'a> {
    /// The range including the separator behind it.
    at: Range<usize>,
    key: Cow<'a, str>,
    value: String,
}

fn pairs(text: &str) -> Vec<Pair<'_>> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        query_pairs(text)
    } else {
        keyword_pairs(text)
    }
}

/// The pairs after the question mark of `postgresql://user:password@host/database?key=value&key=value`. As in
/// the library, everything before the first `@` is a user and a password, which may contain a question mark.
fn query_pairs(text: &str) -> Vec<Pair<'_>> {
    let host = text.find('@').map_or(0, |at| at + 1);
    let Some(begin) = text[host..].find('?').map(|at| host + at + 1) else { return Vec::new() };
    let mut pairs = Vec::new();
    let mut from = begin;
    for part in text[begin..].split('&') {
        let at = from..(from + part.len() + 1).min(text.len());
        from = at.end;
        if let Some((key, value)) = part.split_once('=') {
            pairs.push(Pair { at, key: key.into(), value: decoded(value) });
        }
    }
    pairs
}

/// Decodes percent escapes: `%2F` is a slash. Invalid escapes stay as they are.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%').and_then(|code| hex::decode(code).ok());
        match code.as_deref() {
            Some(&[byte]) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The pairs of `key=value key='a value'`, with a backslash before a quote or a backslash.
fn keyword_pairs(text: &str) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    let mut characters = text.char_indices().peekable();
    loop {
        while characters.next_if(|(_, character)| character.is_whitespace()).is_some() {}
        let Some(&(start, _)) = characters.peek() else { return pairs };
        let Some((equals, _)) = characters.find(|(_, character)| *character == '=') else { return pairs };
        while characters.next_if(|(_, character)| character.is_whitespace()).is_some() {}
        let quoted = characters.next_if(|(_, character)| *character == '\'').is_some();
        let mut value = String::new();
        let mut end = text.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                '\'' if quoted => {
                    end = at + 1;
                    break;
                }
                space if !quoted && space.is_whitespace() => {
                    end = at;
                    break;
                }
                other => value.push(other),
            }
        }
        pairs.push(Pair { at: start..end, key: text[start..equals].trim_end().into(), value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, Option<String>) {
        let Address { rest, ssl_mode, root_cert } = Address::parse(text);
        (rest, ssl_mode, root_cert)
    }

    #[test]
    fn what_is_said_about_tls_is_taken_out() {
        let full = || Some("verify-full".to_owned());
        for (text, rest, mode, cert) in [
            ("postgresql://u:p@h/d", "postgresql://u:p@h/d", None, None),
            ("postgresql://h/d?sslmode=verify-full", "postgresql://h/d?", full(), None),
            (
                "postgres://u:a?sslmode=no@h/d?sslmode=verify-full&port=1&sslrootcert=%2Fa%20b%zz",
                "postgres://u:a?sslmode=no@h/d?port=1&",
                full(),
                Some("/a b%zz"),
            ),
            ("host=h  sslmode=verify-full user=u", "host=h   user=u", full(), None),
            (
                r"host=h sslrootcert='/it\'s here' password='sslmode=no' sslmode = 'verify-full'",
                "host=h  password='sslmode=no' ",
                full(),
                Some("/it's here"),
            ),
            (r"password=a\ sslmode=no", r"password=a\ sslmode=no", None, None),
            ("mysql://h", "mysql://h", None, None),
            ("", "", None, None),
            ("=", "=", None, None),
        ] {
            assert_eq!(parsed(text), (rest.to_owned(), mode, cert.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn what_is_left_is_an_address() {
        for text in [
            "postgresql://u:p@h/d?sslmode=verify-full",
            "postgresql://u:p@h/d?sslmode=verify-full&port=1&sslrootcert=/a",
            "postgresql://u:p@h/d?connect_timeout=3&sslmode=verify-full",
            "host=h sslrootcert='/it\\'s here' sslmode = verify-full user=u",
        ] {
            let rest = Address::parse(text).rest;
            assert!(rest.parse::<tokio_postgres::Config>().is_ok(), "{rest}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "([a-z]{0,3}|sslmode|sslrootcert|postgres://|[=&?@' %é\\\\]){0,12}") {
            Address::parse(&text);
        }
    }
}
