//! The routes under `/api`.
//!
//! | module | routes |
//! |---|---|
//! | `health` | whether the gateway, the host and the agent answer |
//! | `session` | a browser's session: opened by a link, and who it is |
//! | `sessions` | sessions and turns in them |
//! | `approvals` | what waits for a person |
//! | `ghosts` | what the shadow loop proposes |
//! | `memories` | what the agent remembers |
//! | `models`, `tools`, `costs` | what the agent has, and what it cost |
//! | `schedule`, `notifications` | jobs, and what people are told |
//! | `plugin_call` | a call of an action as oneself |
//! | `plugin_details` | one plugin with its actions, what it may do, and its roles |
//! | `plugins` | plugins: list, logs, start, stop, restart, reload |
//! | `extensions` | actions that play a role |
//! | `calls`, `series` | the latest calls, and numbers over time |
//! | `bus` | what the event bus carries |
//! | `config` | the configuration, and changes of it |
//! | `audit`, `doctor` | who did what, and what is wrong |
//! | `metrics` | the gateway's own numbers |
//! | `document` | the description of all of this, as OpenAPI 3.1 |
//!
//! | module | what routes share |
//! |---|---|
//! | `page` | lists, page by page |

pub(crate) mod approvals;
mod audit;
mod bus;
mod calls;
mod config;
mod costs;
mod doctor;
mod document;
mod extensions;
mod ghosts;
mod health;
mod memories;
mod metrics;
mod models;
mod notifications;
mod page;
mod plugin_call;
mod plugin_details;
mod plugins;
mod schedule;
mod series;
mod session;
pub(crate) mod sessions;
mod tools;

use axum::Router;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::openai;
use crate::sse;

/// Routes for everybody: they say that the process lives, and no more.
pub fn open_routes() -> Router<App> {
    let (open, _) = open_described().split_for_parts();
    open
}

/// Routes for callers.
pub fn routes() -> Router<App> {
    let (described, _) = described().split_for_parts();
    described.merge(document::routes(description()))
}

/// The description of all routes.
fn description() -> OpenApi {
    let mut all = described().into_openapi();
    all.merge(open_described().into_openapi());
    all
}

/// The routes for everybody, which stand in the description as well.
fn open_described() -> OpenApiRouter<App> {
    health::open_routes().merge(session::open_routes())
}

/// The routes for callers that stand in the description.
fn described() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(session::routes())
        .merge(metrics::routes())
        .merge(openai::routes())
        .merge(sessions::routes())
        .merge(sse::routes())
        .merge(approvals::routes())
        .merge(ghosts::routes())
        .merge(memories::routes())
        .merge(models::routes())
        .merge(tools::routes())
        .merge(costs::routes())
        .merge(schedule::routes())
        .merge(notifications::routes())
        .merge(plugins::routes())
        .merge(plugin_details::routes())
        .merge(plugin_call::routes())
        .merge(extensions::routes())
        .merge(calls::routes())
        .merge(series::routes())
        .merge(bus::routes())
        .merge(config::routes())
        .merge(audit::routes())
        .merge(doctor::routes())
}
