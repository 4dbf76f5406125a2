//! The beginning of a turn: its journal, its memories, and the tools on offer.

use std::collections::BTreeSet;
use std::sync::Arc;

use talon_agent_settings::covers;
use talon_proto::plugin::PluginCapabilities;

use super::drive::TurnRun;
use super::{Recollection, read_more, search};
use crate::answer::Schema;
use crate::journal::{JournalEntry, Transcript, TurnOptions, UnfinishedTurn};
use crate::loop_context::Failure;
use crate::machine::Turn;
use crate::tools::{Offer, PatternIntersection, SEARCH_PLUGIN};

/// The most patterns without a match that a notice names; it counts the rest.
const MAX_NAMED: usize = 5;

impl TurnRun<'_> {
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        let resumes = self.spec.resumes.take();
        let number = self.spec.caller.turn;
        if let Some(journal) = self.spec.journal.clone() {
            let (mut past, summary) = journal.past().await.map_err(store_failure)?;
            // Messages of this turn are rebuilt from its entries.
            past.retain(|past| past.turn != number);
            self.transcript = Transcript::after(past);
            self.summary = summary;
        }
        match resumes {
            Some(unfinished) => self.resume(unfinished)?,
            None => {
                let request = self.request_entry();
                self.write(request).await?;
            }
        }
        let (recalled, offer) = self.unless_stopped(self.collect_context()).await?;
        self.prompt =
            self.spec.prompt.clone().memories(recalled.memories.clone()).hints(recalled.hints.clone());
        self.recalled = recalled;
        self.offer = Arc::new(offer);
        Ok(())
    }

    fn request_entry(&self) -> JournalEntry {
        let with = TurnOptions {
            within: self.spec.within.clone(),
            no_tools: self.spec.no_tools,
            schema: self.spec.schema.as_ref().map(|schema| schema.text().clone()),
            model: self.spec.pins.request.clone(),
            thinking: self.spec.thinking,
            local_only: self.spec.pins.local_only,
        };
        JournalEntry::Asked { text: self.spec.request.clone(), with: Box::new(with) }
    }

    /// Resumes an interrupted turn. Its restrictions from before apply together with the present ones.
    fn resume(&mut self, unfinished: UnfinishedTurn) -> Result<(), Failure> {
        let UnfinishedTurn { request, options: with, entries, .. } = unfinished;
        let TurnOptions { within, no_tools, schema, model, thinking, local_only } = with;
        self.spec.request.clone_from(&request);
        self.turn = Turn::new(request, self.spec.budgets.clone());
        self.spec.no_tools |= no_tools;
        self.spec.pins.request = model;
        self.spec.pins.local_only |= local_only;
        self.spec.thinking = thinking;
        if let Some(schema) = schema {
            let schema = Schema::new(schema).map_err(|error| Failure::Internal(error.to_string()))?;
            self.schema = Some(Arc::new(schema));
        }
        let mut entries = entries.into_iter();
        if let Some(request) = entries.next() {
            self.transcript.apply(self.spec.caller.turn, &request);
        }
        self.replay = entries.collect();
        self.rebuilt = true;
        self.resumed = true;
        let then = (!within.is_empty()).then_some(&within[..]);
        match crate::tools::intersect(&self.spec.within, then) {
            PatternIntersection::Patterns(both) => self.spec.within = both,
            PatternIntersection::Nothing => self.spec.no_tools = true,
        }
        Ok(())
    }

    /// Collects memories and tools. Neither can fail a turn: it can answer without plugins.
    async fn collect_context(&self) -> (Recollection, Offer) {
        let (recalled, plugins) = tokio::join!(self.recall(), self.plugins());
        let own = self.builtin_capabilities();
        let names: BTreeSet<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
        let plugins = plugins.into_iter().filter(|(name, _)| {
            let ours = names.contains(name.as_str());
            if ours {
                tracing::warn!(target: "agent", plugin = %name, "not offered: the agent has built-in tools of this name; rename the plugin");
            }
            !ours
        });
        let all: Vec<(String, PluginCapabilities)> = plugins.chain(own.iter().cloned()).collect();
        self.notify_unmatched_patterns(&all);
        let actions = all.iter().flat_map(|(plugin, capabilities)| {
            let offered = capabilities.actions.iter().filter(|action| self.may_call(plugin, &action.name));
            offered.map(move |action| (plugin.as_str(), action))
        });
        let mut offer = Offer::new(actions);
        if !self.spec.no_tools && offer.tools().next().is_some() {
            offer = offer
                .with_hidden(read_more::PLUGIN, &read_more::action())
                .with_hidden(SEARCH_PLUGIN, &search::action());
        }
        (recalled, offer)
    }

    /// Warns of patterns that match no action: a typing error, or a plugin that is not running. Without the
    /// notice the model would silently do without. What the operator grants a sub-agent may match nothing.
    fn notify_unmatched_patterns(&self, all: &[(String, PluginCapabilities)]) {
        // Without plugins nothing can match, and a notice has already said that they are missing.
        if self.spec.no_tools || all.is_empty() || !self.spec.caller.subagent.is_empty() {
            return;
        }
        let fits = |pattern: &&String| {
            let mut of = all.iter();
            of.any(|(plugin, said)| said.actions.iter().any(|action| covers(pattern, plugin, &action.name)))
        };
        let unfit: Vec<&str> = self.spec.within.iter().filter(|one| !fits(one)).map(String::as_str).collect();
        if unfit.is_empty() {
            return;
        }
        let named = unfit[..unfit.len().min(MAX_NAMED)].join(", ");
        let more = match unfit.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.notice(
            "warn",
            format!("No tool fits {named}{more}. `talon status` has the plugins that are up."),
        );
    }

    /// Whether the turn may call an action: its own restriction and the operator's lists have to allow it.
    /// The host checks a plugin call again; a built-in tool is checked only here.
    pub(super) fn may_call(&self, plugin: &str, action: &str) -> bool {
        let patterns = &self.spec.within;
        (patterns.is_empty() || patterns.iter().any(|pattern| covers(pattern, plugin, action)))
            && self.spec.allowed.cover(plugin, action)
    }

    /// A sub-agent has a task and no memories.
    async fn recall(&self) -> Recollection {
        if !self.spec.caller.subagent.is_empty() {
            return Recollection::default();
        }
        self.environment.recall.recall(&self.spec.caller, &self.spec.request).await
    }

    async fn plugins(&self) -> Vec<(String, PluginCapabilities)> {
        if self.spec.no_tools {
            return Vec::new();
        }
        match self.environment.host.tools().await {
            Ok(plugins) => plugins,
            Err(error) => {
                tracing::warn!(target: "agent", session = %self.spec.caller.session, %error, "a turn continues without plugins");
                self.notice(
                    "warn",
                    format!("No plugin can be called in this turn: {error}. See `talon status`."),
                );
                Vec::new()
            }
        }
    }

    fn builtin_capabilities(&self) -> Vec<(String, PluginCapabilities)> {
        if self.spec.no_tools {
            return Vec::new();
        }
        let offered =
            self.environment.builtin_tools.iter().filter_map(|own| own.capabilities(&self.spec.caller));
        offered.map(|capabilities| (capabilities.name.clone(), capabilities)).collect()
    }
}

pub(super) fn store_failure(error: crate::journal::JournalError) -> Failure {
    Failure::Store(error.why)
}
