//! The messages of OpenTalon v0.0.1, as JSON.
//!
//! They come from an untrusted program. The frame limits their size, and this module limits their lists: an
//! empty object costs three bytes on the wire and a hundred in memory. No message type is recursive, and
//! unknown fields are skipped without recursion, however deep they nest.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};

/// The most actions that are kept, as many as a host takes; further ones are only counted.
pub(crate) const MAX_ACTIONS: usize = 1024;
/// The most parameters of one action, likewise.
pub(crate) const MAX_PARAMETERS: usize = 256;

/// A request to the program.
#[derive(Debug, Serialize)]
pub(crate) struct Request<'r> {
    pub(crate) method: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) id: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) plugin: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) action: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) args: Option<&'r BTreeMap<String, String>>,
}

impl Request<'_> {
    /// Asks for the capabilities.
    pub(crate) fn capabilities() -> Self {
        Self { method: "capabilities", id: "", plugin: "", action: "", args: None }
    }
}

/// The response. Programs write `null` for empty values, and leave out fields that they do not know.
#[derive(Debug, Default, DeriveDeserialize)]
pub(crate) struct Response {
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) call_id: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) content: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) error: String,
    #[serde(default)]
    pub(crate) caps: Option<Capabilities>,
}

/// The capabilities of the program.
#[derive(Debug, Default, DeriveDeserialize)]
pub(crate) struct Capabilities {
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) description: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) actions: Capped<Action, MAX_ACTIONS>,
}

/// One action.
#[derive(Debug, Default, DeriveDeserialize)]
pub(crate) struct Action {
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) description: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) parameters: Capped<Parameter, MAX_PARAMETERS>,
}

/// One of its arguments.
#[derive(Debug, Default, DeriveDeserialize)]
pub(crate) struct Parameter {
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) name: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) description: String,
    #[serde(default, deserialize_with = "or_nothing", rename = "type")]
    pub(crate) kind: String,
    #[serde(default, deserialize_with = "or_nothing")]
    pub(crate) required: bool,
}

/// Decodes a response.
pub(crate) fn decode(body: &[u8]) -> Result<Response, serde_json::Error> {
    // As Go's decoder does: invalid UTF-8 is replaced, and the response stays valid.
    serde_json::from_str(&String::from_utf8_lossy(body))
}

fn or_nothing<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The first `N` of a list, and how many more there were.
#[derive(Debug)]
pub(crate) struct Capped<T, const N: usize> {
    pub(crate) items: Vec<T>,
    pub(crate) more: usize,
}

impl<T, const N: usize> Default for Capped<T, N> {
    fn default() -> Self {
        Self { items: Vec::new(), more: 0 }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Capped<T, N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(CappedVisitor::<T, N>(PhantomData))
    }
}

struct CappedVisitor<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for CappedVisitor<T, N> {
    type Value = Capped<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut capped = Capped::default();
        while capped.items.len() < N {
            let Some(item) = list.next_element()? else { return Ok(capped) };
            capped.items.push(item);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            capped.more += 1;
        }
        Ok(capped)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_as_the_first_host_wrote_them() {
        let written = serde_json::to_string(&Request::capabilities()).unwrap();
        assert_eq!(written, r#"{"method":"capabilities"}"#);
        let args = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        let request = Request { method: "execute", id: "c", plugin: "p", action: "x", args: Some(&args) };
        let written = serde_json::to_string(&request).unwrap();
        assert_eq!(written, r#"{"method":"execute","id":"c","plugin":"p","action":"x","args":{"a":"1"}}"#);
    }

    #[test]
    fn what_is_left_out_or_null_is_nothing() {
        for body in [r"{}", r#"{"content":null,"error":null,"call_id":null,"caps":null,"more":[{}]}"#] {
            let response = decode(body.as_bytes()).unwrap();
            assert_eq!((response.content.as_str(), response.caps.is_none()), ("", true));
        }
        let caps = decode(br#"{"caps":{"name":"n","actions":null}}"#).unwrap().caps.unwrap();
        assert!(caps.actions.items.is_empty());
        let caps =
            decode(br#"{"caps":{"actions":[{"name":"a","parameters":[{"name":"p","required":true}]}]}}"#);
        let action = &caps.unwrap().caps.unwrap().actions.items[0];
        assert!(action.parameters.items[0].required);
    }

    #[test]
    fn what_is_no_text_becomes_a_mark() {
        let response = decode(b"{\"content\":\"a\xffb\"}").unwrap();
        assert_eq!(response.content, "a\u{fffd}b");
    }

    #[test]
    fn lists_and_nesting_are_bounded() {
        let many = format!(r#"{{"caps":{{"actions":[{}{{}}]}}}}"#, "{},".repeat(100_000));
        let actions = decode(many.as_bytes()).unwrap().caps.unwrap().actions;
        assert_eq!((actions.items.len(), actions.more), (MAX_ACTIONS, 100_001 - MAX_ACTIONS));
        let (open, close) = ("[".repeat(1_000_000), "]".repeat(1_000_000));
        let skipped = format!(r#"{{"x":{open}{close},"content":"fine"}}"#);
        assert_eq!(decode(skipped.as_bytes()).unwrap().content, "fine");
        for field in ["content", "caps", "error"] {
            assert!(decode(format!(r#"{{"{field}":{open}{close}}}"#).as_bytes()).is_err(), "{field}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for body in ["", "[", "[]x", "-1", "\"text\"", r#"{"content":{}}"#, r#"{"caps":{"actions":{}}}"#] {
            assert!(decode(body.as_bytes()).is_err(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_breaks_it(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&body);
        }
    }
}
