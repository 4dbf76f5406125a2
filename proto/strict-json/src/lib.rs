//! JSON that all readers read alike: valid, with each key once in its object, and nested to a bounded depth.
//!
//! Readers differ in which of two equal keys counts. Text that is checked by one and used by another must not
//! have them, or what was checked is not what is used. The arguments of calls and structured answers are held to this.
//!
//! ```
//! assert!(talon_strict_json::check(r#"{"a": [1, {"b": null}]}"#).is_ok());
//! let error = talon_strict_json::check(r#"{"a": 1, "\u0061": 2}"#).unwrap_err();
//! assert!(error.to_string().starts_with("the key \"a\" stands there twice"));
//! ```

mod keys;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::keys::{KeySeed, KeySet};

/// How deep arrays and objects may nest. Arguments of tools nest below 10 and their answers below 20; every level
/// costs stack while parsing. Deeper text is refused.
pub const MAX_DEPTH: usize = 64;
/// How much of a key an error repeats, in bytes.
const MAX_SHOWN_KEY_BYTES: usize = 64;

/// Checks that the text is one JSON value, without building it.
///
/// # Errors
/// It is no JSON, nests deeper than [`MAX_DEPTH`], has a key twice in an object at any level, or a number that is
/// beyond what a 64-bit float holds (`1e999`). The message names the place, and at most 64 bytes of a key.
pub fn check(json: &str) -> Result<(), serde_json::Error> {
    let mut parser = serde_json::Deserializer::from_str(json);
    Walk { levels_left: MAX_DEPTH }.deserialize(&mut parser)?;
    parser.end()
}

/// Reads a value and drops it.
#[derive(Clone, Copy)]
struct Walk {
    levels_left: usize,
}

impl Walk {
    fn descend<E: Error>(self) -> Result<Self, E> {
        match self.levels_left.checked_sub(1) {
            Some(levels_left) => Ok(Self { levels_left }),
            None => Err(E::custom(format_args!("it nests deeper than {MAX_DEPTH} levels"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let inner = self.descend()?;
        while items.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.descend()?;
        let mut keys = KeySet::default();
        while let Some(key) = entries.next_key_seed(KeySeed)? {
            if let Err(twice) = keys.insert(key) {
                return Err(A::Error::custom(format_args!(
                    "the key {:?} stands there twice",
                    shorten(&twice)
                )));
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

fn shorten(key: &str) -> String {
    match key.char_indices().find(|(at, _)| *at >= MAX_SHOWN_KEY_BYTES) {
        Some((at, _)) => format!("{}…", &key[..at]),
        None => key.to_owned(),
    }
}

#[cfg(test)]
mod tests;
