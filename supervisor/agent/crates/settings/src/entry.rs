//! One provider.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{KeySource, Secret};
use crate::timeouts::Timeouts;

/// One provider: where it is, what it speaks, and who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is; paths are added to it. Default: OpenAI's `https://api.openai.com/v1`, Anthropic's
    /// `https://api.anthropic.com`, `http://127.0.0.1:11434` for `ollama`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"https://openrouter.ai/api/v1")]
    pub base_url: Option<String>,
    /// How it departs from OpenAI's format, for `openai`. Default: by the host of `base_url`, and `plain` for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The variable of the supervisor's environment with its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"OPENAI_API_KEY")]
    pub api_key_env: Option<String>,
    /// The file with its key, or with one on each line. Others must not be able to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "path"))]
    pub api_key_file: Option<PathBuf>,
    /// More keys, used in turn: each is `env: NAME` or `file: PATH`. Without any key it is asked without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_keys: Vec<KeySource>,
    /// Headers that every request carries. Their values are not shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// How long each step may take.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The proxy to it: a URL, or `direct` for none. Default: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` of the
    /// environment, which do not hold for loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"http://proxy.example.org:3128")]
    pub proxy: Option<Secret>,
    /// A PEM file with certificates of authorities that are believed beside the machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// The context that a model is loaded with, in tokens, for `ollama`. Default: Ollama's own, often 4,096, and what does not
    /// fit is cut off there without a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 512))]
    pub num_ctx: Option<u32>,
    /// The file with the answers, for `scripted`. Default: one that is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "path"))]
    pub file: Option<PathBuf>,
}

impl ProviderEntry {
    /// An entry with nothing but defaults.
    #[must_use]
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            dialect: None,
            api_key_env: None,
            api_key_file: None,
            api_keys: Vec::new(),
            headers: BTreeMap::new(),
            timeouts: Timeouts::default(),
            proxy: None,
            ca_file: None,
            num_ctx: None,
            file: None,
        }
    }

    /// Everywhere that it has keys.
    #[must_use]
    pub fn sources(&self) -> Vec<KeySource> {
        let env = self.api_key_env.iter().cloned().map(KeySource::Env);
        let file = self.api_key_file.iter().cloned().map(KeySource::File);
        env.chain(file).chain(self.api_keys.iter().cloned()).collect()
    }
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI's chat completions, which most providers and local servers speak.
    Openai,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own `/api/chat`.
    Ollama,
    /// Prepared answers from a file. No model is asked, and its name says so: `scripted` or `scripted-…`.
    Scripted,
}

/// How a server departs from OpenAI's format where it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// OpenAI itself: `max_completion_tokens`, since its thinking models refuse `max_tokens`.
    Openai,
    /// DeepSeek: `thinking` as a switch, thoughts that have to go back, JSON answers without a schema.
    Deepseek,
    /// OpenRouter: `reasoning`, and thoughts that have to go back.
    Openrouter,
    /// vLLM: `reasoning_effort`, and the switch of the chat template for models that have no levels.
    Vllm,
    /// What all others understand.
    #[default]
    Plain,
}
