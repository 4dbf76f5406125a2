//! `talon lua run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::library::Libraries;
use super::tool::Tool;
use crate::arguments::key_value;
use crate::failure::Failure;
use crate::global::Global;
use crate::output::Output;

/// Call one function of a script, and show what it changed.
///
/// Lines with - stand for what was there, and lines with + for what the function left: its message, its metadata, its
/// key-values. Nothing is stored, and no model is asked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  talon lua run filter.lua filter --message 'buy spam'
  talon lua run rate_limit.lua pre_hook --message Hello --kv count/sample=9
  talon lua run smart_preprocess.lua pre_hook --message 'Guten Tag' --llm de --llm 'Good day'")]
pub(crate) struct RunArgs {
    /// The script.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The function.
    #[arg(value_enum, value_name = "FUNCTION")]
    function: FunctionName,
    /// The message, the answer, or an event's summary.
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    message: String,
    /// What earlier hooks noted; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    metadata: Vec<(String, String)>,
    /// What a model answers; given several times, the first for the first question.
    #[arg(long, value_name = "ANSWER", allow_hyphen_values = true)]
    llm: Vec<String>,
    /// What is stored already; may be given several times. A value that is a number, true or false is one.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    kv: Vec<(String, String)>,
    /// The side of the model, for `hook`.
    #[arg(long, value_enum, default_value_t = PhaseName::Pre)]
    phase: PhaseName,
    #[command(flatten)]
    libraries: Libraries,
}

/// The functions of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum FunctionName {
    /// Looks at every message first.
    Filter,
    /// Looks at a message before a model has it.
    PreHook,
    /// Looks at an answer before a person gets it.
    PostHook,
    /// Both; --phase says which.
    Hook,
    /// Delivers an event.
    OnEvent,
    /// Runs at planned times.
    Task,
}

impl FunctionName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::PreHook => "pre_hook",
            Self::PostHook => "post_hook",
            Self::Hook => "hook",
            Self::OnEvent => "on_event",
            Self::Task => "task",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PhaseName {
    /// Before the model.
    Pre,
    /// After it.
    Post,
}

impl RunArgs {
    pub(super) fn run(self, global: &Global, out: &mut Output) -> Result<u8, Failure> {
        let mut tool = Tool::new("run")?;
        self.libraries.add_to(&mut tool);
        if out.is_json() {
            tool.option("format", "json");
        }
        tool.option("message", &self.message);
        for (key, value) in &self.metadata {
            tool.option("metadata", &format!("{key}={value}"));
        }
        for (key, value) in &self.kv {
            tool.option("kv", &format!("{key}={value}"));
        }
        for answer in &self.llm {
            tool.option("llm", answer);
        }
        tool.option("phase", if self.phase == PhaseName::Post { "post" } else { "pre" });
        tool.scripts(&[self.file], global)?;
        tool.word(self.function.as_str());
        tool.run(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_command_line() {
        for name in FunctionName::value_variants() {
            assert_eq!(name.to_possible_value().unwrap().get_name(), name.as_str());
        }
    }
}
