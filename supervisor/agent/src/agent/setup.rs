//! Builds the agent's parts from a configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use talon_agent_settings::{ModelKeys, ProviderKind, Settings, SettingsBundle};
use talon_guard::Sanitizer;
use talon_llm::config::{self, Providers};
use talon_llm::route::catalog::Catalog;
use talon_llm::route::cost::Ledgers;
use talon_llm::route::fallback::{Chain, ChainSettings, EventObserver, Log, ProviderState};
use talon_llm::route::router::Routing;
use talon_store::{KeyValues, Memory, MemoryVectors, Sessions};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::configuration::Configuration;
use super::probe_signal::ProbeSignal;
use super::session_metadata::said_here;
use crate::approval::ApprovalQueue;
use crate::bus::HostFeed;
use crate::context::ContextPlan;
use crate::costs::Costs;
use crate::driver::{Host, Recall, ToolSimilarity, TurnEnvironment, TurnRunner};
use crate::embeddings::{Embedder, ToolVectors};
use crate::hooks::{AcceptedJobs, EntryStates, Hooks, RoleHost};
use crate::media_store::MediaStore;
use crate::metrics::{CountingRecall, Metrics};
use crate::notify::{BudgetEvents, HostEvents};
use crate::plugin_calls::PluginCalls;
use crate::recall::{MemoryIndex, MemoryTools, StoreRecall};
use crate::subagent::{EnvironmentSource, SubAgentContext, SubAgents};
use crate::tokens::Calibration;
use crate::traces::Tracer;
use crate::workspace::WorkspaceFiles;

/// The parts that do not depend on the configuration.
pub(super) struct SharedParts {
    pub(super) host: Arc<dyn Host>,
    pub(super) role_host: Arc<dyn RoleHost>,
    pub(super) entry_states: Arc<dyn EntryStates>,
    pub(super) accepted_jobs: Arc<dyn AcceptedJobs>,
    pub(super) host_feed: Arc<dyn HostFeed>,
    pub(super) host_events: Arc<dyn HostEvents>,
    pub(super) plugin_events: Arc<dyn HostEvents>,
    pub(super) memory: Arc<dyn Memory>,
    pub(super) sessions: Arc<dyn Sessions>,
    pub(super) vectors: Arc<dyn MemoryVectors>,
    /// Notified when a memory was stored, or the configuration changed.
    pub(super) memory_changed: Arc<Notify>,
    pub(super) key_values: Arc<dyn KeyValues>,
    pub(super) approvals: Arc<ApprovalQueue>,
    pub(super) media: Arc<MediaStore>,
    pub(super) tracer: Arc<Tracer>,
    pub(super) calibration: Arc<Calibration>,
    pub(super) costs: Arc<Costs>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) budget_events: Arc<BudgetEvents>,
    pub(super) probing: Arc<ProbeSignal>,
    pub(super) runner: Arc<dyn TurnRunner>,
    pub(super) sanitizer: Arc<Sanitizer>,
    pub(super) plugin_calls: Arc<PluginCalls>,
}

/// A configuration, and the environment built from it. A turn keeps the one it started with.
pub(crate) struct Setup {
    /// The operator's settings.
    pub(crate) settings: Settings,
    /// The environment of turns.
    pub(crate) environment: TurnEnvironment,
    /// All problems, each with what to do.
    pub(crate) problems: Vec<String>,
    /// The person's files.
    pub(crate) workspace: Arc<WorkspaceFiles>,
    /// The model that makes vectors of texts, if there is one.
    pub(crate) embedder: Option<Embedder>,
    /// Memories by their meaning, if there is a model for it.
    pub(crate) index: Option<Arc<MemoryIndex>>,
}

impl Setup {
    /// Builds from a configuration; health and costs of the models are taken over from `before`.
    pub(super) fn new(configuration: &Configuration, parts: &SharedParts, before: Option<&Self>) -> Self {
        let Configuration { bundle, extensions } = configuration;
        let settings = bundle.settings.clone();
        let mut problems = Vec::new();
        parts.tracer.set_providers(&settings.models.providers);
        let made = config::providers(&settings.models.providers, bundle);
        let embedder = embedder(&settings.models, &made, &mut problems);
        let similarity = embedder.clone().map(|embedder| {
            Arc::new(ToolVectors::new(embedder, Arc::clone(&parts.key_values))) as Arc<dyn ToolSimilarity>
        });
        let index = embedder.clone().filter(|_| settings.agent.memory.enabled).map(|embedder| {
            let (vectors, changed) = (Arc::clone(&parts.vectors), Arc::clone(&parts.memory_changed));
            Arc::new(MemoryIndex::new(embedder, vectors, changed))
        });
        let chain = Arc::new(chain(bundle, made, parts, before, extensions.is_empty(), &mut problems));
        parts.budget_events.set_ledgers(chain.ledgers().clone());
        let recall: Arc<dyn Recall> = Arc::new(CountingRecall {
            inner: Arc::new(
                StoreRecall::new(Arc::clone(&parts.memory), settings.agent.memory).with_index(index.clone()),
            ),
            metrics: Arc::clone(&parts.metrics),
        });
        let mut environment = TurnEnvironment {
            chain,
            host: Arc::clone(&parts.host),
            builtin_tools: Vec::new(),
            recall,
            approver: Arc::clone(&parts.approvals) as _,
            sanitizer: Arc::clone(&parts.sanitizer),
            images: Arc::clone(&parts.media) as _,
            attachments: Arc::clone(&parts.media) as _,
            tracer: Arc::clone(&parts.tracer),
            calibration: Arc::clone(&parts.calibration),
            similarity,
            hooks: Hooks::new(Arc::new(extensions.clone()), Arc::clone(&parts.role_host)),
            plugin_calls: Arc::clone(&parts.plugin_calls),
        };
        if settings.agent.memory.enabled {
            let (memory, sanitizer) = (Arc::clone(&parts.memory), Arc::clone(&parts.sanitizer));
            let tools = MemoryTools::new(memory, sanitizer)
                .with_index(index.clone())
                .with_sessions(Arc::clone(&parts.sessions), said_here);
            environment.builtin_tools.push(Arc::new(tools));
        }
        if settings.agent.subagents.enabled {
            // Sub-agents cannot start sub-agents: their environment has no such tools.
            let theirs = environment.clone();
            let context = SubAgentContext {
                rules: settings.orchestrator.rules.clone(),
                plan: ContextPlan::from(&settings.agent.context),
                summaries: settings.models.summaries.clone(),
                parallel: settings.agent.turn.parallel,
                allow: settings.agent.allow.subagents.clone(),
                sanitizer: Arc::clone(&parts.sanitizer),
            };
            let (keys, runner) = (&settings.agent.subagents, Arc::clone(&parts.runner));
            let environment_of: EnvironmentSource = Arc::new(move || Some(theirs.clone()));
            let (subagents, wrong) = SubAgents::new(keys, runner, environment_of, context);
            problems.extend(wrong);
            environment.builtin_tools.push(Arc::new(subagents.with_sessions(Arc::clone(&parts.sessions))));
        }
        let same = before.filter(|before| before.settings.agent.workspace == settings.agent.workspace);
        let workspace = same.map_or_else(
            || Arc::new(WorkspaceFiles::new(settings.agent.workspace.clone())),
            |before| Arc::clone(&before.workspace),
        );
        Self { settings, environment, problems, workspace, embedder, index }
    }

