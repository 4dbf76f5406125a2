//! Completions of language models for a server (MCP's sampling), where the operator grants its plugin some.
//!
//! ```text
//! tools/call ─► server ─ sampling/createMessage ─► client ─► sampling ─ model.sock ─► the agent
//! ```
//!
//! Servers before 2026-07-28 ask by a separate request, which does not say for which call: it is charged to the one call
//! that is under way. Later ones answer the call with what they need.

mod request;

use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Value, json};
use talon_sdk::model::{Completion, FinishReason, Model, ModelError};

use request::SamplingRequest;

/// The models of the server's plugin. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Sampling(Option<Arc<Granted>>);

struct Granted {
    model: Model,
    /// The ids of the calls that are under way, as the supervisor gave them.
    calls: Mutex<Vec<String>>,
}

/// Why a server gets no completion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SamplingError {
    #[error("this client offers no sampling: its operator grants no model")]
    NotGranted,
    #[error("{0}")]
    Request(#[from] request::RequestError),
    #[error(
        "{0} calls are under way, and the server does not say which of them it asks for: ask one at a time"
    )]
    Calls(usize),
    #[error("{0}")]
    Model(#[from] ModelError),
}

impl From<SamplingError> for ErrorData {
    fn from(error: SamplingError) -> Self {
        let code = match error {
            SamplingError::NotGranted => ErrorCode::METHOD_NOT_FOUND,
            SamplingError::Request(_) | SamplingError::Model(ModelError::Invalid { .. }) => {
                ErrorCode::INVALID_PARAMS
            }
            SamplingError::Calls(_) | SamplingError::Model(_) => ErrorCode::INTERNAL_ERROR,
        };
        Self::new(code, error.to_string(), None)
    }
}

impl Sampling {
    /// The models that the environment names; none without a grant.
    pub(crate) fn from_env() -> Self {
        let granted = Model::from_env().ok();
        Self(granted.map(|model| Arc::new(Granted { model, calls: Mutex::default() })))
    }

    /// Whether the server may ask.
    pub(crate) fn is_granted(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a call as under way until the value is dropped.
    pub(crate) fn enter(&self, call_id: &str) -> CallInFlight {
        if let Some(granted) = &self.0 {
            granted.calls.lock().push(call_id.to_owned());
        }
        CallInFlight { sampling: self.clone(), call_id: call_id.to_owned() }
    }

    /// Answers `sampling/createMessage` of a server that does not say for which call it asks.
    ///
    /// # Errors
    /// [`SamplingError`]
    pub(crate) async fn answer_any(&self, params: &Value) -> Result<Value, SamplingError> {
        let granted = self.0.as_ref().ok_or(SamplingError::NotGranted)?;
        let call_id = match granted.calls.lock().as_slice() {
            // On the plugin's own account, if it has one.
            [] => String::new(),
            [only] => only.clone(),
            several => return Err(SamplingError::Calls(several.len())),
        };
        self.answer(params, &call_id).await
    }

    /// Answers `sampling/createMessage` for a call.
    ///
    /// # Errors
    /// [`SamplingError`]
    pub(crate) async fn answer(&self, params: &Value, call_id: &str) -> Result<Value, SamplingError> {
        let granted = self.0.as_ref().ok_or(SamplingError::NotGranted)?;
        let model = granted.model.clone().for_call(call_id);
        let request = SamplingRequest::parse(params)?;
        let aliases = model.granted().await?.aliases;
        Ok(result(model.complete(request.for_aliases(&aliases)).await?))
    }
}

/// A call that is under way.
#[must_use = "the call is over when it is dropped"]
pub(crate) struct CallInFlight {
    sampling: Sampling,
    call_id: String,
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        if let Some(granted) = &self.sampling.0 {
            let mut calls = granted.calls.lock();
            if let Some(at) = calls.iter().position(|call| *call == self.call_id) {
                calls.swap_remove(at);
            }
        }
    }
}

fn result(completion: Completion) -> Value {
    let stop_reason = match completion.finish {
        FinishReason::Length => "maxTokens",
        FinishReason::StopSequence => "stopSequence",
        FinishReason::Stop => "endTurn",
        other => other.as_str(),
    };
    json!({
        "role": "assistant",
        "content": { "type": "text", "text": completion.text },
        "model": completion.model,
        "stopReason": stop_reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_grant_the_method_is_not_there() {
        let sampling = Sampling::default();
        let _call = sampling.enter("c");
        let error = sampling.answer_any(&json!({})).await.unwrap_err();
        assert_eq!(ErrorData::from(error).code, ErrorCode::METHOD_NOT_FOUND);
    }

    #[test]
    fn an_answer_has_the_form_of_the_protocol() {
        let answer = result(Completion::new("hi", "p/m"));
        let content = json!({ "type": "text", "text": "hi" });
        let whole =
            json!({ "role": "assistant", "content": content, "model": "p/m", "stopReason": "endTurn" });
        assert_eq!(answer, whole);
    }
}
