//! One call of the storage backend's action.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use talon_child::truncate;
use talon_client::{Client, RequestFate};
use talon_extensions::Role;
use talon_extensions::contract::{StorageAnswer, StorageReply, StorageRequest};
use talon_guard::reason::BEFORE_PLUGIN;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};
use talon_proto::state::PluginEngine;
use tonic::Code;

use super::host_link::HostLink;

/// The largest answer: the guard's limit of a role's structured answer, with its framing.
const MAX_ANSWER_BYTES: usize = 2 << 20;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    /// One line, for the operator.
    pub(super) reason: String,
    /// Whether the operation may have been done.
    pub(super) may_be_done: bool,
}

/// Calls the action.
#[async_trait]
pub(crate) trait StorageCaller: Send + Sync {
    /// Calls it once; the answer fits the request.
    async fn call(&self, request: &StorageRequest, timeout: Duration) -> Result<StorageAnswer, CallFailure>;
}

/// Calls the action through the supervisor.
pub(crate) struct HostCaller {
    client: Client,
    target: PluginEngine,
}

impl HostCaller {
    /// Connects at the first call. Must be called within a runtime.
    pub(crate) fn new(link: Arc<HostLink>, target: PluginEngine) -> Self {
        let connect = move || {
            let link = Arc::clone(&link);
            Box::pin(async move { link.connect().await }) as talon_client::Connecting
        };
        let client = Client::with_connector(Arc::new(connect)).with_max_answer_bytes(MAX_ANSWER_BYTES);
        Self { client, target }
    }
}

#[async_trait]
impl StorageCaller for HostCaller {
    async fn call(&self, request: &StorageRequest, timeout: Duration) -> Result<StorageAnswer, CallFailure> {
        let PluginEngine { plugin, action, extension } = self.target.clone();
        let call = ExecuteRequest {
            plugin,
            action,
            extension,
            role: Role::StorageBackend.as_str().to_owned(),
            // The type has string keys only.
            arguments_json: serde_json::to_string(request).unwrap_or_default(),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1),
            ..ExecuteRequest::default()
        };
        match self.client.execute(call).await {
            Ok(response) => answer(response, request),
            Err(error) => {
                let refused = [Code::InvalidArgument, Code::PermissionDenied, Code::FailedPrecondition];
                let may_be_done = match error.fate {
                    RequestFate::NotStarted => false,
                    RequestFate::Answered => !refused.contains(&error.status.code()),
                    RequestFate::Unknown => true,
                };
                Err(CallFailure { reason: truncate(error.status.message().to_owned()), may_be_done })
            }
        }
    }
}

fn answer(response: ExecuteResponse, request: &StorageRequest) -> Result<StorageAnswer, CallFailure> {
    let failed = |reason: String, may_be_done| Err(CallFailure { reason: truncate(reason), may_be_done });
    if response.outcome() != Outcome::Ok {
        // A refused answer (`bad_result`, `too_large`) is one of a plugin that ran.
        let before_plugin = BEFORE_PLUGIN.contains(&response.reason.as_str());
        let may_be_done = response.outcome() != Outcome::Refused || !before_plugin;
        return failed(format!("{}: {}", response.reason, response.error), may_be_done);
    }
    let structured = serde_json::from_str(&response.structured_content).unwrap_or_default();
    match StorageReply::parse(&structured).and_then(|reply| reply.judge(request)) {
        Ok(answer) => Ok(answer),
        Err(error) => failed(error.to_string(), true),
    }
}

#[cfg(test)]
mod tests {
    use talon_extensions::contract::StorageOp;
    use talon_guard::reason;

    use super::*;

    // Promises: EXT-103
    #[test]
    fn only_a_refusal_before_the_plugin_says_that_nothing_was_done() {
        let key = Some(talon_extensions::contract::StorageBytes::seal(b"a"));
        let asked = StorageRequest {
            op: StorageOp::Delete,
            key,
            value: None,
            expected: Some("r1".to_owned()),
            prefix: None,
            after: None,
            limit: None,
        };
        let failure = |outcome: Outcome, reason: &str| {
            let response = ExecuteResponse {
                outcome: outcome.into(),
                reason: reason.to_owned(),
                error: "no".to_owned(),
                ..ExecuteResponse::default()
            };
            answer(response, &asked).expect_err("no answer")
        };
        for (reason, may_be_done) in [
            (reason::BAD_RESULT, true),
            (reason::TOO_LARGE, true),
            ("a reason of a later version", true),
            (reason::OVERLOADED, false),
            (reason::BREAKER_OPEN, false),
            (reason::QUARANTINED, false),
            (reason::NOT_GRANTED, false),
        ] {
            let failure = failure(Outcome::Refused, reason);
            assert_eq!(failure, CallFailure { reason: format!("{reason}: no"), may_be_done });
        }
        for (outcome, reason) in [
            (Outcome::HostFault, reason::DIED),
            (Outcome::HostFault, reason::OVERLOADED),
            (Outcome::ToolError, reason::TOOL_ERROR),
            // An answer that is none.
            (Outcome::Ok, ""),
        ] {
            assert!(failure(outcome, reason).may_be_done, "{reason}");
        }
    }
}
