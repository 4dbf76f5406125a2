//! Looks again whenever a plugin may have changed what it declares.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::registry::ProposalRegistry;

type Changes = BoxStream<'static, Result<(), Status>>;

/// How long changes are gathered before a look: plugins start together.
const GATHER: Duration = Duration::from_secs(1);
/// When a look follows in any case: a plugin says that its declaration changed before it is read anew, and another agent on the
/// same database decides without an event here.
const NEXT_LOOK: Duration = Duration::from_secs(30);
/// The wait between two streams of changes: the supervisor is being replaced, or refuses for a reason that lasts.
const RECONNECT_WAIT: Duration = Duration::from_secs(5);

/// Keeps the registry current until `ending`.
pub(crate) async fn watch_declarations(registry: Arc<ProposalRegistry>, ending: CancellationToken) {
    let mut reported = false;
    loop {
        let followed = async {
            // Before the look, so that no change is between them.
            let changes = registry.source().changes().await.ok();
            follow(&registry, changes, &mut reported).await;
            sleep(RECONNECT_WAIT).await;
        };
        tokio::select! {
            () = ending.cancelled() => return,
            () = followed => {}
        }
    }
}

/// Looks at once, and after each change, until the stream of changes ends. Without a stream it looks once.
async fn follow(registry: &ProposalRegistry, changes: Option<Changes>, reported: &mut bool) {
    look(registry, reported).await;
    let Some(mut changes) = changes else { return };
    let mut due = Instant::now() + NEXT_LOOK;
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(Ok(())) => due = due.min(Instant::now() + GATHER),
                Some(Err(_)) | None => return,
            },
            () = registry.woken() => due = due.min(Instant::now() + GATHER),
            () = sleep_until(due) => {
                look(registry, reported).await;
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
