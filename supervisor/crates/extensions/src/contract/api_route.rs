//! What the action of a route is asked, what it answers, and what of an answer is passed on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RouteMethod;
use crate::limits::{MAX_HEADER_BYTES, MAX_HEADERS};

/// The arguments of the action of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiRequest {
    /// The method.
    pub method: RouteMethod,
    /// The path, decoded.
    pub path: String,
    /// The parameters of the query, decoded, each with all its values.
    #[serde(default)]
    pub query: BTreeMap<String, Vec<String>>,
    /// The headers that the entry lists, in lower case.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// How the body is written here: base64, if it is no text in UTF-8.
    #[serde(default)]
    pub body_encoding: BodyEncoding,
    /// Whose request it is, as `gw:issuer/subject`.
    pub subject: String,
}

/// How bytes are written as a JSON text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyEncoding {
    /// As they are: UTF-8.
    #[default]
    Text,
    /// As base64 with padding.
    Base64,
}

/// The structured answer of the action of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiReply {
    /// The status, from 200 to 599.
    pub status: u16,
    /// Headers. Only those that describe the body or its use are passed on: `content-type`, `content-language`,
    /// `content-disposition`, `cache-control`, `etag`, `last-modified`, `expires`, `location`, `retry-after`, `vary`, `link`
    /// and those that begin with `x-`, other than `x-accel-*`, `x-content-type-options`, `x-frame-options`, `x-sendfile*` and
    /// `x-talon-*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// How the body is written here.
    #[serde(default)]
    pub body_encoding: BodyEncoding,
}

/// The headers of an answer that are passed on, beside `x-`. None sets a cookie, says how long the body is, or decides what a
/// browser may do with other pages.
const PASSED_ON: [&str; 11] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "vary",
];

/// Beginnings of headers with `x-` that are not passed on all the same: they tell a proxy in front which file to send, or weaken the rules
/// that are ours.
const NOT_PASSED_ON: [&str; 5] =
    ["x-accel-", "x-content-type-options", "x-frame-options", "x-sendfile", "x-talon-"];

/// Why an answer cannot be passed on. The sender of the request gets 502 with an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiReplyError {
    /// The answer is none.
    #[error("its answer is none of an API route: {0}")]
    Shape(String),
    /// The status.
    #[error("its status is {0}: it has to be from 200 to 599")]
    Status(u16),
    /// A header cannot be one.
    #[error("its header {shown:?} {why}")]
    Header {
        /// The name, bounded.
        shown: String,
        /// What is wrong.
        why: &'static str,
    },
    /// There are too many.
    #[error("it has {0} headers, and {MAX_HEADERS} are the most")]
    TooManyHeaders(usize),
}

impl ApiReply {
    /// Reads an answer, and checks what can be checked without its body.
    ///
    /// # Errors
    /// [`ApiReplyError`], which repeats little of the answer.
    pub fn parse(structured: &Value) -> Result<Self, ApiReplyError> {
        let mut reply = Self::deserialize(structured).map_err(|error| {
            const MOST: usize = 200;
            ApiReplyError::Shape(error.to_string().chars().take(MOST).collect())
        })?;
        if !(200..=599).contains(&reply.status) {
            return Err(ApiReplyError::Status(reply.status));
        }
        if reply.headers.len() > MAX_HEADERS {
            return Err(ApiReplyError::TooManyHeaders(reply.headers.len()));
        }
        let mut headers = BTreeMap::new();
        for (name, value) in reply.headers {
            check_header(&name, &value)?;
            headers.insert(name.to_ascii_lowercase(), value);
        }
        reply.headers = headers;
        Ok(reply)
    }
}

