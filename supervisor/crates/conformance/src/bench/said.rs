//! Calls an action and classifies the result.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use talon_plugin::ExecuteError;
use talon_plugin::probe::Call;
use talon_proto::plugin::{ToolCallRequest, ToolResultResponse};
use talon_sanitize::{Raw, Sanitized, inert};
use tonic::Code;

use super::{Bench, CALL_PATIENCE, Finding, SHOWN_BYTES, Session, phrase};

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Said {
    Answer(ToolResultResponse),
    /// The answer does not decode.
    Undecodable(Sanitized),
    Status(Code, Sanitized),
    /// No answer came in time.
    Silent,
    /// The answer exceeds the announced limit.
    TooLarge(usize),
    /// The connection broke or the process exited; as text.
    Broken(Sanitized),
}

/// gRPC errors that mean a refusal of the request rather than a fault of the plugin.
const REFUSALS: [Code; 5] =
    [Code::InvalidArgument, Code::NotFound, Code::Unimplemented, Code::OutOfRange, Code::FailedPrecondition];

impl Said {
    /// A description for a finding.
    pub(crate) fn words(&self) -> Sanitized {
        match self {
            Self::Answer(answer) if answer.error.is_empty() => "an answer without an error".into(),
            Self::Answer(answer) => inert!("the error {}", Raw::from(&answer.error).line_within(SHOWN_BYTES)),
            Self::Undecodable(problem) => inert!("bytes that are no answer ({})", problem),
            Self::Status(code, message) => phrase(*code, message),
            Self::Silent => inert!("no answer within {} s", CALL_PATIENCE.as_secs()),
            Self::TooLarge(limit) => inert!("an answer of more than {} bytes", limit),
            Self::Broken(how) => how.clone(),
        }
    }

    /// The finding for a call with bad input: any answer passes, a refusal by gRPC error is a warning.
    pub(crate) fn as_taken(&self, what: Sanitized) -> Finding {
        let told = || inert!("{} got {}", what, self.words());
        match self {
            // Other checks judge the content of answers.
            Self::Answer(_) | Self::Undecodable(_) => Finding::pass(),
            Self::Status(code, _) if REFUSALS.contains(code) => Finding::Warn(told()),
            _ => Finding::Fail(told()),
        }
    }
}

impl Bench<'_> {
    /// Calls an action as a host does.
    pub(crate) async fn call(
        &self,
        session: &Session,
        id: &str,
        action: &str,
        args: &BTreeMap<String, String>,
    ) -> Said {
        self.call_with(session, id, action, args, None, CALL_PATIENCE).await
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
    ) -> Said {
        let plugin = self.facts.capabilities.as_ref().map(|declared| declared.name.clone());
        let request = ToolCallRequest {
            id: id.to_owned(),
            plugin: plugin.filter(|name| !name.is_empty()).unwrap_or_else(|| self.spec.name.to_string()),
            action: action.to_owned(),
            args: args.clone(),
            ..ToolCallRequest::default()
        };
        let max_answer_bytes = self.spec.max_message_bytes;
        let call = Call { timeout: timeout.or(Some(patience)), patience, max_answer_bytes };
        match session.wire.call("Execute", request.encode_to_vec().into(), call).await {
            Ok(bytes) => match ToolResultResponse::decode(bytes) {
                Ok(answer) => Said::Answer(answer),
                Err(error) => Said::Undecodable(Raw::of(error).line_within(SHOWN_BYTES)),
            },
            Err(ExecuteError::Status { code, message }) => Said::Status(code, message),
            Err(ExecuteError::TooLarge { limit }) => Said::TooLarge(limit),
            Err(ExecuteError::NotDecodable(message)) => Said::Undecodable(message),
            Err(error @ ExecuteError::TimedOut { .. }) => match session.probe.exited(Duration::ZERO).await {
                Some(_) => Said::Broken(self.how(session, &error).await),
                None => Said::Silent,
            },
            Err(error) => Said::Broken(self.how(session, &error).await),
        }
    }
}
