//! Answers of libraries as problems: without this, a client reads whatever text axum or tower wrote.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use http::header::{ALLOW, CONTENT_TYPE};

use super::{Problem, ProblemKind};

/// Of an answer, in its extensions: somebody else's that is passed on as it is, whatever its status. No layer writes it anew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForeignReply;

/// A layer: an error answer whose body is not JSON becomes a problem of its status. The library's text is dropped: it may repeat
/// what the client sent, or name our types.
pub(crate) async fn problems_of_libraries(response: Response) -> Response {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || is_ours(&response) {
        return response;
    }
    let allow = response.headers().get(ALLOW).cloned();
    let kind = ProblemKind::of_status(status);
    let detail = match kind {
        ProblemKind::NotFound => "there is nothing at this path",
        ProblemKind::MethodNotAllowed => "this path has other methods: see the header Allow",
        ProblemKind::TooLarge => "the body is larger than gateway.limits.body allows: send less",
        ProblemKind::UnsupportedMediaType => "send the body as application/json",
        _ => "the request cannot be understood: compare it with the API's description",
    };
    let mut problem = Problem::new(kind, detail).into_response();
    // The status may be one that has no type of its own.
    *problem.status_mut() = status;
    if let Some(allow) = allow {
        problem.headers_mut().insert(ALLOW, allow);
    }
    problem
}

fn is_ours(response: &Response) -> bool {
    let extensions = response.extensions();
    if extensions.get::<ForeignReply>().is_some() || extensions.get::<Problem>().is_some() {
        return true;
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.ends_with("json") || kind.starts_with("text/event-stream")
}

/// A layer: a request whose route panics is answered, and the connection goes on. The panic itself is in the log.
pub(crate) async fn panics_as_problems(request: Request, next: Next) -> Response {
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        Problem::new(ProblemKind::Internal, "the gateway failed: its log has more").into_response()
    })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    // Promises: GW-221
    #[tokio::test]
    async fn what_a_library_says_becomes_a_problem_and_what_is_passed_on_stays() {
        let said = || (StatusCode::NOT_FOUND, "no ticket 7").into_response();
        let written = problems_of_libraries(said()).await;
        assert!(written.extensions().get::<Problem>().is_some());
        let mut passed = said();
        passed.extensions_mut().insert(ForeignReply);
        let passed = problems_of_libraries(passed).await;
        assert_eq!(passed.status(), StatusCode::NOT_FOUND);
        assert!(passed.extensions().get::<Problem>().is_none());
        assert!(passed.headers()[CONTENT_TYPE].to_str().unwrap().starts_with("text/plain"));
    }
}
