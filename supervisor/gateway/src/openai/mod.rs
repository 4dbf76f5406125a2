//! The routes under `/v1`, in OpenAI's dialect: an answer is one turn of the agent, with the server's own tools beside the client's.
//!
//! | module | contents |
//! |---|---|
//! | `fields` | fields of requests: what is honoured, what is neutral, and what is refused by its name |
//! | `request`, `message` | a request for a chat completion, and its messages |
//! | `turn` | the turn of a completion |
//! | `completion` | answers, whole |
//! | `stream` | answers, piece by piece |
//! | `responses` | responses, stored as turns of sessions or not at all |
//! | `embeddings`, `models` | vectors; the names of models |
//! | `errors` | errors in OpenAI's shape |

mod completion;
mod embeddings;
mod errors;
mod fields;
mod message;
mod models;
mod request;
mod responses;
mod stream;
mod turn;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value};
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::JsonBody;
use crate::problem::Problem;

use completion::{ChatCompletion, whole};
pub(crate) use errors::{OpenAiError, errors};
use request::{ChatBody, ChatRequest};
use stream::CompletionEvent;
use turn::CompletionTurn;

/// What is described beside its route.
#[derive(utoipa::OpenApi)]
#[openapi(paths(models::get))]
struct ByName;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(ByName::openapi())
        .routes(routes!(chat))
        .routes(routes!(embeddings::embed))
        .routes(routes!(models::list))
        // A name may have a slash, and no parameter of a path has one in OpenAPI.
        .route("/v1/models/{*model}", get(models::get))
        .merge(responses::routes())
}

/// An answer to a conversation that the client keeps. Fields are OpenAI's; docs/gateway-api.md lists those that are honoured.
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "openai", request_body = ChatBody,
    responses((status = OK, content(
        (ChatCompletion = "application/json"),
        (CompletionEvent<'static> = "text/event-stream"),
    )))
)]
async fn chat(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Response, Problem> {
    require_chat(&caller)?;
    let mut request = ChatRequest::read(body)?;
    let mut turn = CompletionTurn::begin(&app, &caller, request.complete(&caller)).await?;
    if request.stream {
        return Ok(stream::answer(&app, &caller, turn, &request).into_response());
    }
    Ok(Json(whole(&turn.end().await?, &request)).into_response())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::body::Body;
    use axum::extract::Request;
    use http::StatusCode;
    use http::header::CONTENT_TYPE;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt as _;

    use super::*;
    use crate::backends::{Backends, ConnectBackend, SocketPaths};
    use crate::identity::{Scope, Subject, Via};
    use crate::testing::{FixedCallers, test_settings};

    /// A caller that may talk in one session, and a server behind which nobody is: it is asked for nothing.
    // Promises: GW-189
    #[tokio::test]
    async fn a_credential_for_one_session_has_no_responses_and_no_vectors() {
        let connector: Arc<dyn ConnectBackend> =
            Arc::new(SocketPaths { host: "/nonexistent".into(), agent: "/nonexistent".into() });
        let settings = test_settings("127.0.0.1:1".parse().unwrap());
        let callers = Arc::new(FixedCallers::default());
        let app = App::new(settings, Backends::new(&connector), callers, CancellationToken::new());
        let caller = Caller {
            subject: Subject::of("token", "t1").unwrap(),
            scopes: [Scope::Chat].into_iter().collect(),
            channel: "api".into(),
            session: Some("01ARZ3NDEKTSV4RRFFQ69G5FAV".into()),
            via: Via::Token("t1".into()),
        };
        let (routes, _) = routes().split_for_parts();
        let routes: Router = routes.with_state(app);
        for (method, path) in [
            ("GET", "/v1/responses/resp_01ARZ3NDEKTSV4RRFFQ69G5FAV_1"),
            ("DELETE", "/v1/responses/resp_01ARZ3NDEKTSV4RRFFQ69G5FAV_1"),
            ("POST", "/v1/responses"),
            ("POST", "/v1/embeddings"),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(CONTENT_TYPE, "application/json")
                .extension(caller.clone())
                .body(Body::from(r#"{"model": "talon", "input": "a"}"#))
                .unwrap();
            let answer = routes.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{method} {path}");
        }
    }
}
