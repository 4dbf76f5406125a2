//! What an action is asked: a request, as the role has it.

use std::collections::BTreeMap;

use axum::body::to_bytes;
use axum::extract::{Query, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use talon_extensions::contract::{ApiRequest, BodyEncoding};
use talon_extensions::{RouteEntry, template};

use crate::problem::{Problem, ProblemKind};

/// The most parameters of a query. 100: more is no question of a person or program.
const MAX_PARAMETERS: usize = 100;

/// Whether a decoded path means what it says: no segment is empty, or leads up, and nothing in it is a control character.
pub(super) fn is_plain(path: &str) -> bool {
    let below = path.strip_prefix('/').unwrap_or(path);
    below.split('/').all(|segment| !segment.is_empty() && segment != "." && segment != "..")
        && !path.chars().any(|c| c.is_control() || c == '\\')
}

/// A request as the role has it. Its body is within the entry's limit and `most_bytes`, that of all routes.
pub(super) async fn api_request(
    entry: &RouteEntry,
    path: String,
    subject: &str,
    most_bytes: usize,
    request: Request,
) -> Result<ApiRequest, Problem> {
    let bad = |detail: &str| Problem::new(ProblemKind::BadRequest, detail);
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
        .map_err(|_| bad("the query is none: write NAME=VALUE&…"))?;
    if pairs.len() > MAX_PARAMETERS {
        return Err(bad(&format!(
            "the query has {} parameters, and {MAX_PARAMETERS} are the most",
            pairs.len()
        )));
    }
    let mut query = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in pairs {
        query.entry(name).or_default().push(value);
    }
    let (parts, body) = request.into_parts();
    let headers = chosen(entry, &parts.headers)?;
    let most = usize::try_from(entry.max_body_bytes).unwrap_or(usize::MAX).min(most_bytes);
    let body = to_bytes(body, most).await.map_err(|_| {
        Problem::new(ProblemKind::TooLarge, format!("the body of this route has at most {most} bytes"))
    })?;
    let (body, body_encoding) = match String::from_utf8(body.to_vec()) {
        Ok(text) => (text, BodyEncoding::Text),
        Err(other) => (STANDARD.encode(other.as_bytes()), BodyEncoding::Base64),
    };
    Ok(ApiRequest {
        method: entry.method,
        path,
        query,
        headers,
        body,
        body_encoding,
        subject: subject.to_owned(),
    })
}

/// The headers that the entry lists. One that comes several times is one, as RFC 9110 joins them.
fn chosen(entry: &RouteEntry, given: &HeaderMap) -> Result<BTreeMap<String, String>, Problem> {
    let mut headers = BTreeMap::new();
    for name in &entry.headers {
        let mut values = Vec::new();
        for value in given.get_all(name.as_str()) {
            let value = value.to_str().map_err(|_| {
                Problem::new(
                    ProblemKind::BadRequest,
                    format!("the header {name} has other than visible ASCII characters"),
                )
            })?;
            values.push(value);
        }
        if !values.is_empty() {
            headers.insert(name.to_ascii_lowercase(), values.join(", "));
        }
    }
    Ok(headers)
}

/// The arguments of the call, as one JSON object.
///
/// # Errors
/// Why the entry's template makes none of this request.
pub(super) fn arguments(entry: &RouteEntry, asked: &ApiRequest) -> Result<String, String> {
    // The type has string keys only.
    let mut variables = serde_json::to_value(asked).unwrap_or_default();
    let Some(args) = &entry.args else { return Ok(variables.to_string()) };
    // What a request leaves out is empty: it decides which parameters and headers there are.
    for name in template::names(args) {
        if let Some(name) = name.strip_prefix("query.") {
            let first = name.split('.').next().unwrap_or(name);
            fill(&mut variables["query"], first, &json!([""]));
        }
    }
    for name in &entry.headers {
        fill(&mut variables["headers"], &name.to_ascii_lowercase(), &json!(""));
    }
    let rendered: Map<String, Value> =
        template::render(args, &variables).map_err(|error| error.to_string())?;
    Ok(Value::Object(rendered).to_string())
}

fn fill(of: &mut Value, name: &str, value: &Value) {
    if of.get(name).is_none() {
        of[name] = value.clone();
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn entry(more: Value) -> RouteEntry {
        let mut entry = json!({
            "path": "/x/tickets", "method": "POST", "action": "jira.create", "scope": "chat",
            "headers": ["X-Signature"], "max_body_bytes": 8,
        });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(entry).unwrap()
    }

    async fn asked(body: &'static [u8]) -> Result<ApiRequest, Problem> {
        asked_within(1000, body).await
    }

    async fn asked_within(most_bytes: usize, body: &'static [u8]) -> Result<ApiRequest, Problem> {
        let request = Request::builder()
            .uri("/x/tickets?notify=yes&notify=no&a=%20b")
            .header("x-signature", "one")
            .header("x-signature", "two")
            .header("authorization", "Bearer secret")
            .body(Body::from(body))
            .unwrap();
        api_request(&entry(json!({})), "/x/tickets".to_owned(), "gw:token/t1", most_bytes, request).await
    }

    // Promises: GW-220
    #[tokio::test]
    async fn an_action_gets_what_its_entry_lists_and_no_secret() {
        let told = asked(b"text").await.unwrap();
        assert_eq!(
            (&told.query["notify"], &told.query["a"]),
            (&vec!["yes".to_owned(), "no".to_owned()], &vec![" b".to_owned()])
        );
        assert_eq!(told.headers, BTreeMap::from([("x-signature".to_owned(), "one, two".to_owned())]));
        assert_eq!(
            (told.body.as_str(), told.body_encoding, &*told.subject),
            ("text", BodyEncoding::Text, "gw:token/t1")
        );
        assert_eq!(asked(&[0xff, 0xfe]).await.unwrap().body, "//4=");
        for (most, said) in [(1000, "at most 8 bytes"), (5, "at most 5 bytes")] {
            let refused = asked_within(most, b"123456789").await.unwrap_err();
            assert!(
                refused.kind() == ProblemKind::TooLarge && refused.detail().contains(said),
                "{refused:?}"
            );
        }
        let by_template = entry(json!({"args": {"text": "{{ body }} {{ headers['x-signature'] }}"}}));
        let made = arguments(&by_template, &told);
        assert_eq!(made.unwrap(), r#"{"text":"text one, two"}"#);
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_none() {
        for good in ["/x/a", "/x/a/b.c", "/x/ä"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in ["/x/", "/x//a", "/x/../api/config", "/x/a/.", "/x/a\nb", "/x/a\\b"] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
