//! Following resources.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use talon_proto::mcp_actions::RESOURCES_SUBSCRIBE;
use talon_sdk::proto::Parameter;
use talon_sdk::{Context, Output, Tool, ToolError};
use tokio::time::Instant;

use super::action;
use super::item::MAX_KEY_BYTES;
use crate::subscriptions::Subscriptions;

/// The longest name of a subscriber, in bytes: twice the digits of a random number that nobody guesses.
const MAX_SUBSCRIBER_BYTES: usize = 64;
/// The longest list of resources. It may be longer than what is followed then, which says why it is refused.
const MAX_ASKED: usize = 1024;
/// The longest lease. A subscriber that was killed is notified for that long.
const MAX_LEASE: Duration = Duration::from_secs(3600);
/// How long the server may take, or the caller's deadline.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How many reasons the text holds.
const MAX_REASONS: usize = 16;

/// The action that follows them.
pub(super) fn action(subscriptions: Subscriptions) -> Tool {
    let uris = Parameter {
        name: "uris".to_owned(),
        description: "All addresses that it follows from now on, as the server names them.".to_owned(),
        r#type: "array".to_owned(),
        required: true,
        schema: json!({"type": "array", "items": {"type": "string"}}).to_string(),
    };
    let lease = Parameter {
        name: "lease_seconds".to_owned(),
        description: "For how long, unless the same call renews it.".to_owned(),
        r#type: "integer".to_owned(),
        required: true,
        schema: json!({"type": "integer", "minimum": 1, "maximum": MAX_LEASE.as_secs()}).to_string(),
    };
    let subscriber = action::text("subscriber", "Who follows them: a name that nobody else has.", true);
    let declared = action::declaration(
        RESOURCES_SUBSCRIBE,
        "Follows resources of the MCP server, whose changes the plugin then reports.",
        vec![subscriber, uris, lease],
    );
    Tool::dynamic(declared, move |args: BTreeMap<String, String>, cx: Context| {
        let subscriptions = subscriptions.clone();
        async move {
            let request = SubscribeRequest::of(&args, &cx)?;
            let until = Instant::now() + TIMEOUT;
            let until = cx.deadline().map_or(until, |deadline| deadline.min(until));
            let SubscribeRequest { subscriber, uris, lease } = &request;
            let refused = subscriptions.set(subscriber, uris, *lease, until).await;
            answer(&request.uris, &refused)
        }
    })
}

/// What a subscriber asks for.
struct SubscribeRequest {
    subscriber: String,
    uris: Vec<String>,
    lease: Duration,
}

impl SubscribeRequest {
    fn of(args: &BTreeMap<String, String>, cx: &Context) -> Result<Self, ToolError> {
        let subscriber = action::required(args, cx, "subscriber")?;
        if subscriber.is_empty() || subscriber.len() > MAX_SUBSCRIBER_BYTES {
            return Err(ToolError::new(format!("subscriber: 1 to {MAX_SUBSCRIBER_BYTES} bytes are taken")));
        }
        let uris = args.get("uris").map(String::as_str).unwrap_or_default();
        let uris: Vec<String> =
            serde_json::from_str(uris).map_err(|_| ToolError::new("uris: an array of addresses is taken"))?;
        if uris.len() > MAX_ASKED || uris.iter().any(|uri| uri.is_empty() || uri.len() > MAX_KEY_BYTES) {
            return Err(ToolError::new(format!(
                "uris: at most {MAX_ASKED} addresses of 1 to {MAX_KEY_BYTES} bytes are taken"
            )));
        }
        let seconds = args.get("lease_seconds").and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let lease = seconds.filter(|lease| !lease.is_zero() && *lease <= MAX_LEASE).ok_or_else(|| {
            ToolError::new(format!(
                "lease_seconds: a whole number from 1 to {} is taken",
                MAX_LEASE.as_secs()
            ))
        })?;
        Ok(Self { subscriber, uris, lease })
    }
}

/// Which are refused, as positions in what was asked: the guard may mark addresses.
fn answer(asked: &[String], refused: &BTreeMap<String, String>) -> Result<Output, ToolError> {
    let positions: Vec<usize> =
        asked.iter().enumerate().filter(|(_, uri)| refused.contains_key(*uri)).map(|(at, _)| at).collect();
    let mut text = format!("{} resources are followed", asked.len() - positions.len());
    for (uri, why) in refused.iter().take(MAX_REASONS) {
        let _ = write!(text, "\n{uri} is not: {why}");
    }
    if refused.len() > MAX_REASONS {
        let _ = write!(text, "\nneither are {} more", refused.len() - MAX_REASONS);
    }
    Output::text(text).structured(json!({ "refused": positions }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: MCP-56
    #[test]
    fn the_answer_names_positions_and_a_bounded_number_of_reasons() {
        let asked: Vec<String> = (0..40).map(|number| format!("x:{number}")).collect();
        let refused = asked.iter().skip(10).map(|uri| (uri.clone(), "no".to_owned())).collect();
        let answer = answer(&asked, &refused).unwrap();
        assert_eq!(answer.structured_content().unwrap()["refused"], json!((10..40).collect::<Vec<_>>()));
        let text = answer.content();
        assert!(text.starts_with("10 resources are followed\nx:10 is not: no\n"), "{text}");
        assert!(text.ends_with("\nneither are 14 more") && text.lines().count() == 18, "{text}");
    }
}
