//! What stands behind a kind of provider: its protocol, its address and its dialect, in one table.

use crate::{Dialect, ProviderKind};

/// The format of requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama's `/api/chat`.
    Ollama,
    /// Prepared answers from a file.
    Scripted,
}

struct Preset {
    kind: ProviderKind,
    word: &'static str,
    protocol: Protocol,
    base_url: &'static str,
    /// `None`: chosen by the host of `base_url`.
    dialect: Option<Dialect>,
}

const fn preset(
    kind: ProviderKind,
    word: &'static str,
    protocol: Protocol,
    base_url: &'static str,
    dialect: Option<Dialect>,
) -> Preset {
    Preset { kind, word, protocol, base_url, dialect }
}

/// The addresses are those of the providers' documents; those of servers of one's own are their default ports.
const PRESETS: [Preset; 14] = {
    use Dialect as D;
    use ProviderKind as K;
    [
        preset(K::Openai, "openai", Protocol::Chat, "https://api.openai.com/v1", None),
        preset(K::Responses, "responses", Protocol::Responses, "https://api.openai.com/v1", None),
        preset(K::Anthropic, "anthropic", Protocol::Messages, "https://api.anthropic.com", None),
        preset(K::Gemini, "gemini", Protocol::Gemini, "https://generativelanguage.googleapis.com", None),
        preset(K::Ollama, "ollama", Protocol::Ollama, "http://127.0.0.1:11434", None),
        preset(
            K::Openrouter,
            "openrouter",
            Protocol::Chat,
            "https://openrouter.ai/api/v1",
            Some(D::Openrouter),
        ),
        preset(K::Deepseek, "deepseek", Protocol::Chat, "https://api.deepseek.com", Some(D::Deepseek)),
        preset(K::Mistral, "mistral", Protocol::Chat, "https://api.mistral.ai/v1", Some(D::Mistral)),
        preset(K::Groq, "groq", Protocol::Chat, "https://api.groq.com/openai/v1", Some(D::Groq)),
        // Its models that cost nothing answer without a key.
        preset(K::Opencode, "opencode", Protocol::Chat, "https://opencode.ai/zen/v1", Some(D::Plain)),
        preset(K::Vllm, "vllm", Protocol::Chat, "http://127.0.0.1:8000/v1", Some(D::Vllm)),
        preset(K::LlamaCpp, "llama.cpp", Protocol::Chat, "http://127.0.0.1:8080/v1", Some(D::LlamaCpp)),
        preset(K::LmStudio, "lm-studio", Protocol::Chat, "http://127.0.0.1:1234/v1", Some(D::LmStudio)),
        preset(K::Scripted, "scripted", Protocol::Scripted, "", None),
    ]
};

impl ProviderKind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        PRESETS.iter().map(|preset| preset.kind)
    }

    fn preset(self) -> &'static Preset {
        let found = PRESETS.iter().find(|preset| preset.kind == self);
        found.unwrap_or(&PRESETS[0])
    }

    /// The word of the configuration: `openai`, `llama.cpp`.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.preset().word
    }

    /// The format that it speaks.
    #[must_use]
    pub fn protocol(self) -> Protocol {
        self.preset().protocol
    }

    /// The address without `base_url`; empty for `scripted`.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        self.preset().base_url
    }

    /// The dialect of a preset; `None` if the host of the address decides, or for other protocols.
    #[must_use]
    pub fn dialect(self) -> Option<Dialect> {
        self.preset().dialect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-117
    #[test]
    fn every_kind_has_a_row_under_its_own_word() {
        for kind in ProviderKind::all() {
            assert_eq!(kind.preset().kind, kind);
            let read: ProviderKind = serde_saphyr::from_str(kind.word()).expect("a kind");
            assert_eq!(read, kind);
            assert_eq!(serde_json::to_value(kind).expect("a word"), kind.word());
        }
        let schema = serde_json::to_string(&schemars::schema_for!(ProviderKind)).expect("a schema");
        assert_eq!(schema.matches("\"const\"").count(), ProviderKind::all().count(), "{schema}");
    }
}
