//! Canned completions, for tests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::completion::{Completion, CompletionRequest, GrantedModels};
use super::error::ModelError;

/// The requests that are kept for the test to look at: more than a test makes.
const MAX_REQUESTS: usize = 10_000;

/// What the mock grants beside the aliases: as the host's defaults.
const MAX_TOKENS: u32 = 4096;
const MAX_CALLS: u32 = 10;
const TIMEOUT: Duration = Duration::from_secs(60);

type Answer = dyn Fn(&CompletionRequest) -> Result<String, ModelError> + Send + Sync;

/// Canned answers; clones share them.
#[derive(Clone)]
pub(crate) struct Canned(Arc<Inner>);

struct Inner {
    aliases: Vec<String>,
    answer: Box<Answer>,
    requests: Mutex<VecDeque<CompletionRequest>>,
}

impl Canned {
    pub(crate) fn new(
        aliases: Vec<String>,
        answer: impl Fn(&CompletionRequest) -> Result<String, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner { aliases, answer: Box::new(answer), requests: Mutex::default() }))
    }

    pub(crate) fn granted(&self) -> GrantedModels {
        GrantedModels {
            aliases: self.0.aliases.clone(),
            max_tokens: MAX_TOKENS,
            max_calls: MAX_CALLS,
            timeout: TIMEOUT,
            own_budget: true,
        }
    }

    pub(crate) fn requests(&self) -> Vec<CompletionRequest> {
        self.0.requests.lock().iter().cloned().collect()
    }

    pub(crate) async fn complete(&self, request: CompletionRequest) -> Result<Completion, ModelError> {
        // A tool must not rely on an answer without an await.
        tokio::task::yield_now().await;
        let alias = match request.model.as_str() {
            "" => self.0.aliases.first().cloned().unwrap_or_default(),
            named if self.0.aliases.iter().any(|alias| alias == named) => named.to_owned(),
            named => {
                let granted = self.0.aliases.join(", ");
                let message = format!("{named} is not granted to this plugin; granted: {granted}");
                return Err(ModelError::UnknownModel { message });
            }
        };
        if request.messages.iter().all(|message| message.text.is_empty()) {
            let message = "messages: there is no text to complete".to_owned();
            return Err(ModelError::Invalid { message });
        }
        let answer = (self.0.answer)(&request);
        let mut requests = self.0.requests.lock();
        if requests.len() == MAX_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(request);
        drop(requests);
        answer.map(|text| Completion::new(text, format!("canned/{alias}")))
    }
}

impl fmt::Debug for Canned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canned").field("aliases", &self.0.aliases).finish_non_exhaustive()
    }
}
