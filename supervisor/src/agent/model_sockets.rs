//! The plugins' sockets for completions: bound by the supervisor, served by the agent.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use talon_agent_settings::PICOS_PER_MICRO;
use talon_control::ControlError;
use talon_plugin_config::PluginName;
use talon_proto::agent::{AttachModel, DetachModel, OwnBudget, ToAgent, to_agent};

use crate::config::{Config, ModelGrant};
use crate::service::{ControlSocket, ManagedService};

/// The sockets that the agent should serve, and with which grants.
#[derive(Default)]
pub(super) struct ModelSocketSet {
    config: ArcSwapOption<Config>,
    sockets: Mutex<DesiredSockets>,
}

/// The supervisor keeps its descriptors of these sockets open: a plugin that connects while the agent restarts
/// waits in the socket's queue.
#[derive(Default)]
struct DesiredSockets {
    last_id: u64,
    desired: BTreeMap<u64, ModelSocket>,
}

#[derive(Clone)]
struct ModelSocket {
    plugin: PluginName,
    about: AttachModel,
    listener: Arc<OwnedFd>,
}

impl ModelSocketSet {
    /// Applies the grants of a configuration, also to the sockets that are attached. A plugin that has lost its grant
    /// keeps the socket until it is replaced, and is refused there.
    pub(super) fn set_config(&self, config: Arc<Config>) {
        let mut sockets = self.sockets.lock();
        self.config.store(Some(Arc::clone(&config)));
        for socket in sockets.desired.values_mut() {
            let AttachModel { id, uid, .. } = socket.about;
            socket.about = about(id, &socket.plugin, uid, config.model_grant(socket.plugin.as_str()));
        }
    }

    /// Adds the socket of a plugin's process; returns its id.
    pub(super) fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> u64 {
        let mut sockets = self.sockets.lock();
        // Under the lock, as it is stored: no socket has the grant of an earlier configuration.
        let config = self.config.load();
        let grant = config.as_ref().and_then(|config| config.model_grant(plugin.as_str()));
        sockets.last_id += 1;
        let id = sockets.last_id;
        let about = about(id, plugin, peer, grant);
        let socket = ModelSocket { plugin: plugin.clone(), about, listener: Arc::new(socket) };
        sockets.desired.insert(id, socket);
        id
    }

    pub(super) fn detach(&self, id: u64) {
        self.sockets.lock().desired.remove(&id);
    }

    /// A duplicate of an attached socket.
    pub(super) fn socket(&self, id: u64) -> io::Result<OwnedFd> {
        self.sockets.lock().desired.get(&id).ok_or(io::ErrorKind::NotFound)?.listener.try_clone()
    }

    /// Sends the agent what differs from what it has.
    pub(super) async fn reconcile<S: ManagedService<Outgoing = ToAgent>>(
        &self,
        line: &ControlSocket<S>,
        sent: &mut BTreeMap<u64, AttachModel>,
    ) -> Result<(), ControlError> {
        let wanted = self.sockets.lock().desired.clone();
        for (id, socket) in &wanted {
            if sent.get(id) != Some(&socket.about) {
                let attach = message(to_agent::Kind::AttachModel(socket.about.clone()));
                line.send(&attach, Some(socket.listener.as_fd())).await?;
                sent.insert(*id, socket.about.clone());
            }
        }
        let gone: Vec<u64> = sent.keys().copied().filter(|id| !wanted.contains_key(id)).collect();
        for id in gone {
            sent.remove(&id);
            line.send(&message(to_agent::Kind::DetachModel(DetachModel { id })), None).await?;
        }
        Ok(())
    }
}

fn message(kind: to_agent::Kind) -> ToAgent {
    ToAgent { kind: Some(kind) }
}

/// What the agent is told of a socket. Without a grant it may ask no model.
fn about(id: u64, plugin: &PluginName, uid: u32, grant: Option<&ModelGrant>) -> AttachModel {
    let bare = AttachModel { id, plugin: plugin.as_str().to_owned(), uid, ..AttachModel::default() };
    let Some(ModelGrant { allow, max_calls, max_tokens, timeout, concurrency, own_budget }) = grant else {
        return bare;
    };
    AttachModel {
        aliases: allow.clone(),
        max_calls: *max_calls,
        max_tokens: *max_tokens,
        timeout_ms: u64::try_from(timeout.get().as_millis()).unwrap_or(u64::MAX),
        concurrency: *concurrency,
        own_budget: own_budget.map(|own| OwnBudget {
            calls_per_day: own.calls_per_day,
            micro_usd_per_day: u64::try_from(own.per_day.picodollars() / PICOS_PER_MICRO).unwrap_or(u64::MAX),
        }),
        ..bare
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn config(models: &str) -> Arc<Config> {
        let mut config = Config::built_in(&Environment::of_process().default_paths());
        let grants = serde_json::from_value(models.parse().expect("JSON")).expect("an override");
        config.plugins.tools.overrides.insert("p".to_owned(), grants);
        Arc::new(config)
    }

    #[test]
    fn a_grant_that_is_taken_back_leaves_a_socket_that_may_nothing() {
        let set = ModelSocketSet::default();
        set.set_config(config(r#"{ "models": { "allow": ["auto"], "own_budget": { "per_day": "0.5" } } }"#));
        let (ours, _theirs) = talon_control::pair().unwrap();
        let id = set.attach(&PluginName::new("p").unwrap(), 7, ours);
        let about = || set.sockets.lock().desired[&id].about.clone();
        let granted = about();
        assert_eq!((granted.aliases.as_slice(), granted.max_calls), (["auto".to_owned()].as_slice(), 10));
        assert_eq!(granted.own_budget.unwrap().micro_usd_per_day, 500_000);
        set.set_config(config("{}"));
        assert_eq!(about(), AttachModel { id, plugin: "p".to_owned(), uid: 7, ..AttachModel::default() });
        assert!(set.socket(id).is_ok());
        set.detach(id);
        assert!(set.socket(id).is_err());
    }
}
