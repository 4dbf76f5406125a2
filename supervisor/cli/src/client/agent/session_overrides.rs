//! The options of `talon ask` and `talon chat` that override the configuration.

use clap::Args;
use talon_proto::agent::Sampling;

/// What a turn or a session overrides of the configuration.
#[derive(Debug, Clone, Default, Args)]
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
}

/// How a model chooses its words, each as a text: "temperature 0.2".
pub(super) fn sampling_text(sampling: Option<&Sampling>) -> Vec<String> {
    let Sampling { temperature, top_p, max_tokens } = sampling.copied().unwrap_or_default();
    let temperature = temperature.map(|number| format!("temperature {number}"));
    let top_p = top_p.map(|number| format!("top_p {number}"));
    let max_tokens = max_tokens.map(|tokens| format!("at most {tokens} tokens"));
    [temperature, top_p, max_tokens].into_iter().flatten().collect()
}
