//! Calls an action and classifies the result.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use talon_plugin::probe::CallOptions;
use talon_plugin_client::ExecuteError;
use talon_proto::plugin::{ToolCallRequest, ToolResultResponse};
use talon_sanitize::{Raw, Sanitized, sanitized};
use tonic::Code;

use super::{CALL_TIMEOUT, Finding, Harness, SHOWN_BYTES, Session, describe_status};

/// The result of a call.
#[derive(Debug)]
pub(crate) enum CallResult {
    Answer(ToolResultResponse),
    /// The answer does not decode.
    Undecodable(Sanitized),
    Status(Code, Sanitized),
    /// No answer came in time.
    NoAnswer,
    /// The answer exceeds the announced limit.
    TooLarge(usize),
    /// The connection broke or the process exited; as text.
    Broken(Sanitized),
}

/// gRPC errors that mean a refusal of the request rather than a fault of the plugin.
const REFUSALS: [Code; 5] =
    [Code::InvalidArgument, Code::NotFound, Code::Unimplemented, Code::OutOfRange, Code::FailedPrecondition];

impl CallResult {
    /// A description for a finding.
    pub(crate) fn describe(&self) -> Sanitized {
        match self {
            Self::Answer(answer) if answer.error.is_empty() => "an answer without an error".into(),
            Self::Answer(answer) => {
                sanitized!("the error {}", Raw::from(&answer.error).line_within(SHOWN_BYTES))
            }
            Self::Undecodable(problem) => sanitized!("bytes that are no answer ({})", problem),
            Self::Status(code, message) => describe_status(*code, message),
            Self::NoAnswer => sanitized!("no answer within {} s", CALL_TIMEOUT.as_secs()),
            Self::TooLarge(limit) => sanitized!("an answer of more than {} bytes", limit),
            Self::Broken(how) => how.clone(),
        }
    }

    /// The finding for a call with bad input: any answer passes, a refusal by gRPC error is a warning.
    pub(crate) fn to_finding(&self, what: Sanitized) -> Finding {
        let told = || sanitized!("{} got {}", what, self.describe());
        match self {
            // Other checks judge the content of answers.
            Self::Answer(_) | Self::Undecodable(_) => Finding::pass(),
            Self::Status(code, _) if REFUSALS.contains(code) => Finding::Warn(told()),
            _ => Finding::Fail(told()),
        }
    }
}

impl Harness<'_> {
    /// Calls an action as a host does.
    pub(crate) async fn call(
        &self,
        session: &Session,
        id: &str,
        action: &str,
        args: &BTreeMap<String, String>,
    ) -> CallResult {
        self.call_with(session, id, action, args, None, CALL_TIMEOUT).await
    }

    /// The same with a deadline in its header and another time limit.
    pub(crate) async fn call_with(
        &self,
        session: &Session,
        id: &str,
        action: &str,
        args: &BTreeMap<String, String>,
        timeout: Option<Duration>,
        patience: Duration,
    ) -> CallResult {
        let plugin = self.facts.capabilities.as_ref().map(|declared| declared.name.clone());
        let request = ToolCallRequest {
            id: id.to_owned(),
            plugin: plugin.filter(|name| !name.is_empty()).unwrap_or_else(|| self.spec.name.to_string()),
            action: action.to_owned(),
            args: args.clone(),
            ..ToolCallRequest::default()
        };
        let max_answer_bytes = self.spec.max_message_bytes;
        let call =
            CallOptions { timeout: timeout.or(Some(patience)), response_timeout: patience, max_answer_bytes };
        match session.client.call("Execute", request.encode_to_vec().into(), call).await {
            Ok(bytes) => match ToolResultResponse::decode(bytes) {
                Ok(answer) => CallResult::Answer(answer),
                Err(error) => CallResult::Undecodable(Raw::of(error).line_within(SHOWN_BYTES)),
            },
            Err(ExecuteError::Status { code, message }) => CallResult::Status(code, message),
            Err(ExecuteError::TooLarge { limit }) => CallResult::TooLarge(limit),
            Err(ExecuteError::NotDecodable(message)) => CallResult::Undecodable(message),
            Err(error @ ExecuteError::TimedOut { .. }) => {
                match session.probe.wait_for_exit(Duration::ZERO).await {
                    Some(_) => CallResult::Broken(self.describe_failure(session, &error).await),
                    None => CallResult::NoAnswer,
                }
            }
            Err(error) => CallResult::Broken(self.describe_failure(session, &error).await),
        }
    }
}
