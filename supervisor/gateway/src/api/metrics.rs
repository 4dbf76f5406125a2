//! `GET /metrics`: the gateway's own numbers, in the text format of Prometheus (scope operate).

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::require_operate;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// The gateway's own numbers, in the text format of Prometheus (scope operate).
#[utoipa::path(
    get, path = "/metrics", tag = "operation", responses((status = OK, body = String, content_type = "text/plain; version=0.0.4"))
)]
async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    require_operate(&caller)?;
    let background = app.background_turns.taken();
    let sockets = &app.sockets;
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("talon_gateway_websockets", "gauge", "Open WebSocket connections.", sockets.open()),
        (
            "talon_gateway_websocket_messages_total",
            "counter",
            "Messages of clients over WebSocket.",
            sockets.messages(),
        ),
        (
            "talon_gateway_websocket_cut_total",
            "counter",
            "WebSocket connections cut off because their clients read too slowly.",
            sockets.cut(),
        ),
        (
            "talon_gateway_background_turns",
            "gauge",
            "Turns that go on without a client that waits.",
            background as u64,
        ),
    ] {
        // Writing to a text cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
