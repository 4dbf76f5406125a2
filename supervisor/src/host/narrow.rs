//! What a call may be: what its peer may call, narrowed by whom the call is for.
//!
//! Everybody may narrow their own call (`within`). The agent calls for others, and what those may is the operator's word
//! (`agent.allow`), not the agent's: who they are, it says in the call's context, and it is believed because the connection is the
//! one that the supervisor gave it. Nobody else's context is looked at here.

use std::sync::Arc;

use talon_agent_settings::{
    AllowKeys, CHANNEL_KEY, SENDER_KEY, SUBAGENT_KEY, ToolPattern, covers, covers_some, is_pattern,
};
use talon_guard::{Grant, Handed, SESSION_KEY};
use talon_plugin::name::RESERVED_NAME;
use talon_proto::host::ExecuteRequest;
use tonic::Status;

use super::peer::Peer;
use crate::config::{Allowed, Config};

/// The most patterns of one request. 256: more than anybody lists. A request with more is refused.
const MAX_WITHIN: usize = 256;
/// How much of what is no pattern is repeated.
const MAX_SHOWN_CHARS: usize = 80;

/// What a call may be; `None`: everything.
///
/// `config` is the configuration that new calls are held to.
///
/// # Errors
/// `InvalidArgument` if `within` holds what is no pattern, or if the agent does not say for whom it calls.
pub(super) fn granted(
    peer: &Peer,
    request: &ExecuteRequest,
    config: impl FnOnce() -> Arc<Config>,
) -> Result<Option<Handed<dyn Grant>>, Status> {
    let mut layers: Vec<Layer> = peer.allowed.clone().map(Layer::Peer).into_iter().collect();
    if !request.within.is_empty() {
        layers.push(Layer::Within(well_formed(&request.within)?));
    }
    if peer.agent {
        layers.extend(listed(request, &config())?);
    }
    Ok((!layers.is_empty()).then(|| Handed::<dyn Grant>::new(Arc::new(Narrowed(layers)))))
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

/// What the operator's lists leave of a call of the agent.
fn listed(request: &ExecuteRequest, config: &Arc<Config>) -> Result<Vec<Layer>, Status> {
    let said = |key: &str| request.context.get(key).map(String::as_str).filter(|value| !value.is_empty());
    let missing = |key: &str| {
        Status::invalid_argument(format!("the agent has to say for whom it calls: the context lacks {key}"))
    };
    if said(SESSION_KEY).is_none() {
        return Err(missing(SESSION_KEY));
    }
    let mut layers = Vec::new();
    for list in [List::Senders, List::Channels, List::SubAgents] {
        let named = list.of(&config.agent.allow);
        match said(list.key()) {
            Some(name) if named.contains_key(name) => {
                layers.push(Layer::Listed { config: Arc::clone(config), list, name: name.to_owned() });
            }
            // Where senders are told apart, a call of nobody must not be one of everybody. What no sub-agent calls is the session's.
            None if !named.is_empty() && list != List::SubAgents => return Err(missing(list.key())),
            _ => {}
        }
    }
    Ok(layers)
}

/// What all of the layers cover.
struct Narrowed(Vec<Layer>);

/// One word about what a call may be.
enum Layer {
    /// The operator's, about the peer.
    Peer(Arc<Allowed>),
    /// The peer's own, about this call.
    Within(Vec<ToolPattern>),
    /// The operator's, about whom the agent calls for.
    Listed { config: Arc<Config>, list: List, name: String },
}

/// One of `agent.allow`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Senders,
    Channels,
    SubAgents,
}

impl List {
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

impl Layer {
    fn covers(&self, plugin: &str, action: &str) -> bool {
        match self {
            Self::Peer(allowed) => allowed.covers(plugin, action),
            Self::Within(patterns) => patterns.iter().any(|pattern| covers(pattern, plugin, action)),
            // The supervisor's own actions give what was given before, as for a peer.
            Self::Listed { .. } => {
                plugin == RESERVED_NAME
                    || self.patterns().iter().any(|pattern| covers(pattern, plugin, action))
            }
        }
    }

    fn covers_some(&self, plugin: &str) -> bool {
        match self {
            Self::Peer(allowed) => allowed.covers_some(plugin),
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

impl Grant for Narrowed {
    fn covers(&self, plugin: &str, action: &str) -> bool {
        self.0.iter().all(|layer| layer.covers(plugin, action))
    }

    fn covers_some(&self, plugin: &str) -> bool {
        self.0.iter().all(|layer| layer.covers_some(plugin))
    }

    fn what_to_do(&self, plugin: &str, action: &str) -> &'static str {
        match self.0.iter().find(|layer| !layer.covers(plugin, action)) {
            Some(Layer::Peer(allowed)) => allowed.what_to_do(plugin, action),
            Some(Layer::Within(_)) => {
                "the call itself was narrowed to other actions (within); use one of those"
            }
            Some(Layer::Listed { list, .. }) => list.what_to_do(),
            None => "",
        }
    }
}

#[cfg(test)]
#[path = "narrow_tests.rs"]
mod tests;
