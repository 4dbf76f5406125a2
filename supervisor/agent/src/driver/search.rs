//! `tools.search`: where not all tools fit, the model finds and loads more of them.

use std::collections::BTreeMap;

use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings, Outcome, Sanitizer};
use talon_llm::model::ToolCall;
use talon_proto::plugin::{Action, Parameter};

use super::drive::TurnRun;
use crate::tool_result::ToolResult;
use crate::tools::{SEARCH_ACTION, SEARCH_PLUGIN, ToolIndex, from_builtin};

/// How many tools a search loads: enough to choose from, few enough to be read.
const MOST_FOUND: usize = 5;
/// How much of a tool's description a result shows; the whole one comes with the tool.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// The most tools that searches of one turn load. A model that needs more has not found what it needs.
const MOST_LOADED: usize = 100;

/// The action.
pub(super) fn action() -> Action {
    Action {
        name: SEARCH_ACTION.to_owned(),
        description: "Finds tools by what they do and loads them.".to_owned(),
        parameters: vec![Parameter {
            name: "query".to_owned(),
            description: "What it should do, in English".to_owned(),
            r#type: "string".to_owned(),
            required: true,
            schema: String::new(),
        }],
        read_only: true,
        destructive: Some(false),
        ..Action::default()
    }
}

/// Whether a call searches the agent's own offer. A plugin of that name has a tool of its own.
pub(super) fn searches(run: &TurnRun<'_>, tool: &str) -> bool {
    run.offer.is_hidden(tool) && run.offer.get(tool).is_some_and(|tool| tool.plugin == SEARCH_PLUGIN)
}

impl TurnRun<'_> {
    /// Searches the offer, and loads what is found for the turn's next questions.
    pub(super) fn search_tools(&self, call: &ToolCall, args: &BTreeMap<String, String>) -> ToolResult {
        let query = args.get("query").map(String::as_str).unwrap_or_default();
        let found = ToolIndex::new(self.offer.tools()).search(query, MOST_FOUND);
        let answer = if found.is_empty() {
            let message = "no tool has these words: search in other ones, in English, or do without";
            Answer::from_host(Outcome::ToolError, message.to_owned())
        } else {
            let mut loaded = self.loaded.lock();
            let mut lines = vec!["These can be called now:".to_owned()];
            for tool in found {
                if loaded.len() < MOST_LOADED {
                    loaded.insert(tool.spec.name.clone());
                }
                let shown: String = tool.spec.description.chars().take(MAX_DESCRIPTION_CHARS).collect();
                lines.push(format!("{}: {}", tool.spec.name, shown.replace('\n', " ")));
            }
            Answer::from_tool(lines.join("\n"))
        };
        let settings = GuardSettings { envelope: EnvelopeMode::Quoted, ..GuardSettings::default() };
        let guard = Guard::with_sanitizer(Sanitizer::clone(&self.environment.sanitizer), settings);
        from_builtin(guard.answer(&self.spec.caller.session, SEARCH_PLUGIN, &call.id, answer))
    }
}

/// The notice to people where not all tools are offered at once.
pub(super) fn notice(offered: usize, left_out: usize) -> String {
    format!(
        "{offered} of {} tools are offered at once; the model sees the names of all and finds the others with tools.search. \
         /tools PATTERN… offers fewer, agent.context.shares.tools has room for more.",
        offered + left_out
    )
}
