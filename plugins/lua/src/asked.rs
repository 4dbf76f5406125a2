//! What scripts ask for: key-values, a model, the log.

use std::sync::Arc;

use talon_lua_engine::{KvValue, LogLevel};
use talon_sdk::{State, StateError, tracing};

use crate::message::{Answer, Question};

/// What one script may ask for.
pub(crate) struct Asked {
    script: Arc<str>,
    state: Option<State>,
}

impl Asked {
    pub(crate) fn new(script: &str, state: Option<State>) -> Self {
        Self { script: script.into(), state }
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

    /// Until this host passes models on to plugins, there is none: the script gets `nil` and this text.
    #[expect(clippy::unused_async, reason = "a model is asked over a socket")]
    pub(crate) async fn model(&self, _prompt: &str, _model: Option<&str>) -> Answer {
        Answer::Failed("this host offers no model to plugins".to_owned())
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
