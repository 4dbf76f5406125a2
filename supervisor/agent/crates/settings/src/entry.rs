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
    /// The protocol.
    pub kind: ProviderKind,
    /// The base URL, to which paths are appended. Default: OpenAI's `https://api.openai.com/v1`, Anthropic's
    /// `https://api.anthropic.com`, `http://127.0.0.1:11434` for `ollama`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"https://openrouter.ai/api/v1")]
    pub base_url: Option<String>,
    /// How its format differs from OpenAI's, for `openai`. Default: chosen by the host of `base_url`, and
    /// `plain` for unknown hosts.
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
            file: None,
        }
    }

    /// Whether text that it gets stays on this machine, as far as the entry says.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let loopback = |url: &str| {
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            let host = match host.strip_prefix('[') {
                Some(rest) => rest.split(']').next().unwrap_or_default(),
                None => host.split(':').next().unwrap_or_default(),
            };
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        };
        self.local.unwrap_or_else(|| match (self.kind, &self.base_url) {
            (ProviderKind::Scripted, _) | (ProviderKind::Ollama, None) => true,
            (_, Some(url)) => loopback(url),
            (ProviderKind::Openai | ProviderKind::Anthropic, None) => false,
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

/// The protocol of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI's chat completions, which most providers and local servers support.
    Openai,
    /// Anthropic's Messages.
    Anthropic,
    /// Ollama's own `/api/chat`.
    Ollama,
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
    /// vLLM: `reasoning_effort`, and the chat template's switch for models without levels.
    Vllm,
    /// What all other servers understand.
    #[default]
    Plain,
}
