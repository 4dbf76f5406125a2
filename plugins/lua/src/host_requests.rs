//! What scripts ask for: key-values, a model, the log.

use std::sync::Arc;
use std::time::Duration;

use talon_lua_engine::{KvValue, LogLevel};
use talon_sdk::model::{CompletionRequest, Model, ModelError};
use talon_sdk::{State, StateError, tracing};

use crate::message::{Answer, Question};

/// What one call of a script may ask for.
pub(crate) struct HostRequests {
    script: Arc<str>,
    state: Option<State>,
    models: Models,
}

/// How a call reaches models.
#[derive(Clone, Default)]
pub(crate) struct Models {
    /// `None` where the operator grants none.
    pub(crate) model: Option<Model>,
    /// The one of `ctx.llm` without a name; the first that is granted, if this is nothing.
    pub(crate) default: Option<String>,
    /// How long one answer may take.
    pub(crate) timeout: Duration,
}

impl HostRequests {
    pub(crate) fn new(script: &str, state: Option<State>, models: Models) -> Self {
        Self { script: script.into(), state, models }
    }

    pub(crate) fn log(&self, level: LogLevel, message: &str) {
        let script = &*self.script;
        match level {
            LogLevel::Debug => tracing::debug!(script, "{message}"),
            LogLevel::Info => tracing::info!(script, "{message}"),
            LogLevel::Warn => tracing::warn!(script, "{message}"),
            LogLevel::Error => tracing::error!(script, "{message}"),
        }
    }

    pub(crate) async fn model(&self, prompt: &str, name: Option<&str>) -> Answer {
        let Models { model, default, timeout } = &self.models;
        let Some(model) = model else {
            return Answer::Failed(ModelError::NotGranted.to_string());
        };
        let name = name.or(default.as_deref()).unwrap_or_default();
        let request = CompletionRequest::new(prompt).model(name);
        match tokio::time::timeout(*timeout, model.complete(request)).await {
            Ok(Ok(completion)) => Answer::Text(completion.text),
            Ok(Err(error)) => Answer::Failed(error.to_string()),
            Err(_) => Answer::Failed(format!(
                "the model did not answer within {} s (limits.llm_timeout_seconds)",
                timeout.as_secs()
            )),
        }
    }

    pub(crate) async fn key_values(&self, question: Question) -> Answer {
        match self.state(question).await {
            Ok(answer) => answer,
            Err(error) => Answer::Failed(error),
        }
    }

    async fn state(&self, question: Question) -> Result<Answer, String> {
        let state = self.state.as_ref().ok_or_else(|| StateError::NotServed.to_string())?;
        let said = |error: StateError| error.to_string();
        match question {
            Question::KvGet { key } => match state.get(&self.key(&key)).await.map_err(said)? {
                None => Ok(Answer::Value(None)),
                Some(bytes) => match serde_json::from_slice::<KvValue>(&bytes) {
                    Ok(value) => Ok(Answer::Value(Some(value))),
                    Err(_) => Err("the value was written by something else than kv_set".to_owned()),
                },
            },
            Question::KvSet { key, value } => {
                let bytes = serde_json::to_vec(&value).map_err(|error| error.to_string())?;
                state.set(&self.key(&key), bytes).await.map_err(said)?;
                Ok(Answer::Stored)
            }
            Question::KvDelete { key } => {
                Ok(Answer::Existed(state.delete(&self.key(&key)).await.map_err(said)?))
            }
            Question::Model { .. } => Err("a model is no key".to_owned()),
        }
    }

    /// The key in the plugin's state. Names of scripts hold no slash, so no script reaches the values of another.
    fn key(&self, key: &str) -> String {
        format!("{}/{key}", self.script)
    }
}
