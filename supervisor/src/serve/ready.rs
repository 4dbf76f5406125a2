//! The end of the start: every configured plugin is ready, or has failed with a reported reason.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use talon_plugin::{EventKind, Events, NewEvent, Plugin, Registry, State};

use crate::notify::Manager;

/// How long a service manager is asked for more time at a start, at most. After a quarter of an hour, the
/// unit's own `TimeoutStartSec=` counts.
pub(super) const START_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Waits until every plugin has settled, and reports it.
pub(super) async fn wait_until_settled(
    registry: &Registry,
    events: &Events,
    socket: &Path,
    manager: &Manager,
) {
    let plugins = registry.list();
    let more_time = manager.keep_extending(START_LIMIT);
    join_all(plugins.iter().map(Plugin::settled)).await;
    drop(more_time);
    let ready = plugins.iter().filter(|plugin| plugin.snapshot().state == State::Ready).count();
    manager.ready();
    tracing::info!(plugins = plugins.len(), ready, socket = %socket.display(), "ready");
    events.emit(
        NewEvent::new(EventKind::Supervisor, "ready").field("plugins", plugins.len()).field("ready", ready),
    );
}
