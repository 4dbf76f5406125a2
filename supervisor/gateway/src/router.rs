//! All layers and routes.

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use tower::ServiceBuilder;

use crate::api;
use crate::app::App;
use crate::layers::{
    bounded_body, close_after_chunks, cross_origin, identify, limited_by_address, own_site, require_caller,
    security_headers,
};
use crate::openai;
use crate::pages::pages;
use crate::problem::{Problem, ProblemKind, panics_as_problems, problems_of_libraries, with_request_id};
use crate::{routes, ws};

/// The router. A route is for callers alone, unless it is among the open ones; one that a plugin serves comes no earlier.
pub fn router(app: App) -> Router {
    let open = Router::new().merge(api::open_routes());
    let for_callers = Router::new()
        .merge(api::routes())
        .merge(ws::routes())
        .merge(routes::routes())
        .route_layer(from_fn(require_caller));
    open.merge(for_callers)
        .fallback(nothing_there)
        .layer(
            // From the outermost to the innermost.
            ServiceBuilder::new()
                .layer(from_fn(close_after_chunks)) // whoever answers
                .layer(from_fn(with_request_id)) // every answer and log line has an id
                .layer(map_response(security_headers)) // also on refusals
                .layer(from_fn(openai::errors)) // below /v1 errors have OpenAI's shape
                .layer(map_response(problems_of_libraries)) // also what a layer below refuses
                .layer(from_fn(panics_as_problems)) // a defect ends one request
                .layer(from_fn_with_state(app.clone(), limited_by_address)) // a flood costs nothing else
                .layer(from_fn_with_state(app.clone(), own_site)) // before a credential is looked at
                .layer(from_fn(pages)) // they hold nothing, and are for who is not signed in as well
                .layer(cross_origin(&app)) // answers preflights, which have no credential
                .layer(from_fn_with_state(app.clone(), identify)) // before a body is read
                .layer(from_fn_with_state(app.clone(), bounded_body)), // before a route reads it
        )
        .with_state(app)
}

async fn nothing_there() -> Problem {
    Problem::new(ProblemKind::NotFound, "there is nothing at this path")
}
