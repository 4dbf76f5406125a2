//! Rewrites JSON and keeps its shape: only string tokens are rewritten, everything between them is copied.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::candidates::Candidates;
use crate::prefilter;

/// How deep arrays and objects may nest. Tools' answers nest under 20; every level costs stack while parsing.
pub const MAX_JSON_DEPTH: usize = 64;
/// How large structured content may be, in bytes: as much as one message of the transport may hold by
/// default.
pub const MAX_JSON_BYTES: usize = 8 << 20;

/// Whether the text is one JSON value within the limits, with no key twice in an object.
pub(crate) fn is_valid(json: &str) -> bool {
    if json.len() > MAX_JSON_BYTES {
        return false;
    }
    let mut parser = serde_json::Deserializer::from_str(json);
    JsonValidator { depth: MAX_JSON_DEPTH }.deserialize(&mut parser).is_ok() && parser.end().is_ok()
}

/// Which strings [`rewrite`] passes to `sanitize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StringFilter {
    /// Every one.
    All,
    /// Those in which some shape could begin. Most strings are short, and scanning each separately would cost
    /// more than finding the candidates in the whole text.
    Suspicious,
}

/// Rewrites the strings of valid JSON, keys too. `sanitize` gets each one decoded.
pub(crate) fn rewrite<'t>(
    json: &'t str,
    strings: StringFilter,
    mut sanitize: impl FnMut(&str) -> Option<String>,
) -> Cow<'t, str> {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    let mut candidates = Candidates::new(bytes);
    // In valid JSON every quote outside a string begins one.
    while let Some(open) = memchr::memchr(b'"', &bytes[at..]).map(|found| at + found) {
        let (close, escapes) = closing_quote(bytes, open + 1);
        at = close + 1;
        // Escapes are only decoded later, so a string with one counts. The closing quote behind a string
        // cannot begin anything that the end of the text could not.
        if strings == StringFilter::Suspicious
            && !escapes
            && candidates.next(open + 1).is_none_or(|candidate| candidate >= close)
            && !prefilter::may_begin_turn(bytes, open + 1)
        {
            continue;
        }
        let raw = &json[open + 1..close];
        let decoded = if escapes {
            match serde_json::from_str::<String>(&json[open..at]) {
                Ok(decoded) => Cow::Owned(decoded),
                Err(_) => continue,
            }
        } else {
            Cow::Borrowed(raw)
        };
        if let Some(clean) = sanitize(&decoded) {
            out.push_str(&json[copied..open]);
            write_string(&mut out, &clean);
            copied = at;
        }
        if at >= bytes.len() {
            break;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

/// The closing quote, or the end: valid JSON has one. And whether there are backslashes in front of it.
fn closing_quote(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let begin = at;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        if bytes[at + found] == b'"' {
            return (at + found, at > begin);
        }
        at += found + 2;
    }
    (bytes.len().saturating_sub(1), at > begin)
}

fn write_string(out: &mut String, text: &str) {
    use fmt::Write as _;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\x1f' => {
                let written = write!(out, "\\u{:04x}", u32::from(c));
                debug_assert!(written.is_ok());
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Walks a value without building it; fails if it is too deep or has a duplicate key.
#[derive(Clone, Copy)]
struct JsonValidator {
    depth: usize,
}

impl JsonValidator {
    fn descend<E: Error>(self) -> Result<Self, E> {
        self.depth.checked_sub(1).map(|depth| Self { depth }).ok_or_else(|| E::custom("too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for JsonValidator {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonValidator {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.descend()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.descend()?;
        let mut seen = KeySet::default();
        while let Some(key) = entries.next_key_seed(KeySeed)? {
            if !seen.insert(key) {
                return Err(A::Error::custom("a key occurs twice"));
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// The keys of one object. Nearly all objects have few, for which comparing is faster than hashing.
#[derive(Default)]
struct KeySet<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> KeySet<'de> {
    /// From this number on hashing is cheaper.
    const FEW: usize = 16;

    /// Returns false if the key is there already.
    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

/// Reads a key, borrowed if it has no escapes.
struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
