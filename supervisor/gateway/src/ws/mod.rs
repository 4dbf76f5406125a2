//! The WebSocket at `/` and `/ws`: one connection, any number of sessions of one caller.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | reads, writes, pings, and ends |
//! | `outbox` | what waits to be written: bounded in bytes |
//! | `dispatch` | what a message of the client brings about |
//! | `sender_claim` | whom a message is for |
//! | `event_subscription` | that a message's events are followed before it is asked |

mod connection;
mod dispatch;
mod event_subscription;
mod outbox;
mod sender_claim;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use crate::access::require_chat;
use crate::app::App;
use crate::identity::{Caller, Scope};
use crate::problem::{Problem, ProblemKind};

/// How much of a connection is read at once, and kept for it as long as it is open. 8 KiB: nearly all messages. The library's own 128 KiB would
/// be most of what a connection costs that says nothing.
const READ_BUFFER_BYTES: usize = 8 << 10;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/ws", any(upgrade)).route("/", any(upgrade))
}

/// Makes a request a WebSocket, for a caller that may talk or approve.
async fn upgrade(
    State(app): State<App>,
    caller: Caller,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let Ok(socket) = socket else {
        let detail = "here is a WebSocket: connect with `Upgrade: websocket`";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    };
    if !caller.scopes.contain(Scope::Approve) {
        require_chat(&caller)?;
    }
    let limits = app.settings().limits;
    let place = app.sockets.enter(&caller, &limits).map_err(|met| {
        Problem::new(ProblemKind::TooManyRequests, met.to_string())
            .with_retry_after(std::time::Duration::from_secs(1))
    })?;
    let most = limits.body_bytes;
    let upgraded = socket
        .max_message_size(most)
        .max_frame_size(most)
        .read_buffer_size(READ_BUFFER_BYTES)
        // Nothing waits in the library: what waits is in the outbox, which is bounded.
        .write_buffer_size(0)
        .on_upgrade(move |socket| async move {
            // Its state is on the heap: what upgrades the connection would carry it twice.
            Box::pin(connection::serve(app, caller, socket)).await;
            drop(place);
        });
    Ok(upgraded.into_response())
}
