//! From the start of the plugins to the end of the supervisor.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use talon_plugin::handover::AdoptionCounts;
use talon_plugin::{Events, Plugin, Registry};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::handover::{AcquiredState, TakeoverOutcome};
use super::idle::wait_until_idle;
use super::ready;
use super::running::RunningSupervisor;
use super::shutdown_cause::ShutdownCause;
use super::signals::Signals;
use crate::host::{ExitRequest, HandOverError};
use crate::notify::Manager;

/// How long adopting inherited processes may take. Then the old supervisor is released, and plugins whose
/// processes were not adopted are started anew. A process answers within milliseconds, or hangs.
const ADOPT_WITHIN: Duration = Duration::from_secs(10);

/// Waits for the reason to end.
pub(super) async fn wait_for_end(
    running: &mut RunningSupervisor,
    signals: &mut Signals,
    asks: &mut mpsc::Receiver<ExitRequest>,
    manager: &Manager,
    mut arrival: AcquiredState,
    socket: &Path,
) -> ShutdownCause {
    let (registry, events) = (running.registry.clone(), running.events.clone());
    let mut adopted = pin!(wait_adopted(&registry, &events).fuse());
    let mut settled = pin!(ready::wait_until_settled(&registry, &events, socket, manager).fuse());
    let dispatcher = Arc::clone(&running.dispatcher);
    let is_calling = move || dispatcher.is_calling();
    let mut idle = pin!(wait_until_idle(running.idle_exit, running.clients.clone(), is_calling));
    loop {
        tokio::select! {
            stop = signals.stop() => {
                if arrival.is_succession() {
                    // The store keeps its content, and a running supervisor continues.
                    arrival.reject("it was asked to stop").await;
                    return ShutdownCause::HandedOver;
                }
                return ShutdownCause::Stop(stop);
            }
            () = &mut adopted, if arrival.is_succession() => {
                if let Err(error) = arrival.confirm(&registry, manager).await {
                    return ShutdownCause::TakeoverFailed(error.into());
                }
                if let Some(file) = &mut running.socket.file {
                    file.claim();
                }
                running.agent.claim();
            }
            () = &mut settled => {
                let unclaimed = registry.discard_unclaimed();
                if unclaimed > 0 {
                    tracing::info!(count = unclaimed, "processes that no plugin wants any more were ended");
                }
            }
            Some(asked) = asks.recv() => match asked {
                ExitRequest::Shutdown(answer) => {
                    // The client may have gone away.
                    let _ = answer.send(());
                    return ShutdownCause::Requested;
                }
                ExitRequest::HandOver { answer, .. } if arrival.is_succession() => {
                    let _ = answer.send(Err(HandOverError::TakingOver));
                }
                ExitRequest::HandOver { answer, .. } if manager.is_present() => {
                    let _ = answer.send(Err(HandOverError::ServiceManager));
                }
                ExitRequest::HandOver { pid, answer } => {
                    let outcome = tokio::select! {
                        outcome = running.hand_over(pid, answer, asks) => outcome,
                        stop = signals.stop() => {
                            tracing::warn!("stop requested during the handover: the handover is aborted");
                            return ShutdownCause::Stop(stop);
                        }
                    };
                    match outcome {
                        TakeoverOutcome::HandedOver => return ShutdownCause::HandedOver,
                        TakeoverOutcome::Retained => if let Err(failure) = running.thaw().await {
                            return ShutdownCause::Failed(failure);
                        },
                    }
                }
            },
            () = &mut idle => return ShutdownCause::Idle,
            () = running.server_ended() => {
                tracing::error!("host.sock ended unexpectedly; stopping");
                return ShutdownCause::Requested;
            }
        }
    }
}

/// Resolves when all inherited processes are adopted or refused, or when the time is over.
async fn wait_adopted(registry: &Registry, events: &Events) {
    let mut news = events.subscribe_without_calls();
    let waits = async {
        // Processes that no plugin claims are never adopted, but all plugins settle.
        let plugins = registry.list();
        let all = join_all(plugins.iter().map(Plugin::settled));
        let each = async {
            while is_in_flight(&registry.adoption_counts()) {
                if matches!(news.recv().await, Err(RecvError::Closed)) {
                    return;
                }
            }
        };
        tokio::select! { _ = all => {}, () = each => {} }
    };
    if timeout(ADOPT_WITHIN, waits).await.is_err() {
        tracing::warn!("not everything that was handed over could be taken up in time");
    }
}

/// Whether there are inherited processes whose adoption is still open.
fn is_in_flight(adopted: &AdoptionCounts) -> bool {
    adopted.taken_over + adopted.refused < adopted.received
}
