//! What hosts ask actions that play a role.

use serde_json::{Value, json};

use crate::StorageBytes;

/// A sample of what an action is asked in a role, with `changes` laid over it: members of the sample's objects are replaced one by
/// one, everything else as a whole. A job's own arguments stand beside `run` of a scheduled task.
///
/// ```
/// use serde_json::json;
/// use talon_sdk::testing::role_sample;
///
/// let asked = role_sample("notification_sink", json!({"event": {"kind": "budget.exceeded"}}));
/// assert_eq!(asked["event"]["kind"], "budget.exceeded");
/// assert_eq!(asked["attempt"], 1);
/// ```
///
/// # Panics
/// When there is no such role, or `changes` is no object: a mistake in the test.
#[must_use]
pub fn role_sample(role: &str, changes: Value) -> Value {
    let mut sample = sample(role).unwrap_or_else(|| panic!("there is no role {role:?}: see docs/extensions"));
    let Value::Object(changes) = changes else {
        panic!("changes of a sample are a JSON object, not {changes}")
    };
    for (name, change) in changes {
        match (sample.get_mut(&name), change) {
            (Some(Value::Object(members)), Value::Object(changed)) => members.extend(changed),
            (_, change) => sample[name] = change,
        }
    }
    sample
}

fn sample(role: &str) -> Option<Value> {
    Some(match role {
        "filter" | "request_hook" | "response_hook" => json!({
            "message": "Hello",
            "session": {"id": "01J00000000000000000000000", "turn": 1, "sender": "ada", "channel": "cli"},
            "metadata": {},
        }),
        "notification_sink" => json!({
            "event": {
                "id": "01J00000000000000000000000",
                "kind": "plugin.failed",
                "severity": "critical",
                "summary": "The plugin code-search failed",
                "details": "It exited with status 1 five times within a minute.",
                "time_unix_ms": 1_780_000_000_000_u64,
                "fields": {"plugin": "code-search", "reason": "exited with status 1"},
                "count": 1,
            },
            "attempt": 1,
        }),
        "scheduled_task" => json!({
            "run": {
                "id": "01J00000000000000000000000",
                "job": "nightly",
                "planned_unix_ms": 1_780_000_000_000_u64,
                "attempt": 1,
            },
        }),
        "auth_provider" => json!({
            "scheme": "bearer",
            "credential": "no-credential-of-anybody",
            "peer": {"address": "192.0.2.1", "user_agent": "talon"},
        }),
        "api_route" => json!({
            "method": "POST",
            "path": "/x/tickets",
            "query": {"notify": ["yes"]},
            "headers": {"content-type": "application/json"},
            "body": "{\"title\": \"It does not start\"}",
            "body_encoding": "text",
            "subject": "gw:local/ada",
        }),
        "channel" => json!({
            "op": "send",
            "id": "01J00000000000000000000000",
            "conversation": "42",
            "text": "The deployment is done.",
            "buttons": [{"id": "a:7", "label": "Allow"}],
            "attempt": 1,
        }),
        "storage_backend" => json!({
            "op": "get",
            "key": StorageBytes::seal(b"talon/sample"),
        }),
        _ => return None,
    })
}
