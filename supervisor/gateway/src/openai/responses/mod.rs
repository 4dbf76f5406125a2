//! Responses: `POST /v1/responses`, and `GET` and `DELETE` of those that are stored. A stored response is a turn in a session of the agent,
//! and `previous_response_id` goes on in it; one that is not stored is a turn of no session.
//!
//! | module | contents |
//! |---|---|
//! | `request`, `items` | a request, and the items of its input |
//! | `ids` | ids that name session and turn |
//! | `stored` | the turn of a stored response |
//! | `response`, `event` | the response, whole, and the events of a streamed one |
//! | `stream` | the response, event by event |

mod event;
mod ids;
mod items;
mod request;
mod response;
mod stored;
mod stream;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use talon_proto::agent::CompleteRequest;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::completion::created;
use super::fields::agent_model;
use super::turn::{for_all_sessions, refused};
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::JsonBody;
use crate::problem::Problem;
use crate::turn::{Turn, TurnEnd, failed, needed_chunks};
use event::ResponseStreamEvent;
use request::{ResponseBody, ResponseRequest};
use response::{ResponseFrame, ResponseObject};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(respond)).routes(routes!(stored::get, stored::delete))
}

/// An answer that is stored unless `store` is false. Fields are OpenAI's; docs/gateway-api.md lists those that are honoured.
#[utoipa::path(
    post, path = "/v1/responses", tag = "openai", request_body = ResponseBody,
    responses((status = OK, content(
        (ResponseObject = "application/json"),
        (ResponseStreamEvent = "text/event-stream"),
    )))
)]
async fn respond(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Response, Problem> {
    require_chat(&caller)?;
    for_all_sessions(&caller)?;
    let request = ResponseRequest::read(body)?;
    let (model, echo, streams) = (request.model.clone(), request.echo.clone(), request.stream);
    let (mut turn, stored) = if request.store {
        let (turn, id) = stored::begin(&app, &caller, request).await?;
        (turn, Some(id))
    } else {
        let request = complete(&caller, request)?;
        let turn = Turn::complete(&app, &caller, request).await.map_err(|status| refused(&status))?;
        (turn, None)
    };
    let frame = ResponseFrame::new(stored, created(), model, echo);
    if streams {
        return Ok(stream::answer(&app, &caller, turn, frame).into_response());
    }
    match turn.end().await? {
        TurnEnd::Done(done) => Ok(Json(frame.whole(&done)).into_response()),
        TurnEnd::Failed(error) => Err(failed(&error)),
    }
}

/// What the agent is asked where nothing is stored.
fn complete(caller: &Caller, request: ResponseRequest) -> Result<CompleteRequest, Problem> {
    let mut messages = items::conversation(request.items)?;
    if !request.instructions.is_empty() {
        messages.insert(0, items::system(request.instructions));
    }
    Ok(CompleteRequest {
        messages,
        model: agent_model(&request.model),
        thinking: request.thinking,
        schema: request.schema,
        sampling: request.sampling,
        verbosity: request.verbosity,
        channel: caller.channel.to_string(),
        client_tools: request.tools,
        tool_choice: request.choice,
        one_call: request.one_call,
        chunks: needed_chunks(request.stream),
        ..CompleteRequest::default()
    })
}
