//! Sessions, and turns in them.
//!
//! | module | contents |
//! |---|---|
//! | `view` | a session and its messages, as founded |
//! | `manage` | list, create, read, change, delete, cancel, compact, undo |
//! | `send` | a message and what comes of it: awaited, streamed, or in the background |

mod manage;
pub(crate) mod send;
mod view;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(manage::list, manage::create))
        .routes(routes!(manage::get, manage::change, manage::delete))
        .routes(routes!(manage::cancel))
        .routes(routes!(manage::compact))
        .routes(routes!(manage::undo))
        .routes(routes!(send::send))
}
