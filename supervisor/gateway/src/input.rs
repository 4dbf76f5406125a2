//! Bodies and queries of requests. A body is JSON that all readers read alike: nested to a bounded depth, each key once.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::events::client_message::shown;
use crate::problem::{Problem, ProblemKind};

/// A body of this type. Without one it is read as `{}`.
#[derive(Debug, Clone)]
pub(crate) struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let kind = request.headers().get(CONTENT_TYPE).cloned();
        // A body that is too large, or too slow, is answered by the layer that bounds it.
        let bytes = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        if bytes.is_empty() {
            return read("{}").map(Self).map_err(IntoResponse::into_response);
        }
        let is_json = |kind: &str| {
            let kind = kind.split(';').next().unwrap_or_default().trim();
            kind == "application/json" || kind.ends_with("+json")
        };
        if !kind.is_some_and(|kind| kind.to_str().is_ok_and(is_json)) {
            let detail = "send the body as application/json";
            return Err(Problem::new(ProblemKind::UnsupportedMediaType, detail).into_response());
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| {
            Problem::new(ProblemKind::BadRequest, "the body is no UTF-8: send JSON as UTF-8").into_response()
        })?;
        read(text).map(Self).map_err(IntoResponse::into_response)
    }
}

/// Reads JSON of a client.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    talon_strict_json::check(text).map_err(|error| {
        Problem::new(
            ProblemKind::BadRequest,
            format!("the body is no JSON that is read here: {}", shown(&error)),
        )
    })?;
    serde_json::from_str(text).map_err(|error| {
        let detail =
            format!("the body does not fit: {}. GET /api/openapi.json says what does", shown(&error));
        Problem::new(ProblemKind::Unprocessable, detail)
    })
}

/// A part of the path, or all of its parts.
#[derive(Debug, Clone)]
pub(crate) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(path)| Self(path))
            .map_err(|_: PathRejection| Problem::new(ProblemKind::NotFound, "there is nothing at this path"))
    }
}

/// The query.
#[derive(Debug, Clone)]
pub(crate) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query.map(|axum::extract::Query(query)| Self(query)).map_err(|_: QueryRejection| {
            let detail = "the query does not fit: GET /api/openapi.json says what does";
            Problem::new(ProblemKind::BadRequest, detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Body {
        text: String,
    }

    // Promises: GW-102
    #[test]
    fn what_does_not_fit_is_named_and_deep_or_double_is_refused() {
        assert_eq!(read::<Body>(r#"{"text":"a"}"#), Ok(Body { text: "a".to_owned() }));
        let deep = format!("{{\"text\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
        for (text, kind, says) in [
            ("{", ProblemKind::BadRequest, "EOF"),
            (deep.as_str(), ProblemKind::BadRequest, "64 levels"),
            (r#"{"text":"a","text":"b"}"#, ProblemKind::BadRequest, "twice"),
            (r#"{"text":"a","more":1}"#, ProblemKind::Unprocessable, "`more`"),
            ("{}", ProblemKind::Unprocessable, "`text`"),
        ] {
            let problem = read::<Body>(text).unwrap_err();
            assert_eq!(problem.kind(), kind, "{text:.40}");
            assert!(problem.detail().contains(says) && problem.detail().len() < 600, "{}", problem.detail());
        }
    }
}
