//! `/api/config`: the configuration, and what of it may be changed while Talon runs (scope admin).
//!
//! | module | contents |
//! |---|---|
//! | `values` | the values of a configuration as one object |
//! | `merge_patch` | a JSON merge patch as edits of single keys |
//! | `read` | `GET /api/config`, `/sources`, `/history`, `/check` |
//! | `change` | `PATCH /api/config`, `POST /api/config/check` |
//!
//! The supervisor parses no JSON: it gets key paths with values, and decides by its own list what may be changed.

mod change;
mod merge_patch;
mod read;
mod values;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(read::routes()).merge(change::routes())
}