fn check_header(name: &str, value: &str) -> Result<(), ApiReplyError> {
    const MOST_SHOWN: usize = 64;
    let wrong = |why| Err(ApiReplyError::Header { shown: name.chars().take(MOST_SHOWN).collect(), why });
    if !is_header_name(name) {
        return wrong("is no name of a header");
    }
    let lower = name.to_ascii_lowercase();
    let is_plain = lower.starts_with("x-") && !NOT_PASSED_ON.iter().any(|start| lower.starts_with(start));
    if !is_plain && !PASSED_ON.contains(&lower.as_str()) {
        return wrong("is not passed on: leave it out");
    }
    if value.len() > MAX_HEADER_BYTES {
        return wrong("is longer than 4 KiB");
    }
    if value.chars().any(|c| c.is_control() || !c.is_ascii()) {
        return wrong("has a value with other than visible ASCII characters");
    }
    Ok(())
}

/// Whether this can be the name of a header: a token of RFC 9110.
#[must_use]
pub(crate) fn is_header_name(name: &str) -> bool {
    const MOST: usize = 64;
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.len() <= MOST && name.chars().all(token)
}

pub(super) fn sample() -> ApiRequest {
    ApiRequest {
        method: RouteMethod::Post,
        path: "/x/tickets".to_owned(),
        query: BTreeMap::from([("notify".to_owned(), vec!["yes".to_owned()])]),
        headers: BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]),
        body: r#"{"title": "It does not start"}"#.to_owned(),
        body_encoding: BodyEncoding::Text,
        subject: "gw:local/ada".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // Promises: EXT-45
    #[test]
    fn an_answer_can_set_no_cookie_and_break_no_header() {
        let good =
            json!({"status": 201, "headers": {"Content-Type": "text/plain", "X-Id": "7"}, "body": "made"});
        let reply = ApiReply::parse(&good).expect("an answer");
        assert_eq!(reply.headers.keys().collect::<Vec<_>>(), ["content-type", "x-id"]);
        for (wrong, says) in [
            (json!({"status": 100}), "its status is 100"),
            (json!({"status": 700}), "its status is 700"),
            (json!({"status": "200"}), "none of an API route"),
            (json!({"status": 200, "cookies": []}), "none of an API route"),
            (json!({"status": 200, "headers": {"Set-Cookie": "a=b"}}), "not passed on"),
            (json!({"status": 200, "headers": {"content-length": "1"}}), "not passed on"),
            (json!({"status": 200, "headers": {"access-control-allow-origin": "*"}}), "not passed on"),
            (json!({"status": 200, "headers": {"X-Accel-Redirect": "/etc/passwd"}}), "not passed on"),
            (json!({"status": 200, "headers": {"x-sendfile": "/etc/passwd"}}), "not passed on"),
            (json!({"status": 200, "headers": {"X-Frame-Options": "ALLOWALL"}}), "not passed on"),
            (json!({"status": 200, "headers": {"x-content-type-options": "none"}}), "not passed on"),
            (json!({"status": 200, "headers": {"X-Talon-Session": "a"}}), "not passed on"),
            (json!({"status": 200, "headers": {"etag": "a\r\nset-cookie: b"}}), "visible ASCII"),
            (json!({"status": 200, "headers": {"x a": "b"}}), "no name of a header"),
            (json!({"status": 200, "headers": {"etag": "x".repeat(5000)}}), "longer than 4 KiB"),
        ] {
            let error = ApiReply::parse(&wrong).expect_err(says).to_string();
            assert!(error.contains(says) && error.len() < 400, "{error}");
        }
    }

    proptest! {
        // Promises: EXT-45
        #[test]
        fn what_is_passed_on_is_harmless(name in ".{0,20}|(?i)set-cookie|(?i)x-[a-z]{1,5}", value in ".{0,20}") {
            if let Ok(reply) = ApiReply::parse(&json!({"status": 200, "headers": {name: value}})) {
                for (name, value) in reply.headers {
                    prop_assert!(name.starts_with("x-") || PASSED_ON.contains(&name.as_str()));
                    prop_assert!(!value.contains(['\r', '\n', '\0']));
                }
            }
        }
    }
}
