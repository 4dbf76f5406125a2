//! The catalog: all offered tools by name, as last reported by the supervisor.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use talon_listen::DRAINING;
use talon_proto::host::{GetPluginRequest, GetPluginResponse, GetStatusRequest, ListPluginsRequest, Plugin};
use talon_proto::plugin::PluginCapabilities;
use tonic::{Code, Status};

use crate::context::{Provider, Providers};
use crate::host::Host;
use crate::patterns::Filter;
use crate::tools::{OfferedTool, of_plugin};

/// The most tools to offer, far more than a model can choose from. Those beyond it, in order of plugins, are
/// omitted with a log line. `--allow` makes a list shorter.
const MAX_TOOLS: usize = 4096;
/// The total size of their declarations: a single plugin may declare 4 MiB. The rest is omitted with a log
/// line.
const MAX_TOOLS_BYTES: usize = 32 << 20;
/// How many plugins are queried concurrently, so that a long list does not take one round trip for each.
const MAX_CONCURRENT_REQUESTS: usize = 8;

/// The state of a supervisor that is stopping, as `GetStatus` names it.
const DRAINING_STATE: &str = "draining";

/// The setting `changed_tools` with which changed actions are refused.
const CHANGED_REFUSED: &str = "block";

/// All tools by name, and how complete the list is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Catalog {
    pub(crate) tools: BTreeMap<String, OfferedTool>,
    /// The plugins that offer resources or prompts.
    pub(crate) providers: Providers,
    /// Whether the supervisor has reported it, and every enabled plugin has finished starting.
    pub(crate) settled: bool,
    /// Whether any supervisor has ever reported it.
    pub(crate) known: bool,
}

impl Catalog {
    /// Queries the supervisor. A plugin that is starting, and has declared nothing yet, has the tools of
    /// `previous`: a client keeps its list while a supervisor or a plugin is started again, and a call of such
    /// a tool waits for the plugin.
    ///
    /// # Errors
    /// The supervisor's; a draining one counts as absent, because its plugins are about to be stopped.
    pub(crate) async fn read(host: &Host, filter: &Filter, previous: &Self) -> Result<Self, Status> {
        let answer = host.client().list_plugins(ListPluginsRequest {}).await?;
        let plugins: Vec<Plugin> =
            answer.into_inner().plugins.into_iter().filter(|p| p.desired == "up").collect();
        let settled = !plugins.iter().any(is_starting);
        let asked = plugins.into_iter().map(|plugin| declared(host, plugin, filter, previous));
        let told: Vec<_> =
            futures_util::stream::iter(asked).buffered(MAX_CONCURRENT_REQUESTS).collect().await;
        // Asked last: what was read from a supervisor that drains only now is complete.
        check_serving(host).await?;

        let mut catalog = Self { settled, known: true, ..Self::default() };
        let mut bytes = 0;
        let mut left_out = 0;
        let told = told.into_iter().collect::<Result<Vec<_>, _>>()?;
        let told = told.into_iter().flat_map(|declared| {
            if !declared.provider.is_empty() {
                catalog.providers.insert(declared.plugin, declared.provider);
            }
            declared.tools
        });
        for offered in told.collect::<Vec<_>>() {
            bytes += offered.bytes;
            let name = offered.tool.name.to_string();
            if catalog.tools.len() >= MAX_TOOLS
                || bytes > MAX_TOOLS_BYTES
                || catalog.tools.contains_key(&name)
            {
                left_out += 1;
                continue;
            }
            catalog.tools.insert(name, offered);
        }
        if left_out > 0 {
            tracing::warn!(
                left_out,
                "more tools than are offered to one client ({MAX_TOOLS}, {MAX_TOOLS_BYTES} bytes): name those that it \
                 needs with --allow"
            );
        }
        Ok(catalog)
    }

    /// What is offered of one plugin.
    fn of(&self, plugin: String) -> Declared {
        let tools = self.tools.values().filter(|offered| offered.plugin == plugin).cloned().collect();
        let provider = self.providers.get(&plugin).cloned().unwrap_or_default();
        Declared { plugin, tools, provider }
    }
}

/// What is offered of one plugin.
struct Declared {
    plugin: String,
    tools: Vec<OfferedTool>,
    provider: Provider,
}

/// Whether a plugin is starting for the first time, or again without having failed.
fn is_starting(plugin: &Plugin) -> bool {
    matches!(plugin.state.as_str(), "discovered" | "starting" | "handshaking")
}

/// An error if the supervisor is draining.
async fn check_serving(host: &Host) -> Result<(), Status> {
    let status = host.client().get_status(GetStatusRequest {}).await?.into_inner();
    if status.state == DRAINING_STATE {
        return Err(Status::unavailable(format!("{DRAINING}: the next one is waited for")));
    }
    Ok(())
}

async fn declared(
    host: &Host,
    plugin: Plugin,
    filter: &Filter,
    previous: &Catalog,
) -> Result<Declared, Status> {
    let name = plugin.name.clone();
    // Not for a model: resources and prompts are for people and programs. What is not for models is no tool.
    let nothing = |plugin| Declared { plugin, tools: Vec::new(), provider: Provider::default() };
    match host.client().get_plugin(GetPluginRequest { name: name.clone(), for_model: false }).await {
        Ok(answer) => match usable(answer.into_inner()) {
            Some(known) if !known.actions.is_empty() => {
                let tools = of_plugin(&name, &known, filter);
                let provider = Provider::of(&name, &known, filter);
                Ok(Declared { plugin: name, tools, provider })
            }
            _ if is_starting(&plugin) => Ok(previous.of(name)),
            _ => Ok(nothing(name)),
        },
        // The plugin was removed after the list was read.
        Err(status) if status.code() == Code::NotFound => Ok(nothing(name)),
        Err(status) => Err(status),
    }
}

/// What a plugin declares, without the actions that are refused because they changed: an operator sees those, too.
fn usable(answer: GetPluginResponse) -> Option<PluginCapabilities> {
    let mut known = answer.capabilities?;
    if answer.settings.is_some_and(|settings| settings.changed_tools == CHANGED_REFUSED) {
        let changed = answer.plugin.map(|plugin| plugin.changed_actions).unwrap_or_default();
        known.actions.retain(|action| !changed.contains(&action.name));
    }
    Some(known)
}
