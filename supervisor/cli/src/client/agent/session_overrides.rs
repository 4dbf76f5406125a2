//! The options of `talon ask` and `talon chat` that override the configuration.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use talon_proto::agent::{CreateSessionRequest, Sampling, ToolList, UpdateSessionRequest};

/// What a turn or a session overrides of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(super) struct SessionOverrides {
    /// The model: PROVIDER/NAME or an alias, as listed by `talon model list`. Otherwise the agent chooses.
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// How long the model may think.
    #[arg(long, value_name = "LEVEL", value_parser = ["off", "low", "medium", "high"])]
    pub(super) thinking: Option<String>,
    /// How freely the model chooses its words, from 0 to 2.
    #[arg(long, value_name = "NUMBER")]
    pub(super) temperature: Option<f64>,
    /// Of how much of all likelihood the model chooses its words: above 0, at most 1.
    #[arg(long, value_name = "NUMBER")]
    pub(super) top_p: Option<f64>,
    /// The most tokens of an answer.
    #[arg(long, value_name = "TOKENS")]
    pub(super) max_tokens: Option<u32>,
    /// How detailed answers are; otherwise as the model does it.
    #[arg(long, value_name = "LEVEL", value_parser = ["low", "high"])]
    pub(super) verbosity: Option<String>,
    /// Whether channels show arguments and results of the session's calls.
    #[arg(long, value_name = "on|off", value_parser = PossibleValuesParser::new(["on", "off"]).map(|word| word == "on"))]
    pub(super) verbose: Option<bool>,
    /// Note something about the session, for programs. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = metadata_entry)]
    pub(super) metadata: Vec<(String, String)>,
    /// Offer only these tools: `plugin.action` or `plugin.*`. This can only narrow what is allowed. May be
    /// repeated.
    #[arg(long, value_name = "PATTERN")]
    pub(super) tools: Vec<String>,
    /// Ask only models on this machine, for summaries and sub-agents, too.
    #[arg(long)]
    pub(super) local_only: bool,
}

impl SessionOverrides {
    /// How the model chooses its words; `None` if nothing is said.
    pub(super) fn sampling(&self) -> Option<Sampling> {
        let Self { temperature, top_p, max_tokens, .. } = *self;
        let said = Sampling { temperature, top_p, max_tokens };
        (said != Sampling::default()).then_some(said)
    }

    pub(super) fn set_sampling(&mut self, sampling: Sampling) {
        let Sampling { temperature, top_p, max_tokens } = sampling;
        (self.temperature, self.top_p, self.max_tokens) = (temperature, top_p, max_tokens);
    }

    /// Whether anything is said at all.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// A new session with all of it.
    pub(super) fn creation(&self) -> CreateSessionRequest {
        let sampling = self.sampling();
        let Self { model, thinking, tools, local_only, verbosity, verbose, metadata, .. } = self.clone();
        CreateSessionRequest {
            channel: String::new(),
            model: model.unwrap_or_default(),
            thinking: thinking.unwrap_or_default(),
            tools,
            local_only,
            sampling,
            verbosity: verbosity.unwrap_or_default(),
            metadata: metadata.into_iter().collect(),
            verbose: verbose.unwrap_or(false),
        }
    }

    /// The change of an existing session; what is not said stays as it is. `sampling` is the session's own, which the
    /// request replaces whole.
    pub(super) fn change(&self, session_id: &str, sampling: Option<Sampling>) -> UpdateSessionRequest {
        let before = sampling.unwrap_or_default();
        let sampling = self.sampling().map(|said| Sampling {
            temperature: said.temperature.or(before.temperature),
            top_p: said.top_p.or(before.top_p),
            max_tokens: said.max_tokens.or(before.max_tokens),
        });
        let Self { model, thinking, tools, local_only, verbosity, verbose, metadata, .. } = self.clone();
        UpdateSessionRequest {
            session_id: session_id.to_owned(),
            model,
            thinking,
            tools: (!tools.is_empty()).then_some(ToolList { tools }),
            local_only: local_only.then_some(true),
            sampling,
            verbosity,
            verbose,
            metadata: metadata.into_iter().collect(),
        }
    }
}

/// Parses an entry of a session's metadata; an empty value removes it.
pub(super) fn metadata_entry(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("write KEY=VALUE, or KEY= to remove an entry".to_owned()),
    }
}

/// How a model chooses its words, each as a text: "temperature 0.2".
pub(super) fn sampling_text(sampling: Option<&Sampling>) -> Vec<String> {
    let Sampling { temperature, top_p, max_tokens } = sampling.copied().unwrap_or_default();
    let temperature = temperature.map(|number| format!("temperature {number}"));
    let top_p = top_p.map(|number| format!("top_p {number}"));
    let max_tokens = max_tokens.map(|tokens| format!("at most {tokens} tokens"));
    [temperature, top_p, max_tokens].into_iter().flatten().collect()
}
