//! A try of a storage backend: one read, as an administrator, and what its answer says.

use std::time::Instant;

use serde_json::Value;
use talon_extensions::contract::{StorageAnswer, StorageBytes, StorageOp, StorageReply, StorageRequest};
use talon_proto::agent::TestExtensionResponse;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};

use crate::client::connection::Client;
use crate::failure::Failure;
use crate::host_socket::HostSocket;

/// The key of the built-in sample, which no plugin's state has.
const KEY: &[u8] = b"test/talon extension test";

/// Calls the action with a sample, or with the built-in one.
pub(super) async fn call(
    socket: &HostSocket<'_>,
    action: &str,
    sample: &str,
) -> Result<TestExtensionResponse, Failure> {
    let (plugin, name) = action
        .split_once('.')
        .ok_or_else(|| Failure::usage(format!("{action:?} is no action: write plugin.action")))?;
    let request = request_of(sample).map_err(Failure::usage)?;
    // The type has string keys only.
    let arguments_json = serde_json::to_string(&request).unwrap_or_default();
    let execute = ExecuteRequest {
        plugin: plugin.to_owned(),
        action: name.to_owned(),
        arguments_json: arguments_json.clone(),
        ..ExecuteRequest::default()
    };
    let mut client = Client::connect(socket).await?;
    let began = Instant::now();
    let answered = client.host.execute(execute).await.map_err(|status| client.failure(&status))?.into_inner();
    let duration_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let (verdict, reason, effect) = match judge(&answered, &request) {
        Ok(answer) => said(answer),
        Err(reason) => {
            ("failed", reason, "A plugin's read would be tried again, and then be an error.".to_owned())
        }
    };
    Ok(TestExtensionResponse {
        entry: action.to_owned(),
        arguments_json,
        verdict: verdict.to_owned(),
        reason,
        effect,
        duration_us,
        ..TestExtensionResponse::default()
    })
}

/// The request of a sample, which may only read.
fn request_of(sample: &str) -> Result<StorageRequest, String> {
    if sample.is_empty() {
        return Ok(StorageRequest {
            op: StorageOp::Get,
            key: Some(StorageBytes::seal(KEY)),
            value: None,
            expected: None,
            prefix: None,
            after: None,
            limit: None,
        });
    }
    let request: StorageRequest = serde_json::from_str(sample)
        .map_err(|error| format!("the sample does not fit the role storage_backend: {error}"))?;
    match request.op {
        StorageOp::Get | StorageOp::Scan => Ok(request),
        StorageOp::Set | StorageOp::Delete => Err(
            "a sample that writes would change what plugins stored: write one of get or scan; `talon conformance` tries writes on keys of its own"
                .to_owned(),
        ),
    }
}

fn judge(answered: &ExecuteResponse, request: &StorageRequest) -> Result<StorageAnswer, String> {
    if answered.outcome() != Outcome::Ok {
        return Err(format!("it failed ({}): {}", answered.reason, answered.error));
    }
    let structured: Value = serde_json::from_str(&answered.structured_content).unwrap_or_default();
    let judged = StorageReply::parse(&structured).and_then(|reply| reply.judge(request));
    judged.map_err(|error| error.to_string())
}

/// The verdict, its reason, and what talon-state would do.
fn said(answer: StorageAnswer) -> (&'static str, String, String) {
    match answer {
        StorageAnswer::Absent => {
            ("absent", String::new(), "A plugin would be told that there is no such key.".to_owned())
        }
        StorageAnswer::Found { value, revision } => (
            "found",
            String::new(),
            format!("A plugin would get {} bytes, of revision {revision}.", value.len()),
        ),
        StorageAnswer::Page { items, more } => {
            let further = if more { ", and asked for further ones" } else { "" };
            ("page", String::new(), format!("{} keys would be listed{further}.", items.len()))
        }
        StorageAnswer::Unavailable(reason) => {
            ("failed", reason, "It would be asked again for 12 seconds, and then be an error.".to_owned())
        }
        StorageAnswer::Refused(reason) => ("failed", reason, "A plugin's read would be an error.".to_owned()),
        // A judged answer to a read is none of these.
        StorageAnswer::Stored { .. }
        | StorageAnswer::Deleted
        | StorageAnswer::Conflict
        | StorageAnswer::Full(_) => (
            "failed",
            "it answers another operation".to_owned(),
            "A plugin's read would be an error.".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-177
    #[test]
    fn a_sample_reads_or_is_refused() {
        assert_eq!(request_of("").expect("the built-in one").op, StorageOp::Get);
        assert_eq!(request_of(r#"{"op": "scan", "limit": 3}"#).expect("it reads").limit, Some(3));
        assert!(request_of(r#"{"op": "set"}"#).is_err_and(|why| why.contains("talon conformance")));
        assert!(request_of("{").is_err_and(|why| why.contains("does not fit")));
    }

    // Promises: EXT-177
    #[test]
    fn an_answer_is_judged_as_talon_state_does() {
        let request = request_of("").expect("the built-in one");
        let answered = |structured: &str| ExecuteResponse {
            outcome: Outcome::Ok.into(),
            structured_content: structured.to_owned(),
            ..ExecuteResponse::default()
        };
        assert_eq!(judge(&answered(r#"{"outcome": "absent"}"#), &request), Ok(StorageAnswer::Absent));
        assert!(judge(&answered(r#"{"outcome": "page"}"#), &request).is_err());
        assert!(judge(&answered("nothing"), &request).is_err());
        let refused = ExecuteResponse { outcome: Outcome::Refused.into(), ..ExecuteResponse::default() };
        assert!(judge(&refused, &request).is_err());
    }
}
