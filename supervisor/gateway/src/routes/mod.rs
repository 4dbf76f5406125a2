//! The paths below `/x/`, which actions of plugins answer as the operator's `extensions.routes` say.
//!
//! | module | contents |
//! |---|---|
//! | `request` | what an action is asked: path, parameters, headers and body of a request |
//! | `reply` | what is passed on of its answer |
//!
//! No route is among our own: all of them are below `/x/`, where we have nothing, and behind the layer that asks for a caller. An answer
//! that cannot be passed on is 502 with the request's id, and the log has why.

mod reply;
mod request;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::HeaderValue;
use http::header::ALLOW;
use talon_extensions::{Role, RouteEntry};

use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::problem::{Problem, ProblemKind};
use crate::role_call::RoleCall;

/// All of them, for callers.
pub(crate) fn routes() -> Router<App> {
    Router::new().route("/x/{*path}", any(serve))
}

async fn serve(
    State(app): State<App>,
    caller: Caller,
    Path(below): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let path = format!("/x/{below}");
    if !request::is_plain(&path) {
        return Err(Problem::new(ProblemKind::NotFound, "there is nothing at this path"));
    }
    let settings = app.settings();
    let entry = match settings.routes.find(request.method(), &path) {
        Ok(entry) => entry,
        Err(methods) if methods.is_empty() => {
            return Err(Problem::new(ProblemKind::NotFound, "there is nothing at this path"));
        }
        Err(methods) => {
            let methods = methods.join(", ");
            let problem = Problem::new(ProblemKind::MethodNotAllowed, format!("this path has {methods}"));
            let mut response = problem.into_response();
            // Methods are words.
            if let Ok(allow) = HeaderValue::from_str(&methods) {
                response.headers_mut().insert(ALLOW, allow);
            }
            return Ok(response);
        }
    };
    // Both lists of scopes are one, in two crates.
    let scope = Scope::parse(entry.scope.as_str()).unwrap_or(Scope::Admin);
    caller.require(scope)?;
    let most = settings.limits.body_bytes;
    let asked = request::api_request(entry, path, caller.subject.as_str(), most, request).await?;
    let arguments_json = request::arguments(entry, &asked).map_err(|error| unusable(entry, &error))?;
    let call = RoleCall {
        role: Role::ApiRoute,
        action: &entry.action,
        extension: entry.name(),
        deadline: entry.deadline(),
        arguments_json,
    };
    let answered = call.make(&app.backends, &caller).await?.ok_or_else(|| late(entry))?;
    if reply::is_late(&answered) {
        return Err(late(entry));
    }
    reply::response(entry.args.is_some(), &answered).map_err(|error| unusable(entry, &error))
}

fn late(entry: &RouteEntry) -> Problem {
    tracing::warn!(route = entry.name(), "a route's action passed its deadline");
    Problem::new(ProblemKind::GatewayTimeout, "the route's action did not answer in time")
}

/// Nothing of a plugin's error leaves: the log has it, under the request's id.
fn unusable(entry: &RouteEntry, why: &str) -> Problem {
    tracing::warn!(route = entry.name(), why, "a route's action has no answer that can be passed on");
    Problem::new(
        ProblemKind::BadGateway,
        "the route's action has no answer: the operator finds why by this request's id",
    )
}
