//! Which actions a call may use: those granted to the peer, further restricted by whom the call is made for.
//!
//! Every client may restrict its own call (`within`). The agent makes calls for others, and the operator
//! decides what those may call (`agent.allow`), not the agent. The agent states the user in the call's
//! context. It is trusted because it uses the connection that the supervisor gave it. The context of other
//! clients is ignored here.

use std::sync::Arc;

use talon_agent_settings::{
    AllowKeys, CHANNEL_KEY, MEMBER_KEY, SENDER_KEY, SUBAGENT_KEY, ToolPattern, covers, covers_some,
    is_pattern,
};
use talon_guard::{ArcById, Grant, SESSION_KEY};
use talon_listen::delegation::Delegation;
use talon_plugin_config::name::RESERVED_NAME;
use talon_proto::host::ExecuteRequest;
use tonic::Status;

use crate::config::{AllowedActions, Config};
use crate::peer::Peer;

/// Maximum number of patterns of one request. 256 is more than any real list; a request with more is refused.
const MAX_WITHIN: usize = 256;
/// How much of an invalid pattern an error message repeats.
const MAX_SHOWN_CHARS: usize = 80;

/// The actions that a call may use; `None` means all.
///
/// `config` returns the configuration that applies to new calls.
///
/// # Errors
/// `InvalidArgument` if `within` holds an invalid pattern, or if the agent does not state for whom it calls.
pub(super) fn grant_for(
    peer: &Peer,
    request: &ExecuteRequest,
    config: impl FnOnce() -> Arc<Config>,
) -> Result<Option<ArcById<dyn Grant>>, Status> {
    let mut layers: Vec<GrantLayer> = peer.allowed.clone().map(GrantLayer::Peer).into_iter().collect();
    if !request.within.is_empty() {
        layers.push(GrantLayer::Within(well_formed(&request.within)?));
    }
    if peer.is_agent() {
        layers.extend(operator_limits(request, &config())?);
    } else if let Some(delegation) = &peer.delegation {
        layers.extend(delegated_limits(delegation, &config()));
    }
    Ok((!layers.is_empty()).then(|| ArcById::<dyn Grant>::new(Arc::new(CombinedGrant(layers)))))
}

fn well_formed(within: &[String]) -> Result<Vec<ToolPattern>, Status> {
    if within.len() > MAX_WITHIN {
        let message =
            format!("within has {} patterns, and {MAX_WITHIN} are the most: shorten it", within.len());
        return Err(Status::invalid_argument(message));
    }
    if let Some(bad) = within.iter().find(|pattern| !is_pattern(pattern)) {
        let shown: String = bad.chars().take(MAX_SHOWN_CHARS).collect();
        let message = format!("within holds {shown:?}, which is no pattern: write plugin.action or plugin.*");
        return Err(Status::invalid_argument(message));
    }
    Ok(within.to_vec())
}

/// The operator's restrictions that apply to a call of the agent.
fn operator_limits(request: &ExecuteRequest, config: &Arc<Config>) -> Result<Vec<GrantLayer>, Status> {
    let said = |key: &str| request.context.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let missing = |key: &str| {
        Status::invalid_argument(format!(
            "the agent must state on whose behalf it calls: the context lacks {key}"
        ))
    };
    if said(SESSION_KEY).is_none() {
        return Err(missing(SESSION_KEY));
    }
    let mut layers = Vec::new();
    for list in [AllowScope::Senders, AllowScope::Channels, AllowScope::SubAgents] {
        let named = list.of(&config.agent.allow);
        match said(list.key()) {
            Some(name) if named.contains_key(name) => {
                layers.push(GrantLayer::Listed { config: Arc::clone(config), list, name: name.to_owned() });
            }
            // Where senders have lists, a call without a sender must not get more than a call with one. A
            // call without a sub-agent is made by the session itself.
            None if !named.is_empty() && list != AllowScope::SubAgents => return Err(missing(list.key())),
            _ => {}
        }
    }
    // In a group the call is the group's, and has to be allowed to who speaks as well.
    if let Some(member) = said(MEMBER_KEY).filter(|member| config.agent.allow.senders.contains_key(*member)) {
        let (config, list, name) = (Arc::clone(config), AllowScope::Senders, member.to_owned());
        layers.push(GrantLayer::Listed { config, list, name });
    }
    Ok(layers)
}

