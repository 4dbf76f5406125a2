//! A call in the terms of a plugin, and a plugin's failure in the terms of a call.

use talon_guard::{Call, CallError, CallFields, Omitted, reason};
use talon_plugin::{ExecuteRequest, Metadata, OutputObserver, ProgressObserver};
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
            arguments_json: call.json.map(|json| json.to_json()).unwrap_or_default(),
            credential_headers: call.credentials,
            takes_input_requests: call.takes_input_requests,
            input_response: call.input_response.map(|response| *response),
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
        output: call.raw_output.map(|output| {
            OutputObserver::new(move |told| {
                let left_out = Omitted { lines: told.left_out_lines, bytes: told.left_out_bytes };
                output.push(told.lines, left_out);
            })
        }),
        metadata: call.trace.map(|trace| Metadata::new(move |request| trace.outgoing_metadata(request))),
    }
}

/// Maps every failure of a plugin to a value of `ExecuteResponse.reason`. The text names the plugin, because
/// a caller may use several.
///
/// An answer that was received and rejected is a refusal, as in the layers above. Everything else is a fault
/// of the plugin and counts for its breaker.
///
/// It is unknown what a call did that was sent and not answered: its process ended, its connection broke, its
/// time ran out. So the same call is worth a retry only if the action declares that it changes nothing
/// (`read_only`).
pub(super) fn call_error(plugin: &str, read_only: bool, error: ExecuteError) -> CallError {
    let (retryable, effect_unknown) = (error.retryable(), !read_only && error.may_have_taken_effect());
    let text = format!("plugin {plugin}: {error}");
    let fault = match error {
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
    .with_retryable(retryable);
    if effect_unknown { fault.with_unknown_effect() } else { fault }
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
            (ExecuteError::TimedOut { waited: Duration::from_secs(1), sent: true }, "timed_out", true),
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
            let error = call_error("hello", true, error);
            assert_eq!(error.outcome(), Outcome::HostFault { reason, retryable }, "{error}");
            assert!(error.to_string().starts_with("plugin hello: "), "{error}");
        }
    }

    // Promises: GUARD-74
    #[test]
    fn what_may_have_taken_effect_is_not_worth_a_retry() {
        let broken = || ExecuteError::Transport(std::sync::Arc::new(std::io::Error::other("reset")));
        let late = |sent| ExecuteError::TimedOut { waited: Duration::from_secs(1), sent };
        for (error, reason) in [
            (ExecuteError::Died { exit: "exit code 3".into(), restarting: true }, "died"),
            (ExecuteError::Stopped, "died"),
            (broken(), "unavailable"),
            (late(true), "timed_out"),
        ] {
            let error = call_error("hello", false, error);
            assert_eq!(error.outcome(), Outcome::HostFault { reason, retryable: false }, "{error}");
            assert!(error.to_string().ends_with("; whether the action took effect is not known"), "{error}");
        }
        // What was never sent did nothing.
        let error = call_error("hello", false, late(false));
        assert_eq!(error.outcome(), Outcome::HostFault { reason: "timed_out", retryable: true }, "{error}");
    }

    #[test]
    fn an_answer_that_is_not_accepted_is_a_refusal() {
        let error = call_error("hello", false, ExecuteError::TooLarge { limit: 8 });
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
