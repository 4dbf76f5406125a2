//! What people are told: `GET /api/notifications`, `POST /api/notifications/retry`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use talon_proto::agent::{self, ListNotificationsRequest, RetryNotificationsRequest};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::page::Page;
use crate::access::require_operate;
use crate::app::App;
use crate::identity::Caller;
use crate::input::{JsonBody, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(retry))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct NotificationQuery {
    /// waiting, sending, delivered, refused or given_up
    state: Option<String>,
    /// Of one entry.
    entry: Option<String>,
    /// How many at most.
    limit: Option<u32>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// What one entry is told.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Notification {
    id: String,
    entry: String,
    kind: String,
    /// info, warning or critical
    severity: String,
    summary: String,
    details: String,
    fields: BTreeMap<String, String>,
    /// How many events it stands for.
    count: u64,
    /// waiting, sending, delivered, refused or given_up
    state: String,
    attempt: u32,
    /// In milliseconds since 1970.
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<u64>,
    /// Why the last attempt failed.
    note: String,
}

impl From<agent::Notification> for Notification {
    fn from(notification: agent::Notification) -> Self {
        Self {
            id: notification.id,
            entry: notification.entry,
            kind: notification.kind,
            severity: notification.severity,
            summary: notification.summary,
            details: notification.details,
            fields: notification.fields.into_iter().collect(),
            count: notification.count,
            state: notification.state,
            attempt: notification.attempt,
            created_at: notification.created_unix_ms,
            next_at: notification.next_unix_ms,
            ended_at: notification.ended_unix_ms,
            note: notification.note,
        }
    }
}

/// What people are told, or were, or what waits; the latest first (scope operate).
#[utoipa::path(get, path = "/api/notifications", tag = "operation", params(NotificationQuery), responses((status = OK, body = Page<Notification>)))]
async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<NotificationQuery>,
) -> Result<Json<Page<Notification>>, Problem> {
    require_operate(&caller)?;
    let request = ListNotificationsRequest {
        state: query.state.unwrap_or_default(),
        entry: query.entry.unwrap_or_default(),
        page_size: query.limit.unwrap_or_default(),
        page_token: query.cursor.unwrap_or_default(),
    };
    let answer = app.backends.agent(&caller).list_notifications(request).await?.into_inner();
    Ok(Json(Page::new(answer.notifications.into_iter().map(Notification::from), answer.next_page_token)))
}

/// Which are attempted again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RetryWish {
    /// One of them; without it, all that were refused, given up, or wait.
    #[serde(default)]
    id: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct Retried {
    /// How many are attempted again.
    notifications: u64,
}

/// Has notifications be delivered after all (scope operate).
#[utoipa::path(post, path = "/api/notifications/retry", tag = "operation", request_body = RetryWish, responses((status = OK, body = Retried)))]
async fn retry(
    State(app): State<App>,
    caller: Caller,
    JsonBody(wish): JsonBody<RetryWish>,
) -> Result<Json<Retried>, Problem> {
    require_operate(&caller)?;
    let request = RetryNotificationsRequest { id: wish.id };
    let answer = app.backends.agent(&caller).retry_notifications(request).await?.into_inner();
    Ok(Json(Retried { notifications: answer.notifications }))
}
