//! What differs between the servers that speak chat completions: one row for each.
//!
//! | server | document |
//! |---|---|
//! | OpenAI | <https://platform.openai.com/docs/api-reference/chat/create> |
//! | DeepSeek | <https://api-docs.deepseek.com/guides/thinking_mode> |
//! | OpenRouter | <https://openrouter.ai/docs/use-cases/reasoning-tokens> |
//! | Mistral | <https://docs.mistral.ai/api/endpoint/chat>, <https://docs.mistral.ai/capabilities/reasoning> |
//! | Groq | <https://console.groq.com/docs/openai>, <https://console.groq.com/docs/reasoning> |
//! | vLLM | <https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html> |
//! | llama.cpp | <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md> |
//! | LM Studio | <https://lmstudio.ai/docs/developer/openai-compat> |
//!
//! What is read of an answer needs no row: fields that a server does not send are not there.

use crate::config::Dialect;

/// How one server differs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quirks {
    /// The field with the answer's token limit.
    pub(super) max_tokens: &'static str,
    /// Whether the usage of a stream has to be asked for. Mistral sends it anyway, and refuses the field.
    pub(super) asks_for_usage: bool,
    /// Whether several system messages become one, and messages of one role in a row, too: templates of models
    /// refuse a second one, and demand that roles alternate.
    pub(super) joins_messages: bool,
    /// Whether the text of a message that only has calls is `""`: templates work on it as on a text. Elsewhere
    /// it is `null`.
    pub(super) empty_text: bool,
    /// Mistral takes no person's message after a result, so the model answers something in between.
    pub(super) answers_results: bool,
    /// The form of calls' ids.
    pub(super) ids: CallIds,
    /// How thinking is asked for.
    pub(super) thinking: ThinkingRequest,
    /// How thoughts go back.
    pub(super) thoughts: ThoughtsBack,
    /// Whether a schema is enforced, or only JSON.
    pub(super) enforces_schema: bool,
    /// Whether fields of a call that the format does not have go back with it, as Gemini's signatures have to.
    pub(super) echoes_fields: bool,
    /// Whether its thinking models refuse a temperature, and a stop.
    pub(super) fixed_sampling: bool,
    /// The field of the seed, if there is one.
    pub(super) seed: Option<&'static str>,
    /// Whether a text that begins with `<think>` begins with thoughts.
    pub(super) think_tags: bool,
}

/// The form of calls' ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallIds {
    /// Up to 40 letters, digits, `_` and `-`.
    Usual,
    /// Exactly nine letters and digits.
    NineCharacters,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingRequest {
    /// `reasoning_effort`; off omits it, since models that cannot think reject it.
    Effort,
    /// `reasoning_effort: high`, the one level there is; off omits it.
    HighEffort,
    /// `reasoning: { effort }`.
    Reasoning,
    /// `thinking: { type }` and `reasoning_effort`: its models think by default.
    Switch,
    /// `reasoning_effort` for models with levels, and the switch of the others' templates; both ignore unknown
    /// fields.
    Template,
}

/// How thoughts go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThoughtsBack {
    /// Not at all.
    Never,
    /// As `reasoning_content`, with calls.
    ReasoningContent,
    /// As `reasoning_details`.
    ReasoningDetails,
}

/// What servers of one's own and those that are not known understand.
const PLAIN: Quirks = Quirks {
    max_tokens: "max_tokens",
    asks_for_usage: true,
    joins_messages: true,
    empty_text: true,
    answers_results: false,
    ids: CallIds::Usual,
    thinking: ThinkingRequest::Effort,
    thoughts: ThoughtsBack::Never,
    enforces_schema: true,
    echoes_fields: true,
    fixed_sampling: false,
    seed: Some("seed"),
    think_tags: true,
};

impl Quirks {
    pub(super) const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Plain | Dialect::LmStudio => PLAIN,
            Dialect::Openai => Self {
                max_tokens: "max_completion_tokens",
                joins_messages: false,
                empty_text: false,
                echoes_fields: false,
                fixed_sampling: true,
                think_tags: false,
                ..PLAIN
            },
            Dialect::Deepseek => Self {
                joins_messages: false,
                empty_text: false,
                thinking: ThinkingRequest::Switch,
                thoughts: ThoughtsBack::ReasoningContent,
                seed: None,
                enforces_schema: false,
                echoes_fields: false,
                ..PLAIN
            },
            Dialect::Openrouter => Self {
                empty_text: false,
                thinking: ThinkingRequest::Reasoning,
                thoughts: ThoughtsBack::ReasoningDetails,
                ..PLAIN
            },
            Dialect::Mistral => Self {
                asks_for_usage: false,
                answers_results: true,
                ids: CallIds::NineCharacters,
                thinking: ThinkingRequest::HighEffort,
                seed: Some("random_seed"),
                echoes_fields: false,
                ..PLAIN
            },
            Dialect::Groq => Self {
                max_tokens: "max_completion_tokens",
                joins_messages: false,
                empty_text: false,
                echoes_fields: false,
                ..PLAIN
            },
            Dialect::Vllm | Dialect::LlamaCpp => Self { thinking: ThinkingRequest::Template, ..PLAIN },
        }
    }
}

impl Quirks {
    /// The same for a model, wherever it is served: Mistral's check their transcript in their template.
    pub(super) fn for_model(self, model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        if MISTRAL_NAMES.iter().any(|family| name.contains(family)) {
            Self { answers_results: true, ids: CallIds::NineCharacters, joins_messages: true, ..self }
        } else {
            self
        }
    }
}

/// What the names of Mistral's models have in them.
const MISTRAL_NAMES: [&str; 7] =
    ["mistral", "mixtral", "ministral", "magistral", "devstral", "codestral", "pixtral"];

/// Whether OpenAI's model of this name thinks, and takes no temperature: the o series, and GPT-5 without the
/// chat models.
pub(crate) fn thinks(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_o = name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    is_o || (name.starts_with("gpt-5") && !name.contains("chat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_take_no_temperature_are_known_by_name() {
        for thinking in ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-mini", "openai/gpt-5.2"] {
            assert!(thinks(thinking), "{thinking}");
        }
        for other in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "omni", "chatgpt-4o-latest"] {
            assert!(!thinks(other), "{other}");
        }
    }
}
