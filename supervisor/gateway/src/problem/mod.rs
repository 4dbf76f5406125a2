//! Errors, as RFC 9457 has them: `application/problem+json`, one closed list of types, and the request's id in each.
//!
//! | module | contents |
//! |---|---|
//! | `kind` | the types |
//! | `status` | what an error of host or agent becomes |
//! | `layer` | answers of libraries without a body of ours become problems, too; so do panics |
//! | `request_id` | the id of a request, in its answer and in the log |

mod kind;
mod layer;
mod request_id;
mod status;

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

pub use kind::ProblemKind;
pub(crate) use layer::{ForeignReply, panics_as_problems, problems_of_libraries};
pub(crate) use request_id::with_request_id;
pub use request_id::{RequestId, request_id};

/// The media type of all errors.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    kind: ProblemKind,
    detail: String,
    /// The fields of the request that are wrong, if the answer names some.
    fields: Vec<String>,
    retry_after: Option<Duration>,
    /// A word for programs that is more exact than the type's.
    code: Option<&'static str>,
}

/// An error, as RFC 9457 has it.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(crate) struct ProblemBody<'p> {
    /// One of a closed list: `urn:talon:problem:not-found`.
    #[serde(rename = "type")]
    kind: String,
    /// The type in a few words.
    title: &'p str,
    /// The answer's status.
    status: u16,
    /// What is wrong, and what to do next.
    detail: &'p str,
    /// The fields of the request that are wrong.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[schema(required = false)]
    fields: &'p [String],
    /// The request's name in the gateway's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl Problem {
    /// A problem of this type. `detail` is for the client: what is wrong, and what to do next.
    pub fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), fields: Vec::new(), retry_after: None, code: None }
    }

    /// The same, naming these fields of the request.
    #[must_use]
    pub fn with_fields(mut self, fields: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.fields = fields.into_iter().map(Into::into).collect();
        self
    }

    /// The same, saying when a retry may succeed.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The same, with a word for programs that is more exact than the type's.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// A defect of ours: logged whole, and generic text for the client.
    pub fn defect(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = talon_error_chain::error_chain(error), "a request failed for a defect");
        Self::new(ProblemKind::Internal, "the gateway failed: its log has more, under this request's id")
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// The fields of the request that it names.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Its word for programs: that of its type, unless there is a more exact one.
    #[must_use]
    pub fn code(&self) -> String {
        self.code.map_or_else(|| self.kind.name().replace('-', "_"), str::to_owned)
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.kind.status()
    }

    /// When a retry may succeed, if it says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// What it says to the client.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            kind: self.kind.uri(),
            title: self.kind.title(),
            status: self.kind.status().as_u16(),
            detail: &self.detail,
            fields: &self.fields,
            request_id: request_id().map(|id| id.to_string()),
        };
        let text = serde_json::to_string(&body).expect("a struct of texts and numbers is JSON");
        let mut response = (self.kind.status(), text).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(wait) = self.retry_after {
            // Whole seconds, and never 0, which says at once.
            headers.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        // For dialects that write errors in another shape.
        response.extensions_mut().insert(self);
        response
    }
}
