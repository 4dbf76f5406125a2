//! Shortens JSON that is too large, and keeps its form: long texts and long lists in it are cut, so that
//! programs that know its schema still find what is required.
//!
//! It reads and writes at once and builds nothing, because what comes may be large and made to be.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use talon_sanitize::{FamilyCounts, Sanitized, Sanitizer, prefix};

/// How often it is tried with stricter limits; each time half of what was kept before is kept.
const ROUNDS: u32 = 13;
/// How many items of a list the first try keeps.
const FIRST_MAX_ITEMS: usize = 4096;
/// From this round on objects lose fields, too, which may be required ones: better than nothing of it.
const FIELD_ROUND: u32 = 9;
/// How many fields of an object are kept in that round.
const FIRST_MAX_FIELDS: usize = 64;
/// A text is never cut shorter than this, so that names and ids stay whole.
const MIN_STRING_BYTES: usize = 64;
/// What stands at the end of a text that was cut.
const ELLIPSIS: char = '…';

/// The JSON within a limit; `None` if that cannot be.
pub(super) fn shorten(json: &Sanitized, limit: usize, sanitizer: &Sanitizer) -> Option<Sanitized> {
    (0..ROUNDS).find_map(|round| {
        let max_fields = match round.checked_sub(FIELD_ROUND) {
            Some(over) => FIRST_MAX_FIELDS >> over,
            None => usize::MAX,
        };
        let mut out = String::new();
        let writer = Writer {
            out: &mut out,
            sanitizer,
            limit,
            max_string: (limit >> (round + 1)).max(MIN_STRING_BYTES),
            max_items: (FIRST_MAX_ITEMS >> round).max(1),
            max_fields,
        };
        let mut parser = serde_json::Deserializer::from_str(json);
        writer.deserialize(&mut parser).ok()?;
        // A cut can join what was harmless alone.
        let inert = sanitizer.sanitize_json(&out, &mut FamilyCounts::default())?;
        (inert.len() <= limit).then_some(inert)
    })
}

/// Writes one value; fails when there is more than the limit.
struct Writer<'w> {
    out: &'w mut String,
    sanitizer: &'w Sanitizer,
    limit: usize,
    max_string: usize,
    max_items: usize,
    max_fields: usize,
}

impl Writer<'_> {
    /// For a value inside of this one.
    fn inner(&mut self) -> Writer<'_> {
        Writer { out: &mut *self.out, ..*self }
    }

    fn push<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        self.out.push_str(text);
        if self.out.len() <= self.limit { Ok(()) } else { Err(E::custom("over the limit")) }
    }

    fn push_value<E: serde::de::Error>(&mut self, value: impl Into<Value>) -> Result<(), E> {
        self.push(&value.into().to_string())
    }

    fn push_string<E: serde::de::Error>(&mut self, text: &str, max_bytes: usize) -> Result<(), E> {
        if text.len() <= max_bytes {
            return self.push_value(text);
        }
        let sanitized = self.sanitizer.sanitize(text, &mut FamilyCounts::default());
        let end = self.sanitizer.safe_cut(&sanitized, max_bytes).min(max_bytes);
        let mut kept = prefix(&sanitized, end).to_owned();
        kept.push(ELLIPSIS);
        self.push_value(kept)
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: serde::de::Error>(mut self) -> Result<(), E> {
        self.push("null")
    }
    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<(), E> {
        self.push_value(value)
    }
    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<(), E> {
        self.push_value(value)
    }
    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<(), E> {
        self.push_value(value)
    }
    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        self.push_value(value)
    }
    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<(), E> {
        let max_bytes = self.max_string;
        self.push_string(text, max_bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.push("[")?;
        let mut count = 0;
        while count < self.max_items {
            // Only where there is another item a comma is written; it is taken back where there is none.
            let before = self.out.len();
            if count > 0 {
                self.push(",")?;
            }
            if items.next_element_seed(self.inner())?.is_none() {
                self.out.truncate(before);
                return self.push("]");
            }
            count += 1;
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        self.push("]")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.push("{")?;
        let mut count = 0;
        while let Some(key) = fields.next_key::<String>()? {
            if count >= self.max_fields {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            if count > 0 {
                self.push(",")?;
            }
            // A key that is cut would be another one.
            self.push_string(&key, usize::MAX)?;
            self.push(":")?;
            fields.next_value_seed(self.inner())?;
            count += 1;
        }
        self.push("}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn short(value: &Value, limit: usize) -> Option<Value> {
        let sanitizer = Sanitizer::default();
        let json = sanitizer.sanitize_json(value.to_string(), &mut FamilyCounts::default()).unwrap();
        let found = shorten(&json, limit, &sanitizer)?;
        assert!(found.len() <= limit && sanitizer.is_clean(&found), "{found}");
        Some(serde_json::from_str(&found).unwrap())
    }

    #[test]
    fn texts_and_lists_are_cut_and_all_fields_stay() {
        let rows: Vec<Value> = (0..5000).map(|n| json!({"id": n, "name": "x".repeat(50)})).collect();
        let found = short(&json!({"rows": rows, "total": 5000, "page": "y".repeat(90_000)}), 10_000).unwrap();
        assert_eq!(found["total"], 5000);
        let kept = found["rows"].as_array().unwrap();
        assert!(kept.len() > 20 && kept.iter().all(|row| row["name"] == "x".repeat(50)), "{}", kept.len());
        let page = found["page"].as_str().unwrap();
        assert!(page.ends_with('…') && page.len() > 100, "{page}");
    }

    #[test]
    fn what_fits_is_unchanged_and_what_cannot_fit_is_none() {
        let value = json!({"a": [1, 2.5, null, true, {"b": "text"}], "c": -7});
        assert_eq!(short(&value, 1000), Some(value));
        let wide: serde_json::Map<String, Value> = (0..3000).map(|n| (format!("k{n}"), json!(n))).collect();
        assert!(short(&Value::Object(wide), 500).unwrap().as_object().unwrap().len() >= 8);
        assert_eq!(short(&json!({"k".repeat(100): 1}), 50), None);
    }

    proptest! {
        #[test]
        fn it_stays_json_within_its_limit(
            texts in prop::collection::vec("\\PC{0,60}|<\\|im_start\\|>|\\[/plugin_output\\]", 1..40), limit in 40..900usize,
        ) {
            let value = json!({"texts": texts, "first": texts[0]});
            if let Some(found) = short(&value, limit) {
                prop_assert!(found["texts"].is_array());
            }
        }
    }
}
