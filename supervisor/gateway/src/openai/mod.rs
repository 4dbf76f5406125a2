//! The routes under `/v1`, in OpenAI's dialect: a chat completion is one turn of the agent, with the server's own tools.
//!
//! | module | contents |
//! |---|---|
//! | `request` | a request: what is honoured, what is neutral, and what is refused by its name |
//! | `prompt` | the messages of a request as one question |
//! | `completion` | answers, whole |
//! | `stream` | answers, piece by piece |
//! | `stateless` | the session of one completion, which goes with it |
//! | `errors` | errors in OpenAI's shape |

mod completion;
mod errors;
mod prompt;
mod request;
mod stateless;
mod stream;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use serde_json::{Map, Value};
use talon_proto::agent::ListModelsRequest;

use crate::api::access::require_chat;
use crate::api::input::JsonBody;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;

use completion::whole;
pub(crate) use errors::errors;
use request::{AGENT, ChatRequest};
use stateless::StatelessTurn;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/v1/chat/completions", post(chat)).route("/v1/models", get(models))
}

async fn chat(
    State(app): State<App>,
    caller: Caller,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Response, Problem> {
    require_chat(&caller)?;
    let request = ChatRequest::read(body)?;
    let mut turn = StatelessTurn::begin(&app, &caller, request.ask(&caller)?).await?;
    if request.stream {
        return Ok(stream::answer(&app, &caller, turn, &request).into_response());
    }
    Ok(Json(whole(turn.end().await?, &request)).into_response())
}

#[derive(Serialize)]
struct ModelList {
    object: &'static str,
    data: Vec<ModelEntry>,
}

#[derive(Serialize)]
struct ModelEntry {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: String,
}

impl ModelEntry {
    fn new(id: String) -> Self {
        let owned_by = id.split('/').next().unwrap_or_default().to_owned();
        Self { id, object: "model", created: 0, owned_by }
    }
}

async fn models(State(app): State<App>, caller: Caller) -> Result<Json<ModelList>, Problem> {
    require_chat(&caller)?;
    let known = app.backends.agent(&caller).list_models(ListModelsRequest {}).await?.into_inner().models;
    let names = known.into_iter().flat_map(|model| [model.id, model.alias]).filter(|name| !name.is_empty());
    let data = [AGENT.to_owned()].into_iter().chain(names).map(ModelEntry::new).collect();
    Ok(Json(ModelList { object: "list", data }))
}
