//! `ListPlugins` and `GetPlugin`: plugins as clients see them.

use talon_agent_settings::PICOS_PER_MICRO;
use talon_plugin::{Desired, InstanceSnapshot, Plugin, ReviewedCapability, Script, State};
use talon_plugin_config::entry::SandboxMode;
use talon_plugin_config::name::RESERVED_NAME;
use talon_plugin_config::spec::{ChangedTools, Dialect};
use talon_proto::host;
use talon_proto::host::{
    GetPluginRequest, GetPluginResponse, ListPluginsRequest, ListPluginsResponse, PluginCounters,
    PluginEventCounts, Settings,
};
use talon_proto::plugin::{Action, PluginCapabilities};
use talon_proto::roles::is_tool;
use talon_sanitize::{Raw, Sanitized};
use tonic::{Request, Response, Status};

use super::context::HostContext;
use crate::config::{ModelGrant, OwnBudget, Role};
use crate::peer::{Visibility, require};
use crate::to_wire::{count, micros, status_text, unix_ms, wire};

pub(super) fn list(
    context: &HostContext,
    request: &Request<ListPluginsRequest>,
) -> Result<Response<ListPluginsResponse>, Status> {
    let permitted = require(request, Role::Call)?;
    let mut plugins = context.plugins(permitted.visibility());
    // The list of everything callable includes the supervisor's own actions.
    plugins.extend(
        context.dispatcher.core().map(|(capabilities, counters)| core_plugin(&capabilities, counters)),
    );
    Ok(Response::new(ListPluginsResponse { plugins }))
}

pub(super) fn get(
    context: &HostContext,
    request: &Request<GetPluginRequest>,
) -> Result<Response<GetPluginResponse>, Status> {
    let permitted = require(request, Role::Call)?;
    let seen = permitted.visibility();
    let GetPluginRequest { name, for_model } = request.get_ref();
    if name == RESERVED_NAME
        && let Some((capabilities, counters)) = context.dispatcher.core()
    {
        let plugin = Some(core_plugin(&capabilities, counters));
        let mut capabilities = capabilities.as_ref().clone();
        capabilities.actions.retain(|action| !*for_model || is_for_models(action));
        let capabilities = Some(capabilities);
        return Ok(Response::new(GetPluginResponse { plugin, capabilities, ..GetPluginResponse::default() }));
    }
    if !seen.can_see_plugin(name) {
        return Err(Status::permission_denied(status_text(format!(
            "plugin {name:?} is not granted to you: ask the operator to add what you need of it to `allow` of your entry under \
             host.peers"
        ))));
    }
    let plugin = context.plugin_among(name, |other| seen.can_see_plugin(other))?;
    let offered = plugin.reviewed_capability();
    let decides = seen.is_operator && !for_model;
    Ok(Response::new(GetPluginResponse {
        plugin: Some(context.view_for(&plugin, seen)),
        capabilities: offered.as_ref().map(|offered| {
            let known = context.dispatcher.capabilities(&plugin, &offered.capability);
            visible_capabilities(&plugin, &known, offered, seen, *for_model)
        }),
        declaration_digests: offered.filter(|_| decides).map(|offered| offered.digests).unwrap_or_default(),
        settings: Some(settings(context, &plugin, decides)),
        extensions: if decides { context.extensions(seen, Some(name)) } else { Vec::new() },
    }))
}

/// The part of a plugin's declaration that a peer sees: the actions it may call. A peer that decides about
/// changed actions must see those, too. Refused actions are hidden from all others, because their texts might
/// be meant to influence a model. The same holds for a model that acts for an operator, and it does not see
/// actions that it may not call.
fn visible_capabilities(
    plugin: &Plugin,
    known: &PluginCapabilities,
    offered: &ReviewedCapability,
    seen: Visibility<'_>,
    for_model: bool,
) -> PluginCapabilities {
    let decides = seen.is_operator && !for_model;
    let mut shown = known.clone();
    let name = plugin.name().as_str();
    shown.actions.retain(|action| {
        seen.can_see_action(name, &action.name)
            && (decides || !offered.withheld.contains(&action.name))
            && (!for_model || is_for_models(action))
    });
    if offered.withheld_texts && !decides {
        shown.description.clear();
        shown.system_prompt_addition.clear();
        shown.glossary.clear();
        shown.knowledge_articles.clear();
    }
    shown
}

