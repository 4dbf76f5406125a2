//! Errors in OpenAI's shape: `{"error": {message, type, param, code}}`.

use axum::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemKind};

/// An error as OpenAI's clients read it.
#[derive(Serialize, ToSchema)]
pub(crate) struct OpenAiError {
    error: ErrorDetails,
}

#[derive(Serialize, ToSchema)]
struct ErrorDetails {
    message: String,
    /// authentication_error, permission_error, rate_limit_error, invalid_request_error or server_error
    #[serde(rename = "type")]
    kind: &'static str,
    /// The field that is wrong.
    param: Option<String>,
    code: String,
}

/// A layer: a problem below `/v1` is written as OpenAI writes errors, whoever found it. Status and headers stay.
pub(crate) async fn errors(request: Request, next: Next) -> Response {
    let is_dialect = request.uri().path().starts_with("/v1/");
    let response = next.run(request).await;
    let Some(problem) = response.extensions().get::<Problem>().filter(|_| is_dialect) else {
        return response;
    };
    let mut written = Json(error(problem)).into_response();
    *written.status_mut() = response.status();
    for (name, value) in response.headers() {
        if name != CONTENT_TYPE && name != CONTENT_LENGTH {
            written.headers_mut().append(name, value.clone());
        }
    }
    written
}

/// The error of a problem.
pub(super) fn error(problem: &Problem) -> OpenAiError {
    let kind = match problem.kind() {
        ProblemKind::Unauthenticated => "authentication_error",
        ProblemKind::Forbidden | ProblemKind::ForeignSite => "permission_error",
        ProblemKind::TooManyRequests => "rate_limit_error",
        kind if kind.status().is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    OpenAiError {
        error: ErrorDetails {
            message: problem.detail().to_owned(),
            kind,
            param: problem.fields().first().cloned(),
            code: problem.code(),
        },
    }
}
