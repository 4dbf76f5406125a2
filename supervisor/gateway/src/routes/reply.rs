//! What is passed on of an action's answer.

use axum::body::Body;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use talon_extensions::contract::{ApiReply, BodyEncoding};
use talon_proto::host::{ExecuteResponse, Outcome};

use crate::problem::ForeignReply;
use crate::role_answer::structured_answer;

/// A page of a plugin is nothing but its text: no script of it runs, and it is of no origin, so that it reaches nothing of ours.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// What a body is without a type.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Whether the action passed its deadline.
pub(super) fn is_late(answer: &ExecuteResponse) -> bool {
    answer.outcome() == Outcome::HostFault && answer.reason == "timed_out"
}

/// The response that an answer is.
///
/// # Errors
/// Why it is none, for the log.
pub(super) fn response(by_template: bool, answer: &ExecuteResponse) -> Result<Response, String> {
    let structured = structured_answer(answer)?;
    match ApiReply::parse(&structured) {
        Ok(reply) => passed_on(reply),
        // An action that knows nothing of the role has done what its arguments say.
        Err(_) if by_template => {
            let (kind, body) = if structured.is_null() {
                (PLAIN, answer.content.clone())
            } else {
                ("application/json", structured.to_string())
            };
            build(StatusCode::OK, [(CONTENT_TYPE, HeaderValue::from_static(kind))], body.into_bytes())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn passed_on(reply: ApiReply) -> Result<Response, String> {
    let body = match reply.body_encoding {
        BodyEncoding::Text => reply.body.into_bytes(),
        BodyEncoding::Base64 => {
            STANDARD.decode(&reply.body).map_err(|_| "its body is no base64".to_owned())?
        }
    };
    let status = StatusCode::from_u16(reply.status).map_err(|error| error.to_string())?;
    let mut headers = Vec::new();
    for (name, value) in reply.headers {
        let name = HeaderName::try_from(&name).map_err(|error| error.to_string())?;
        headers.push((name, HeaderValue::try_from(&value).map_err(|error| error.to_string())?));
    }
    if !body.is_empty() && !headers.iter().any(|(name, _)| *name == CONTENT_TYPE) {
        headers.push((CONTENT_TYPE, HeaderValue::from_static(PLAIN)));
    }
    build(status, headers, body)
}

fn build(
    status: StatusCode,
    headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    body: Vec<u8>,
) -> Result<Response, String> {
    let mut response =
        Response::builder().status(status).body(Body::from(body)).map_err(|error| error.to_string())?;
    response.headers_mut().extend(headers);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response.extensions_mut().insert(ForeignReply);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answer(structured: &Value) -> ExecuteResponse {
        ExecuteResponse {
            outcome: Outcome::Ok.into(),
            structured_content: structured.to_string(),
            ..ExecuteResponse::default()
        }
    }

    // Promises: GW-221
    #[test]
    fn an_answer_is_passed_on_or_nothing_of_it_is() {
        let made = json!({"status": 201, "headers": {"etag": "7"}, "body": "made"});
        let passed = response(false, &answer(&made)).unwrap();
        assert_eq!(
            (passed.status(), &passed.headers()["etag"]),
            (StatusCode::CREATED, &HeaderValue::from_static("7"))
        );
        assert_eq!(passed.headers()[CONTENT_TYPE], PLAIN);
        assert!(passed.extensions().get::<ForeignReply>().is_some(), "no layer writes it anew");
        assert!(passed.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("sandbox"));
        for wrong in [
            answer(&json!({"ok": true})),
            answer(&json!({"status": 200, "headers": {"set-cookie": "a=b"}})),
            answer(&json!({"status": 200, "body": "?", "body_encoding": "base64"})),
            ExecuteResponse { error: "at /etc/secret".to_owned(), ..answer(&made) },
            ExecuteResponse { outcome: Outcome::HostFault.into(), ..answer(&made) },
        ] {
            assert!(response(false, &wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(response(true, &answer(&json!({"ok": true}))).unwrap().status(), StatusCode::OK);
        let late = ExecuteResponse {
            outcome: Outcome::HostFault.into(),
            reason: "timed_out".to_owned(),
            ..ExecuteResponse::default()
        };
        assert!(is_late(&late) && !is_late(&answer(&made)));
    }
}
