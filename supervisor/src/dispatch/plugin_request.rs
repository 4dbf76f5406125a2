//! A call in the terms of a plugin, and a plugin's failure in the terms of a call.

use talon_guard::{Call, CallError, CallFields, reason};
use talon_plugin::{ExecuteRequest, Metadata, ProgressObserver};
use talon_plugin_client::ExecuteError;
use talon_proto::plugin::ToolCallRequest;

/// The request of a call, after `resolve`.
pub(super) fn plugin_request(call: Call) -> ExecuteRequest {
    let call = CallFields::from(call);
    ExecuteRequest {
        message: ToolCallRequest {
            id: call.id.to_string(),
            plugin: call.declared_name,
            action: call.action,
            args: call.args,
            credential_headers: call.credentials,
        },
        deadline: call.deadline,
        // The caller's timeout is passed on only if it is the one that ends the call; otherwise the deadline
        // layer applies.
        configured_timeout: call
            .deadline
            .filter(|_| call.timeout.is_none())
            .map(|deadline| deadline.saturating_duration_since(call.accepted)),
        observer: call.progress_observer.map(|follower| {
            ProgressObserver::new(move |told| follower.progress(told.progress, told.total, &told.message))
        }),
        metadata: call.trace.map(|trace| Metadata::new(move |request| trace.outgoing_metadata(request))),
    }
}

/// Maps every failure of a plugin to a value of `ExecuteResponse.reason`. The text names the plugin, because
/// a caller may use several.
///
/// An answer that was received and rejected is a refusal, as in the layers above. Everything else is a fault
/// of the plugin and counts for its breaker.
pub(super) fn call_error(plugin: &str, error: ExecuteError) -> CallError {
    let text = format!("plugin {plugin}: {error}");
    let retryable = error.retryable();
    match error {
        ExecuteError::TooLarge { .. } => CallError::refused(reason::TOO_LARGE, text),
        ExecuteError::Died { .. } | ExecuteError::Stopped => CallError::fault(reason::DIED, text),
        ExecuteError::TimedOut { .. } => CallError::fault(reason::TIMED_OUT, text),
        ExecuteError::Status { .. } => CallError::fault(reason::PLUGIN_ERROR, text),
        ExecuteError::NotDecodable(_) => CallError::fault(reason::PLUGIN_ERROR, text),
        // HTTP/2 details are useful in the log only.
        ExecuteError::Transport(_) => {
            let text = format!("plugin {plugin}: the connection to it failed during the call");
            CallError::fault(reason::UNAVAILABLE, text).caused_by(error)
        }
        // Any variant that is added to the enum later also means that the plugin is unavailable.
        _ => CallError::fault(reason::UNAVAILABLE, text),
    }
    .with_retryable(retryable)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talon_guard::Outcome;

    use super::*;

    #[test]
    fn every_fault_has_its_word_and_says_whether_a_retry_can_help() {
        let cases = [
            (ExecuteError::Died { exit: "exit code 3".into(), restarting: true }, "died", true),
            (ExecuteError::Died { exit: "exit code 3".into(), restarting: false }, "died", false),
            (ExecuteError::Stopped, "died", true),
            (ExecuteError::Unavailable { reason: "failed".into(), retryable: false }, "unavailable", false),
            (ExecuteError::TimedOut { waited: Duration::from_secs(1) }, "timed_out", true),
            (
                ExecuteError::Status { code: tonic::Code::Internal, message: "no".into() },
                "plugin_error",
                false,
            ),
            (
                ExecuteError::Transport(std::sync::Arc::new(std::io::Error::other("reset"))),
                "unavailable",
                true,
            ),
            (ExecuteError::NotDecodable("html".into()), "plugin_error", false),
        ];
        for (error, reason, retryable) in cases {
            let error = call_error("hello", error);
            assert_eq!(error.outcome(), Outcome::HostFault { reason, retryable }, "{error}");
            assert!(error.to_string().starts_with("plugin hello: "), "{error}");
        }
    }

    #[test]
    fn an_answer_that_is_not_accepted_is_a_refusal() {
        let error = call_error("hello", ExecuteError::TooLarge { limit: 8 });
        assert_eq!(error.outcome(), Outcome::Refused { reason: "too_large", retryable: false });
    }

    #[test]
    fn only_the_operators_deadline_counts_against_a_plugin() {
        let mut call = Call::new("id", "configured", "act", talon_guard::Origin::Person);
        assert_eq!(plugin_request(call.clone()).configured_timeout, None);
        call.deadline = Some(call.accepted + Duration::from_secs(30));
        assert_eq!(plugin_request(call.clone()).configured_timeout, Some(Duration::from_secs(30)));
        call.timeout = Some(Duration::from_secs(30));
        assert_eq!(plugin_request(call).configured_timeout, None);
    }

    // Promises: REG-7
    #[test]
    fn the_plugin_sees_its_own_name_and_the_hosts_credentials() {
        let mut call = Call::new("id", "configured", "act", talon_guard::Origin::Person);
        call.declared_name = "declared".into();
        call.args.insert("a".into(), "1".into());
        let message = plugin_request(call).message;
        assert_eq!((message.plugin.as_str(), message.args["a"].as_str()), ("declared", "1"));
    }
}
