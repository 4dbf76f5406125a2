//! The routes under `/api`.
//!
//! | module | routes |
//! |---|---|
//! | `health` | whether the gateway, the host and the agent answer |
//! | `session` | a browser's session: opened by a link, and who it is |

mod health;
mod session;

use axum::Router;

use crate::app::App;

/// Routes for everybody: they say that the process lives, and no more.
pub fn open_routes() -> Router<App> {
    health::open_routes().merge(session::open_routes())
}

/// Routes for callers.
pub fn routes() -> Router<App> {
    health::routes().merge(session::routes())
}
