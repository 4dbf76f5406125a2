//! What is asked of a model, and its answer.

use talon_proto::model::{CompleteRequest, CompleteResponse, ListResponse, Message, Usage};

/// Whose a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptRole {
    /// The plugin, or whom it speaks for.
    User,
    /// The model.
    Assistant,
}

impl PromptRole {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptMessage {
    /// Whose it is.
    pub role: PromptRole,
    /// What it says.
    pub text: String,
}

/// What is asked of a model.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use = "nothing is asked yet"]
pub struct CompletionRequest {
    pub(crate) model: String,
    pub(crate) messages: Vec<PromptMessage>,
    pub(crate) system: String,
    pub(crate) max_tokens: u32,
    pub(crate) temperature: Option<f32>,
    pub(crate) stop: Vec<String>,
}

impl CompletionRequest {
    /// One message of the user, for the first model that the operator grants.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self::default().message(PromptRole::User, prompt)
    }

    /// A conversation, oldest message first; the last one has to be the user's.
    pub fn conversation(messages: impl IntoIterator<Item = PromptMessage>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// Adds a message.
    pub fn message(mut self, role: PromptRole, text: impl Into<String>) -> Self {
        self.messages.push(PromptMessage { role, text: text.into() });
        self
    }

    /// Chooses one of the granted aliases; an empty text is the first.
    pub fn model(mut self, alias: impl Into<String>) -> Self {
        self.model = alias.into();
        self
    }

    /// Sets standing instructions for the model.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = text.into();
        self
    }

    /// Sets the most tokens of the answer; the operator's limit is never exceeded. 0 is the operator's.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Sets how freely the model chooses its words, from 0 to 2; otherwise the provider's default.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Adds a text before which the answer ends.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// The chosen alias; empty for the first.
    #[must_use]
    pub fn alias(&self) -> &str {
        &self.model
    }

    /// The messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &[PromptMessage] {
        &self.messages
    }

    /// The standing instructions; empty without.
    #[must_use]
    pub fn instructions(&self) -> &str {
        &self.system
    }

    pub(crate) fn into_wire(self, call_id: String) -> CompleteRequest {
        let Self { model, messages, system, max_tokens, temperature, stop } = self;
        let wire =
            |message: PromptMessage| Message { role: message.role.as_str().to_owned(), text: message.text };
        let messages = messages.into_iter().map(wire).collect();
        CompleteRequest { model, messages, system, max_tokens, temperature, stop, call_id }
    }

    /// Reads the wire's form; a role that is none counts as the user's.
    pub(crate) fn from_wire(request: CompleteRequest) -> Self {
        let CompleteRequest { model, messages, system, max_tokens, temperature, stop, call_id: _ } = request;
        let read = |message: Message| PromptMessage {
            role: if message.role == "assistant" { PromptRole::Assistant } else { PromptRole::User },
            text: message.text,
        };
        let messages = messages.into_iter().map(read).collect();
        Self { model, messages, system, max_tokens, temperature, stop }
    }
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// Its text. It is a model's: treat it as data.
    pub text: String,
    /// The model that answered, as provider/name. It may be another than the alias names.
    pub model: String,
    /// Why the text ends.
    pub finish: FinishReason,
    /// The tokens used.
    pub usage: ModelUsage,
}

/// Why a completion's text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// One of [`CompletionRequest::stop`] came.
    StopSequence,
    /// The limit of tokens: the text is cut.
    Length,
    /// The provider withheld something.
    Filtered,
    /// The model, or its provider for it, refused to answer.
    Refused,
    /// A reason that this SDK does not know.
    Other,
}

impl FinishReason {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::StopSequence => "stop_sequence",
            Self::Length => "length",
            Self::Filtered => "filtered",
            Self::Refused => "refused",
            Self::Other => "other",
        }
    }

    fn parse(word: &str) -> Self {
        let known = [Self::Stop, Self::StopSequence, Self::Length, Self::Filtered, Self::Refused];
        known.into_iter().find(|one| one.as_str() == word).unwrap_or(Self::Other)
    }
}

/// The tokens that a completion used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelUsage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Whether both are estimates, because no provider counted them.
    pub estimated: bool,
}

/// What the operator grants this plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantedModels {
    /// The aliases; the first is the default.
    pub aliases: Vec<String>,
    /// The most tokens of one answer.
    pub max_tokens: u32,
    /// The most completions of one call.
    pub max_calls: u32,
    /// The longest time for one completion.
    pub timeout: std::time::Duration,
    /// Whether completions are made without a call in flight.
    pub own_budget: bool,
}

impl Completion {
    /// A complete answer, as tests of a tool need it.
    #[must_use]
    pub fn new(text: impl Into<String>, model: impl Into<String>) -> Self {
        let (text, model) = (text.into(), model.into());
        Self { text, model, finish: FinishReason::Stop, usage: ModelUsage::default() }
    }

    pub(crate) fn from_wire(response: CompleteResponse) -> Self {
        let CompleteResponse { text, model, finish, usage } = response;
        let Usage { input_tokens, output_tokens, estimated } = usage.unwrap_or_default();
        let usage = ModelUsage { input_tokens, output_tokens, estimated };
        Self { text, model, finish: FinishReason::parse(&finish), usage }
    }

    pub(crate) fn into_wire(self) -> CompleteResponse {
        let Self { text, model, finish, usage } = self;
        let ModelUsage { input_tokens, output_tokens, estimated } = usage;
        let usage = Some(Usage { input_tokens, output_tokens, estimated });
        CompleteResponse { text, model, finish: finish.as_str().to_owned(), usage }
    }
}

impl GrantedModels {
    pub(crate) fn from_wire(response: ListResponse) -> Self {
        let ListResponse { models, max_tokens, max_calls, timeout_ms, own_budget } = response;
        Self {
            aliases: models.into_iter().map(|model| model.alias).collect(),
            max_tokens,
            max_calls,
            timeout: std::time::Duration::from_millis(timeout_ms),
            own_budget,
        }
    }
}