/// Whether a model may call an action at all.
fn is_for_models(action: &Action) -> bool {
    !action.user_only && is_tool(action)
}

impl HostContext {
    /// All plugins that a peer sees.
    pub(super) fn plugins(&self, seen: Visibility<'_>) -> Vec<host::Plugin> {
        let plugins = self.registry.list().into_iter();
        plugins
            .filter(|plugin| seen.can_see_plugin(plugin.name().as_str()))
            .map(|plugin| self.view_for(&plugin, seen))
            .collect()
    }

    /// One plugin as a peer sees it that may not call all of its actions.
    fn view_for(&self, plugin: &Plugin, seen: Visibility<'_>) -> host::Plugin {
        let mut view = self.view(plugin);
        if !seen.is_operator {
            // What scripts look for, and why one does not run, is nothing for those that they look at.
            view.scripts.clear();
        }
        if !seen.sees_all() {
            let may = |action: &str| seen.can_see_action(plugin.name().as_str(), action);
            let known = plugin.capability();
            let actions = known.iter().flat_map(|known| known.actions.keys());
            view.actions = count(actions.filter(|action| may(action)).count());
            view.changed_actions.retain(|action| may(action));
        }
        view
    }

    fn event_counts(&self, plugin: &Plugin) -> PluginEventCounts {
        let counted = plugin.event_counters();
        PluginEventCounts {
            granted: self.dispatcher.config().event_limits(plugin.name().as_str()).is_some(),
            waiting: counted.is_waiting(),
            recorded: counted.recorded(),
            repeated_ids: counted.repeated(),
            refused: counted.refused(),
            problem: counted.problem().map(wire).unwrap_or_default(),
        }
    }

    /// One plugin with everything that clients can see of it.
    pub(super) fn view(&self, plugin: &Plugin) -> host::Plugin {
        let snapshot = plugin.snapshot();
        let gauge = self.dispatcher.gauge(plugin);
        let used = self.info.usages.latest();
        let instances = snapshot.instances.iter().map(|instance| host::Instance {
            usage: used.instance(snapshot.name.as_str(), instance.index),
            ..self::instance(instance)
        });
        let reason = Sanitized::join(snapshot.reason.iter().chain(&snapshot.notes), "; ");
        host::Plugin {
            name: snapshot.name.to_string(),
            declared_name: wire(snapshot.declared_name.unwrap_or_default()),
            state: snapshot.state.as_str().to_owned(),
            desired: snapshot.desired.as_str().to_owned(),
            reason: wire(reason),
            instances: instances.collect(),
            actions: count(snapshot.actions),
            deaths: snapshot.deaths,
            not_enforced: snapshot.not_enforced.into_iter().map(wire).collect(),
            calls_in_flight: count(gauge.in_flight),
            calls_waiting: count(gauge.waiting),
            breaker: gauge.breaker.to_owned(),
            quarantined: gauge.quarantined,
            changed_actions: snapshot.changed_actions,
            changed_texts: snapshot.changed_texts,
            watched: plugin.spec().watch,
            counters: Some(PluginCounters {
                log_lines: snapshot.log_lines,
                log_lines_dropped: snapshot.log_lines_dropped,
                ..gauge.counters
            }),
            events: Some(self.event_counts(plugin)),
            replacement_problem: snapshot.replacement_problem.map(wire).unwrap_or_default(),
            restarts: snapshot
                .restarts
                .iter()
                .map(|(reason, count)| ((*reason).to_owned(), *count))
                .collect(),
            scripts: snapshot.scripts.into_iter().map(script).collect(),
        }
    }
}

fn script(script: Script) -> host::Script {
    host::Script {
        state: script.state().to_owned(),
        name: script.name,
        functions: script.functions.into_iter().map(wire).collect(),
        sha256: script.sha256.unwrap_or_default(),
        problem: script.problem.map(wire).unwrap_or_default(),
        loads: script.loads,
        ended_by_interrupt: script.ended_by_interrupt,
        ended_with_process: script.ended_with_process,
    }
}

/// The supervisor's own actions, shown as a plugin without a process.
fn core_plugin(capabilities: &PluginCapabilities, counters: PluginCounters) -> host::Plugin {
    host::Plugin {
        name: RESERVED_NAME.to_owned(),
        declared_name: RESERVED_NAME.to_owned(),
        state: State::Ready.as_str().to_owned(),
        desired: Desired::Up.as_str().to_owned(),
        reason: "the supervisor's own".to_owned(),
        actions: count(capabilities.actions.len()),
        breaker: "closed".to_owned(),
        counters: Some(counters),
        ..host::Plugin::default()
    }
}

