//! The options of `talon ask` and `talon chat` that override the configuration.

use clap::Args;

/// What a turn or a session overrides of the configuration.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SessionOverrides {
    /// The model: PROVIDER/NAME or an alias, as listed by `talon model list`. Otherwise the agent chooses.
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// How long the model may think.
    #[arg(long, value_name = "LEVEL", value_parser = ["off", "low", "medium", "high"])]
    pub(super) thinking: Option<String>,
    /// Offer only these tools: `plugin.action` or `plugin.*`. This can only narrow what is allowed. May be
    /// repeated.
    #[arg(long, value_name = "PATTERN")]
    pub(super) tools: Vec<String>,
    /// Ask only models on this machine, for summaries and sub-agents, too.
    #[arg(long)]
    pub(super) local_only: bool,
}
