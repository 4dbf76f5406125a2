//! The plugins' summary in `systemctl status`: "12 plugins: 11 ready, 1 failed (jira: handshake timeout)".

use std::time::Duration;

use talon_plugin::{Events, Plugin, Registry, State};
use talon_plugin_config::discover::RejectedPlugin;
use talon_plugin_config::status_summary::{self, PluginStatus};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;

use crate::notify::Manager;
use crate::reload::Reloader;

/// The shortest time between two updates: a plugin in a crash loop changes the line with every step.
const PAUSE: Duration = Duration::from_secs(1);
/// Updates the line until the handle is dropped.
pub(super) fn keep_updated(
    manager: &Manager,
    registry: &Registry,
    events: &Events,
    reloader: Reloader,
) -> Option<AbortOnDropHandle<()>> {
    let (manager, registry, mut news) = (manager.clone(), registry.clone(), events.subscribe_without_calls());
    manager.is_present().then(|| {
        AbortOnDropHandle::new(tokio::spawn(async move {
            let mut told = String::new();
            loop {
                let line = line(&registry.list(), &reloader.refused());
                if line != told {
                    manager.status(&line);
                    told = line;
                }
                // Any event may change the line; missed events do not matter, because the line is computed
                // anew.
                if matches!(news.recv().await, Err(RecvError::Closed)) {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
                news = news.resubscribe();
            }
        }))
    })
}

/// The line for these plugins, and for those that were refused.
pub(super) fn line(plugins: &[Plugin], refused: &[RejectedPlugin]) -> String {
    let known: Vec<_> = plugins.iter().map(Plugin::snapshot).collect();
    let known = known.iter().map(|snapshot| PluginStatus {
        name: snapshot.name.as_str(),
        state: snapshot.state.as_str(),
        reason: snapshot.reason.as_ref().map_or("", |reason| reason.as_str()),
    });
    let refused = refused.iter().map(|refused| PluginStatus {
        name: &refused.name,
        state: State::Refused.as_str(),
        reason: &refused.reason,
    });
    status_summary::summarize(known.chain(refused)).into_string()
}