/// The operator's restrictions that apply to whom the gateway calls for: nobody may call more directly than through the agent.
fn delegated_limits(delegation: &Delegation, config: &Arc<Config>) -> Vec<GrantLayer> {
    let named = [(AllowScope::Senders, &delegation.subject), (AllowScope::Channels, &delegation.channel)];
    let listed = named.into_iter().filter(|(list, name)| list.of(&config.agent.allow).contains_key(&***name));
    listed
        .map(|(list, name)| GrantLayer::Listed { config: Arc::clone(config), list, name: name.to_string() })
        .collect()
}

/// A grant that covers what all of its layers cover.
struct CombinedGrant(Vec<GrantLayer>);

/// One restriction of a call.
enum GrantLayer {
    /// The operator's restriction of the peer.
    Peer(Arc<AllowedActions>),
    /// The peer's restriction of this call.
    Within(Vec<ToolPattern>),
    /// The operator's restriction of the sender, channel or sub-agent that the agent calls for.
    Listed { config: Arc<Config>, list: AllowScope, name: String },
}

/// One of the lists in `agent.allow`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowScope {
    Senders,
    Channels,
    SubAgents,
}

impl AllowScope {
    fn key(self) -> &'static str {
        match self {
            Self::Senders => SENDER_KEY,
            Self::Channels => CHANNEL_KEY,
            Self::SubAgents => SUBAGENT_KEY,
        }
    }

    fn of(self, keys: &AllowKeys) -> &std::collections::BTreeMap<String, Vec<ToolPattern>> {
        match self {
            Self::Senders => &keys.senders,
            Self::Channels => &keys.channels,
            Self::SubAgents => &keys.subagents,
        }
    }

    fn what_to_do(self) -> &'static str {
        match self {
            Self::Senders => "ask the operator to add it to agent.allow.senders for this sender",
            Self::Channels => "ask the operator to add it to agent.allow.channels for this channel",
            Self::SubAgents => "ask the operator to add it to agent.allow.subagents for this sub-agent",
        }
    }
}

impl GrantLayer {
    fn covers(&self, plugin: &str, action: &str) -> bool {
        match self {
            Self::Peer(allowed) => allowed.covers(plugin, action),
            Self::Within(patterns) => patterns.iter().any(|pattern| covers(pattern, plugin, action)),
            // The supervisor's own actions only return what an earlier call received, so they are always
            // allowed, as for a peer.
            Self::Listed { .. } => {
                plugin == RESERVED_NAME
                    || self.patterns().iter().any(|pattern| covers(pattern, plugin, action))
            }
        }
    }

    fn covers_some(&self, plugin: &str) -> bool {
        match self {
            Self::Peer(allowed) => allowed.covers_any_action(plugin),
            Self::Within(patterns) => patterns.iter().any(|pattern| covers_some(pattern, plugin)),
            Self::Listed { .. } => {
                plugin == RESERVED_NAME || self.patterns().iter().any(|pattern| covers_some(pattern, plugin))
            }
        }
    }

    fn patterns(&self) -> &[ToolPattern] {
        match self {
            Self::Peer(_) => &[],
            Self::Within(patterns) => patterns,
            Self::Listed { config, list, name } => {
                list.of(&config.agent.allow).get(name).map_or(&[], Vec::as_slice)
            }
        }
    }
}

impl Grant for CombinedGrant {
    fn covers(&self, plugin: &str, action: &str) -> bool {
        self.0.iter().all(|layer| layer.covers(plugin, action))
    }

    fn covers_any_action(&self, plugin: &str) -> bool {
        self.0.iter().all(|layer| layer.covers_some(plugin))
    }

    fn remedy(&self, plugin: &str, action: &str) -> &'static str {
        match self.0.iter().find(|layer| !layer.covers(plugin, action)) {
            Some(GrantLayer::Peer(allowed)) => allowed.remedy(plugin, action),
            Some(GrantLayer::Within(_)) => {
                "the call itself was narrowed to other actions (within); use one of those"
            }
            Some(GrantLayer::Listed { list, .. }) => list.what_to_do(),
            None => "",
        }
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
