//! `tools.search`: where not all tools fit, the model finds and loads more of them.

use std::collections::BTreeMap;

use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings, Outcome, Sanitizer};
use talon_llm::model::{DeferredTools, ToolCall};
use talon_proto::plugin::{Action, Parameter};

use super::SimilarityError;
use super::drive::TurnRun;
use super::similarity::check_pins;
use crate::tool_result::ToolResult;
use crate::tools::{SEARCH_ACTION, SEARCH_PLUGIN, ToolIndex, embedding_text, from_builtin};

/// How many tools a search loads: enough to choose from, few enough to be read.
const MOST_FOUND: usize = 5;
/// How much of a tool's description a result shows; the whole one comes with the tool.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// The most tools that searches of one turn load; then those of the oldest search are no longer. A model that needs more has not
/// found what it needs.
const MOST_LOADED: usize = 100;

/// The action.
pub(super) fn action() -> Action {
    Action {
        name: SEARCH_ACTION.to_owned(),
        description: "Finds and loads tools.".to_owned(),
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
    pub(super) async fn search_tools(&self, call: &ToolCall, args: &BTreeMap<String, String>) -> ToolResult {
        let query = args.get("query").map(String::as_str).unwrap_or_default();
        let index = ToolIndex::new(self.offer.tools());
        let (found, by_words) = match self.compare_by_meaning(query).await {
            Ok(Some(similarities)) => (index.search_fused(query, &similarities, MOST_FOUND), None),
            Ok(None) => (index.search(query, MOST_FOUND), None),
            Err(why) => (index.search(query, MOST_FOUND), Some(why)),
        };
        let answer = if found.is_empty() {
            let message = "no tool has these words: search in other ones, in English, or do without";
            Answer::from_host(Outcome::ToolError, message.to_owned())
        } else {
            let mut loaded = self.loaded.lock();
            loaded.retain(|name| found.iter().all(|tool| tool.spec.name != *name));
            loaded.splice(..0, found.iter().map(|tool| tool.spec.name.clone()));
            loaded.truncate(MOST_LOADED);
            let mut lines = vec!["These can be called now:".to_owned()];
            for tool in found {
                let shown: String = tool.spec.description.chars().take(MAX_DESCRIPTION_CHARS).collect();
                lines.push(format!("{}: {}", tool.spec.name, shown.replace('\n', " ")));
            }
            if by_words.is_some() {
                lines.push(
                    "(Found by words alone: search in other words, in English, if none fits.)".to_owned(),
                );
            }
            Answer::from_tool(lines.join("\n"))
        };
        if let Some(why) = by_words {
            self.notice("info", format!("tools.search went by words alone: {why}."));
        }
        let settings = GuardSettings { envelope: EnvelopeMode::Quoted, ..GuardSettings::default() };
        let guard = Guard::with_sanitizer(Sanitizer::clone(&self.environment.sanitizer), settings);
        from_builtin(guard.answer(&self.spec.caller.session, SEARCH_PLUGIN, &call.id, answer))
    }
}

impl TurnRun<'_> {
    /// The tools that are not offered, for providers that search them themselves; `None` without such a provider.
    pub(super) fn deferred_tools(&self, left_out: &[String]) -> Option<DeferredTools> {
        if left_out.is_empty() || !self.environment.chain.searches_tools() {
            return None;
        }
        let specs = left_out.iter().filter_map(|name| Some(self.offer.get(name)?.spec.clone())).collect();
        let search = self.offer.hidden().find(|tool| tool.plugin == SEARCH_PLUGIN)?;
        Some(DeferredTools { specs, search_tool: search.spec.name.clone() })
    }

    /// How similar the offer's tools are to a query; `None` without a model for it.
    ///
    /// # Errors
    /// Why the search is by words alone.
    async fn compare_by_meaning(&self, query: &str) -> Result<Option<Vec<f32>>, SimilarityError> {
        let Some(similarity) = &self.environment.similarity else { return Ok(None) };
        if query.trim().is_empty() {
            return Ok(None);
        }
        let model = similarity.model();
        check_pins(&model, similarity.is_local(), &self.spec.pins)?;
        let texts: Vec<String> = self.offer.tools().map(embedding_text).collect();
        self.embedding_models.lock().insert(model);
        similarity.compare(query, &texts).await.map(Some)
    }
}

/// The notice to people where not all tools are offered at once.
pub(super) fn notice(offered: usize, left_out: usize) -> String {
    format!(
        "{offered} of {} tools are offered at once; the model sees the names of all and finds the others with tools.search, or its provider's own search. \
         /tools PATTERN… offers fewer, agent.context.shares.tools has room for more.",
        offered + left_out
    )
}
