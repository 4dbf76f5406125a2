//! When the start is over: every configured plugin is ready, or has failed for a reason that is said.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use talon_plugin::{EventKind, Events, NewEvent, Plugin, Registry, State};

use super::notify::Manager;

/// For how long a service manager is asked for more time, at most. What takes longer than a quarter of an hour to start is left to
/// the unit's own `TimeoutStartSec=`, which counts from then.
pub(super) const START_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Waits until every plugin has settled, and says so.
pub(super) async fn settled(registry: &Registry, events: &Events, socket: &Path, manager: &Manager) {
    let plugins = registry.list();
    let more_time = manager.extending(START_LIMIT);
    join_all(plugins.iter().map(Plugin::settled)).await;
    drop(more_time);
    let ready = plugins.iter().filter(|plugin| plugin.snapshot().state == State::Ready).count();
    manager.ready();
    tracing::info!(plugins = plugins.len(), ready, socket = %socket.display(), "ready");
    events.emit(
        NewEvent::new(EventKind::Supervisor, "ready").field("plugins", plugins.len()).field("ready", ready),
    );
}
