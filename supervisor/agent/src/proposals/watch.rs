//! Looks again whenever a plugin may have changed what it declares.

use std::sync::Arc;
use std::time::Duration;

use talon_event_bus::{EventBus, EventKind, TooManySubscribersError};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::registry::ProposalRegistry;

/// The events after which a plugin may declare something else.
const CHANGES: [EventKind; 6] = [
    EventKind::PluginReady,
    EventKind::PluginFailed,
    EventKind::PluginStopped,
    EventKind::PluginChanged,
    EventKind::PluginReplaced,
    EventKind::GuardDeclarationChanged,
];
/// How long changes are gathered before a look: plugins start together.
const GATHER: Duration = Duration::from_secs(1);
/// When a look follows in any case: a plugin says that its declaration changed before it is read anew, and another agent on the
/// same database decides without an event here.
const NEXT_LOOK: Duration = Duration::from_secs(30);

/// Has the registry look after each change that the event bus tells.
///
/// # Errors
/// [`TooManySubscribersError`]: it looks every [`NEXT_LOOK`] then.
pub(crate) fn wake_on_changes(
    bus: &EventBus,
    registry: &Arc<ProposalRegistry>,
) -> Result<(), TooManySubscribersError> {
    let registry = Arc::clone(registry);
    // Also if some are missing. It stays for as long as the process runs.
    bus.on(CHANGES, move |_| registry.wake()).map(drop)
}

/// Keeps the registry current until `ending`: looks at once, after each change, and now and then.
pub(crate) async fn watch_declarations(registry: Arc<ProposalRegistry>, ending: CancellationToken) {
    let mut reported = false;
    let mut due = Instant::now();
    loop {
        tokio::select! {
            () = ending.cancelled() => return,
            () = registry.woken() => due = due.min(Instant::now() + GATHER),
            () = sleep_until(due) => {
                look(&registry, &mut reported).await;
                due = Instant::now() + NEXT_LOOK;
            }
        }
    }
}

async fn look(registry: &ProposalRegistry, reported: &mut bool) {
    match registry.look().await {
        Ok(()) => *reported = false,
        Err(error) if !*reported => {
            // Once, not each time.
            *reported = true;
            let error = talon_error_chain::error_chain(&error);
            tracing::warn!(error, "proposed jobs cannot be looked at; it is tried again");
        }
        Err(_) => {}
    }
}
