//! The beginning of a turn: its journal, its memories, and the tools on offer.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use talon_agent_settings::covers;
use talon_proto::plugin::{Action, PluginCapabilities};
use tokio::time::Instant;

use super::drive::{TurnRun, allowed_budgets};
use super::hooks::HOOKS_GRACE;
use super::host::DeclaredPlugins;
use super::{MessageOrigin, Recollection, read_more, search};
use crate::answer::Schema;
use crate::journal::{JournalEntry, Transcript, TurnOptions, UnfinishedTurn};
use crate::loop_context::Failure;
use crate::machine::Turn;
use crate::tools::{self, Offer, PatternIntersection, SEARCH_PLUGIN, TURN_PLUGIN};

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
        self.take_client_past();
        match resumes {
            Some(unfinished) => {
                let is_unseen = unfinished.is_unseen();
                self.resume(unfinished)?;
                if is_unseen {
                    // Nothing was done for it, so it goes on as a new one does.
                    (self.rebuilt, self.resumed) = (false, false);
                    self.hook_request().await?;
                }
            }
            None => {
                if self.has_request_hooks() {
                    let (text, with) = (self.spec.request.clone(), Box::new(self.options()));
                    self.write_later(JournalEntry::Received { text, with });
                }
                self.hook_request().await?;
            }
        }
        self.check_request_passed()?;
        self.add_client_exchanges();
        self.leave_tools_out();
        if !self.resumed {
            self.notify_attachments();
        }
        self.load_attachments().await;
        self.note_plan_first().await?;
        let plugins = self.plugins.take();
        let (recalled, offer) = self.unless_stopped(self.collect_context(plugins)).await?;
        self.prompt =
            self.spec.prompt.clone().memories(recalled.memories.clone()).hints(recalled.hints.clone());
        self.load_plan().await?;
        self.notify_recall(&recalled);
        self.recalled = recalled;
        self.offer = Arc::new(offer);
        Ok(())
    }

    /// Offers no tools where no model that may be asked calls any: it answers without them.
    fn leave_tools_out(&mut self) {
        if self.spec.no_tools || self.environment.chain.calls_tools(&self.spec.pins) {
            return;
        }
        self.spec.no_tools = true;
        if self.spec.caller.subagent.is_empty() {
            let pins = &self.spec.pins;
            let model = pins.request.as_deref().or(pins.session.as_deref());
            let model = model.unwrap_or("No model that may be asked");
            let text = format!(
                "{model} calls no tools, so it gets none. If it can, write tools: true at its entry in models.catalog."
            );
            self.notice("info", text);
        }
    }

    /// Runs filters and request hooks, and stores what they let through. Meanwhile the supervisor is asked for its plugins.
    async fn hook_request(&mut self) -> Result<(), Failure> {
        let (environment, began) = (self.environment, Instant::now());
        let asks_for_plugins = self.has_request_hooks() && !self.spec.no_tools;
        let mut plugins = None;
        {
            let mut asked = pin!(environment.host.tools());
            let mut hooks = pin!(self.run_request_hooks());
            loop {
                tokio::select! {
                    biased;
                    hooked = &mut hooks => break hooked?,
                    answer = &mut asked, if asks_for_plugins && plugins.is_none() => plugins = Some(answer),
                }
            }
        }
        // After hooks that took long, others may be there.
        self.plugins = plugins.and_then(Result::ok).filter(|_| began.elapsed() <= HOOKS_GRACE);
        let (text, with) = (self.spec.request.clone(), Box::new(self.options()));
        self.write(JournalEntry::Asked { text, with }).await
    }

    fn options(&self) -> TurnOptions {
        TurnOptions {
            within: self.spec.within.clone(),
            no_tools: self.spec.no_tools,
            schema: self.spec.schema.as_ref().map(|schema| schema.text().clone()),
            model: self.spec.pins.request.clone(),
            thinking: self.spec.thinking,
            is_general_thinking: self.spec.is_general_thinking,
            sampling: self.spec.sampling,
            local_only: self.spec.pins.local_only,
            can_answer: self.spec.can_answer,
            plans_first: self.spec.plans_first,
            images: self.spec.images.clone(),
            attachments: self.spec.attachments.clone(),
            micro_usd: self.spec.budgets.micro_usd,
            hooks: self.hooked.clone(),
            client_id: self.spec.origin.client_id.clone(),
            channel: self.spec.origin.channel.clone(),
            sender_name: self.spec.origin.sender_name.clone(),
            member: self.spec.origin.member.clone(),
            merged: self.spec.origin.merged.clone(),
            metadata: self.spec.origin.metadata.clone(),
        }
    }

    /// Resumes an interrupted turn. Its restrictions from before apply together with the present ones.
    fn resume(&mut self, unfinished: UnfinishedTurn) -> Result<(), Failure> {
        let UnfinishedTurn { request, options: with, entries, .. } = unfinished;
        let TurnOptions {
            within,
            no_tools,
            schema,
            model,
            thinking,
            is_general_thinking,
            sampling,
            local_only,
            can_answer,
            plans_first,
            images,
            attachments,
            micro_usd,
            hooks,
            client_id,
            channel,
            sender_name,
            member,
            merged,
            metadata,
        } = with;
        self.spec.origin = MessageOrigin { client_id, channel, sender_name, member, merged, metadata };
        self.spec.plans_first |= plans_first;
        // Nothing of before counts as no limit.
        self.spec.budgets.micro_usd = match (self.spec.budgets.micro_usd, micro_usd) {
            (Some(now), Some(before)) => Some(now.min(before)),
            (now, before) => now.or(before),
        };
        self.metadata = hooks.as_ref().map(|hooks| hooks.metadata.clone()).unwrap_or_default();
        self.hooked = hooks;
        self.spec.images = images;
        self.spec.attachments = attachments;
        self.spec.request.clone_from(&request);
        self.spec.can_answer |= can_answer;
        self.spec.no_tools |= no_tools;
        self.turn = Turn::new(request, allowed_budgets(&self.spec));
        self.spec.pins.request = model;
        self.spec.pins.local_only |= local_only;
        self.spec.thinking = thinking;
        self.spec.is_general_thinking = is_general_thinking;
        self.spec.sampling = sampling;
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
    async fn collect_context(&self, plugins: Option<DeclaredPlugins>) -> (Recollection, Offer) {
        let (recalled, plugins) = tokio::join!(self.recall(), self.plugins(plugins));
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
        let (asks, reads) = (tools::ask_action(), tools::read_attachment_action());
        let actions: Vec<_> = actions.collect();
        let may_ask = !actions.is_empty() && self.turn.context().budgets().clarifications > 0;
        let asks = may_ask.then_some((TURN_PLUGIN, &asks));
        let has_files = !self.attachments.is_empty() && !self.spec.no_tools;
        let reads = has_files.then_some((TURN_PLUGIN, &reads));
        let mut offer = Offer::new(actions.into_iter().chain(asks).chain(reads));
        if !self.spec.no_tools && offer.tools().next().is_some() {
            offer =
                own_actions().iter().fold(offer, |offer, (plugin, action)| offer.with_hidden(plugin, action));
        }
        if !self.spec.no_tools && self.spec.session_plan.is_some() {
            offer = offer.with_hidden(TURN_PLUGIN, &tools::plan_action());
        }
        offer = offer.with_client_tools(self.client_tools());
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
        self.environment.recall.recall(&self.spec.caller, &self.spec.request, &self.spec.pins).await
    }

    /// Records which model saw the request, and says if memories were searched by words alone.
    fn notify_recall(&mut self, recalled: &Recollection) {
        self.account.models.extend(recalled.model.clone());
        if let Some(why) = &recalled.by_words {
            self.notice("info", format!("Memories were searched by words alone: {why}."));
        }
    }

    /// The plugins on offer; `declared`, if the supervisor said it just now.
    async fn plugins(&self, declared: Option<DeclaredPlugins>) -> DeclaredPlugins {
        if self.spec.no_tools {
            return Vec::new();
        }
        if let Some(declared) = declared {
            return declared;
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

/// The driver's own actions, each with its plugin. They are shown when they are of use.
pub(crate) fn own_actions() -> [(&'static str, Action); 3] {
    [
        (read_more::PLUGIN, read_more::action()),
        (TURN_PLUGIN, tools::wait_action()),
        (SEARCH_PLUGIN, search::action()),
    ]
}
