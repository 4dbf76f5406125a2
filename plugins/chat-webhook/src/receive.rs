//! The route's action: a signed message becomes an event.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use talon_sdk::{ApiRequest, ApiResponse, Context, ToolError, tracing};
use talon_sink::signature::verify;

use crate::message::event;
use crate::send::{ChatWebhook, SECRET};

/// How long the host may take to write an event to its disk, at most: less than the deadline of a route.
const ACKNOWLEDGE_TIME: Duration = Duration::from_secs(8);

/// Takes a message of the other program. It is answered with 202 once it is on the host's disk.
#[talon_sdk::api_route]
pub(crate) async fn receive(asked: ApiRequest, cx: Context) -> Result<ApiResponse, ToolError> {
    let shared = cx.shared::<ChatWebhook>()?;
    let refused = |status, detail: &str| ApiResponse::json(status, &json!({"error": detail}));
    let Some(secret) = cx.credential(SECRET) else {
        tracing::error!("there is no secret: configure the credential `secret` of this plugin");
        return refused(503, "the receiver has no secret yet");
    };
    let header = secret.header.to_ascii_lowercase();
    let Some(given) = asked.headers.get(&header) else {
        return refused(401, "there is no signature, or the route does not pass its header on");
    };
    let body = asked.bytes()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if let Err(error) = verify(secret.value, given, &body, now, shared.max_age) {
        return refused(401, &error.to_string());
    }
    let told = match event(&body) {
        Ok(event) => event,
        Err(error) => return refused(400, &error),
    };
    let id = told.id().to_owned();
    match tokio::time::timeout(ACKNOWLEDGE_TIME, shared.events.deliver(told)).await {
        Ok(Ok(())) => ApiResponse::json(202, &json!({"id": id})),
        Ok(Err(error)) => refused(400, &error.to_string()),
        // It is told all the same, and the same id again is the same message.
        Err(_) => {
            Ok(refused(503, "the message is not stored yet: send it again")?.header("retry-after", "10"))
        }
    }
}