fn instance(instance: &InstanceSnapshot) -> host::Instance {
    host::Instance {
        index: instance.index,
        state: instance.state.as_str().to_owned(),
        pid: instance.pid.unwrap_or_default(),
        generation: instance.generation,
        uid: instance.uid.unwrap_or_default(),
        ready_since_unix_ms: instance.ready_since.map(unix_ms).unwrap_or_default(),
        start_to_ready_us: instance.start_to_ready.map(micros).unwrap_or_default(),
        calls_in_flight: count(instance.calls_in_flight),
        taken_over: instance.taken_over,
        ..host::Instance::default()
    }
}

/// A plugin's settings. Its command line and what it reaches on the host are visible to operators only: an
/// argument or a path may contain a secret from the configuration.
fn settings(context: &HostContext, plugin: &Plugin, operates: bool) -> Settings {
    let all = all_settings(context, plugin);
    if operates {
        return all;
    }
    Settings {
        command: String::new(),
        source: String::new(),
        sha256: String::new(),
        sandbox_grants: Vec::new(),
        ..all
    }
}

fn all_settings(context: &HostContext, plugin: &Plugin) -> Settings {
    let spec = plugin.spec();
    let snapshot = plugin.snapshot();
    let policy = context.dispatcher.policy(plugin);
    let config = context.dispatcher.config();
    let backend = config.state.storage_backend().filter(|entry| entry.target().0 == plugin.name().as_str());
    let keeps_state = backend.map(|entry| {
        format!("the state of every plugin, read and written (state.plugins: {})", entry.action)
    });
    let command: Vec<String> =
        std::iter::once(spec.program.display().to_string()).chain(spec.args.clone()).collect();
    Settings {
        command: wire(Raw::from(command.join(" ")).line()),
        sha256: snapshot.digest.or_else(|| spec.sha256.clone()).unwrap_or_default(),
        // For a bridged plugin, the bridged protocol is of more interest than the bridge's own.
        dialect: match spec.dialect {
            Dialect::Mcp | Dialect::OpenTalonV0 => spec.dialect,
            asked => snapshot.dialect.unwrap_or(asked),
        }
        .as_str()
        .to_owned(),
        timeout_ms: u64::try_from(policy.timeouts.default.as_millis()).unwrap_or(u64::MAX),
        max_response_bytes: policy.max_response_bytes as u64,
        max_restarts: spec.lifecycle.max_restarts,
        restart_on_failure: spec.lifecycle.restart_on_failure,
        source: wire(Raw::from(&spec.source).line()),
        sandbox_mode: SandboxMode::from(spec.sandbox.mode).as_str().to_owned(),
        sandbox_profile: spec.sandbox.profile.clone(),
        sandbox_network: spec.sandbox.network.as_str().to_owned(),
        sandbox_grants: spec
            .sandbox
            .grants()
            .into_iter()
            .chain(keeps_state)
            .map(|grant| wire(Raw::from(grant).line()))
            .collect(),
        changed_tools: match spec.changed_tools {
            ChangedTools::Report => "report",
            ChangedTools::Block => "block",
        }
        .to_owned(),
        models: config.model_grant(spec.name.as_str()).filter(|_| spec.models).map(model_grant),
        context: policy.grants.context.iter().map(|name| wire(Raw::from(name).line())).collect(),
    }
}

fn model_grant(grant: &ModelGrant) -> host::ModelGrant {
    let ModelGrant { allow, max_calls, max_tokens, timeout, concurrency, own_budget } = grant;
    let micro = |own: &OwnBudget| u64::try_from(own.per_day.picodollars() / PICOS_PER_MICRO);
    host::ModelGrant {
        aliases: allow.iter().map(|name| wire(Raw::from(name).line())).collect(),
        max_calls: *max_calls,
        max_tokens: *max_tokens,
        timeout_ms: u64::try_from(timeout.get().as_millis()).unwrap_or(u64::MAX),
        concurrency: *concurrency,
        own_calls_per_day: own_budget.map(|own| own.calls_per_day),
        own_micro_usd_per_day: own_budget.map(|own| micro(&own).unwrap_or(u64::MAX)),
    }
}
