//! One provider.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{KeySource, Secret};
use crate::timeouts::Timeouts;

/// One provider: its address, its protocol and its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderEntry {
    /// What it speaks: a protocol, or a provider or server that is known by name.
    pub kind: ProviderKind,
    /// The base URL, to which paths are appended. Default: the kind's own, as
    /// [providers.md](providers.md#kinds) lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"https://openrouter.ai/api/v1")]
    pub base_url: Option<String>,
    /// How its format differs from OpenAI's, for `openai`. Default: chosen by the host of `base_url`, and
    /// `plain` for unknown hosts; the other kinds have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// The variable in the supervisor's environment with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"OPENAI_API_KEY")]
    pub api_key_env: Option<String>,
    /// The file with the key, or with one key per line. It must not be readable by other users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "path"))]
    pub api_key_file: Option<PathBuf>,
    /// Further keys, used in turn: each is `env: NAME` or `file: PATH`. Without any key, requests carry none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_keys: Vec<KeySource>,
    /// Its place in the chain of models, before their cost: models of the lowest are asked first. Default: 100,
    /// which leaves room on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub priority: Option<u32>,
    /// Whether it is on this machine, or where text may go all the same, for `local_only`. Default: whether
    /// `base_url` is a loopback address, or `kind` is `scripted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<bool>,
    /// Headers of every request. Their values are never shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// How long each step may take.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The proxy: a URL, or `direct` for none. Default: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY` of the environment, which do not apply to loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"http://proxy.example.org:3128")]
    pub proxy: Option<Secret>,
    /// A PEM file with certificates of authorities that are trusted in addition to the machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// The context with which a model is loaded, in tokens, for `ollama`. Default: Ollama's own, often 4,096.
    /// Ollama silently cuts off what does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 512))]
    pub num_ctx: Option<u32>,
    /// Whether tools that are not offered at once are found by the provider's own search, for `anthropic`. Default: with
    /// Anthropic's own address; other servers of its format may not have it. Without it the agent searches them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_search: Option<bool>,
    /// The file with the answers, for `scripted`. Default: a built-in one.
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
            priority: None,
            local: None,
            headers: BTreeMap::new(),
            timeouts: Timeouts::default(),
            proxy: None,
            ca_file: None,
            num_ctx: None,
            tool_search: None,
            file: None,
        }
    }

    /// Whether the provider's own search finds tools.
    #[must_use]
    pub fn searches_tools(&self) -> bool {
        let is_own = self.base_url.as_deref().is_none_or(|url| host(url) == "api.anthropic.com");
        self.kind == ProviderKind::Anthropic && self.tool_search.unwrap_or(is_own)
    }

    /// Whether text that it gets stays on this machine, as far as the entry says.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let loopback = |url: &str| {
            let host = host(url);
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        };
        self.local.unwrap_or_else(|| match self.kind {
            ProviderKind::Scripted => true,
            kind => loopback(self.base_url.as_deref().unwrap_or(kind.base_url())),
        })
    }

    /// The sources of all its keys.
    #[must_use]
    pub fn sources(&self) -> Vec<KeySource> {
        let env = self.api_key_env.iter().cloned().map(KeySource::Env);
        let file = self.api_key_file.iter().cloned().map(KeySource::File);
        env.chain(file).chain(self.api_keys.iter().cloned()).collect()
    }
}

/// The host of a URL.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// What a provider speaks, and, without `base_url`, where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI's chat completions, which most providers and local servers support.
    Openai,
    /// OpenAI's Responses, which its newest models need for thinking and tools together.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's own `generateContent`.
    Gemini,
    /// Ollama's own `/api/chat`.
    Ollama,
    /// OpenRouter: chat completions of many providers.
    Openrouter,
    /// DeepSeek.
    Deepseek,
    /// Mistral.
    Mistral,
    /// Groq.
    Groq,
    /// OpenCode Zen, some of whose models need no key.
    Opencode,
    /// vLLM on this machine, port 8000.
    Vllm,
    /// The server of llama.cpp on this machine, port 8080.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// LM Studio on this machine, port 1234.
    #[serde(rename = "lm-studio")]
    LmStudio,
    /// Prepared answers from a file. No model is asked, and its name says so: `scripted` or `scripted-…`.
    Scripted,
}

/// How a server's format differs from OpenAI's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// OpenAI itself: `max_completion_tokens`, since its thinking models reject `max_tokens`.
    Openai,
    /// DeepSeek: `thinking` as a switch, thoughts that have to be sent back, JSON answers without a schema.
    Deepseek,
    /// OpenRouter: `reasoning`, and thoughts that have to be sent back.
    Openrouter,
    /// Mistral: ids of calls of nine characters, thoughts as parts of a list, no fields that it does not know.
    Mistral,
    /// Groq: thoughts in a separate field, and usage under another name.
    Groq,
    /// vLLM: `reasoning_effort`, and the chat template's switch for models without levels.
    Vllm,
    /// llama.cpp: the chat template's switch for thinking.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// LM Studio.
    #[serde(rename = "lm-studio")]
    LmStudio,
    /// What all other servers understand.
    #[default]
    Plain,
}