    /// The providers in the order of their names, with protocol and state.
    pub(crate) fn providers(&self) -> impl Iterator<Item = (&str, ProviderKind, ProviderState)> {
        let now = Instant::now();
        let configured = self.settings.models.providers.0.iter();
        configured.map(move |(name, entry)| {
            (name.as_str(), entry.kind, self.environment.chain.provider_state(name, now))
        })
    }
}

/// What the operator says about the order of models.
fn routing(models: &ModelKeys) -> Routing {
    let entries = || models.providers.0.iter();
    Routing {
        default: models.default.clone(),
        priorities: entries().filter_map(|(name, entry)| Some((name.clone(), entry.priority?))).collect(),
        local: entries().filter(|(_, entry)| entry.is_local()).map(|(name, _)| name.clone()).collect(),
    }
}

/// The model that compares texts by meaning, if one is configured and its provider can be used.
fn embedder(models: &ModelKeys, made: &Providers, problems: &mut Vec<String>) -> Option<Embedder> {
    let keys = models.embeddings.as_ref()?;
    let entry = models.providers.0.get(&keys.provider);
    let Some((provider, entry)) = made.ready.get(&keys.provider).zip(entry) else {
        problems.push(format!(
            "tools and memories are found by words alone, since the provider {} of models.embeddings cannot be used: correct it and reload",
            keys.provider
        ));
        return None;
    };
    Some(Embedder::new(keys, Arc::clone(provider), entry.is_local()))
}

/// The model chain, with health and costs of the previous one.
fn chain(
    bundle: &SettingsBundle,
    made: Providers,
    parts: &SharedParts,
    before: Option<&Setup>,
    needs_model: bool,
    problems: &mut Vec<String>,
) -> Chain {
    let ModelKeys { providers, catalog, fallback, budget, .. } = &bundle.settings.models;
    let names: BTreeSet<String> = providers.0.keys().cloned().collect();
    let catalog = Arc::new(Catalog::new(catalog, &names).unwrap_or_else(|wrong| {
        // The supervisor rejects such a catalog, so it must be of another version.
        problems.push(format!("models.catalog cannot be used, so no model is asked: {wrong}"));
        Catalog::default()
    }));
    if names.is_empty() && !needs_model {
        tracing::info!(
            "no provider is configured: extensions run, and a question is answered with no_provider"
        );
    } else if names.is_empty() {
        problems.push(
            "no model can be asked, since no provider is configured: name one under models.providers, and its models under \
             models.catalog"
                .to_owned(),
        );
    } else if catalog.entries().is_empty() {
        problems.push(
            "no model can be asked, since the catalog is empty: name models under models.catalog".to_owned(),
        );
    }
    let settings = ChainSettings::from(*fallback);
    let chain = match before {
        Some(before) => {
            let before = &before.environment.chain;
            let ledgers = before.ledgers().with_budget(*budget);
            before.renewed(catalog, made.ready.into_values(), ledgers, settings)
        }
        None => {
            let watches: Vec<Arc<dyn EventObserver>> = vec![
                Arc::new(Log),
                Arc::clone(&parts.metrics) as _,
                Arc::clone(&parts.costs) as _,
                Arc::clone(&parts.budget_events) as _,
                Arc::clone(&parts.probing) as _,
            ];
            Chain::new(catalog, made.ready.into_values(), Ledgers::new(*budget), settings, Arc::new(watches))
        }
    };
    let chain = chain.with_routing(routing(&bundle.settings.models));
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for problem in made.problems {
        problems.push(problem.to_string());
        wrong.entry(problem.provider).or_default().push(problem.message);
    }
    wrong.into_iter().fold(chain, |chain, (provider, messages)| chain.without(provider, messages.join("; ")))
}
