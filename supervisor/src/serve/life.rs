//! From the start of the plugins to the end of the supervisor.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use talon_plugin::handover::Adopted;
use talon_plugin::{Events, Plugin, Registry};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::ServeFailure;
use super::handover::{Arrival, Outcome};
use super::notify::Manager;
use super::ready;
use super::running::Running;
use super::signals::{Signals, Stop};
use crate::host::Asked;

/// How long adopting inherited processes may take. Then the old supervisor is released, and plugins whose
/// processes were not adopted are started anew. A process answers within milliseconds, or hangs.
const ADOPT_WITHIN: Duration = Duration::from_secs(10);

/// Why the supervisor ends.
pub(super) enum End {
    /// A signal, or its lifeline was cut.
    Stop(Stop),
    /// A client asked for it.
    Asked,
    /// Another supervisor has taken over.
    HandedOver,
    /// A failure; nothing of another supervisor was taken over.
    Failed(ServeFailure),
    /// The takeover from another supervisor failed; that one continues.
    NotOurs(ServeFailure),
}

/// Waits for the reason to end.
pub(super) async fn live(
    running: &mut Running,
    signals: &mut Signals,
    asks: &mut mpsc::Receiver<Asked>,
    manager: &Manager,
    mut arrival: Arrival,
    socket: &Path,
) -> End {
    let (registry, events) = (running.registry.clone(), running.events.clone());
    let mut adopted = pin!(adopted(&registry, &events).fuse());
    let mut settled = pin!(ready::settled(&registry, &events, socket, manager).fuse());
    loop {
        tokio::select! {
            stop = signals.stop() => {
                if arrival.is_succession() {
                    // The store keeps its content, and a running supervisor continues.
                    arrival.failed("it was asked to stop").await;
                    return End::HandedOver;
                }
                return End::Stop(stop);
            }
            () = &mut adopted, if arrival.is_succession() => {
                if let Err(error) = arrival.taken(&registry, manager).await {
                    return End::NotOurs(error.into());
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
                Asked::Shutdown(answer) => {
                    // The client may have gone away.
                    let _ = answer.send(());
                    return End::Asked;
                }
                Asked::HandOver { answer, .. } if arrival.is_succession() => {
                    let _ = answer.send(Err("this supervisor is still taking over itself: wait until it has".to_owned()));
                }
                Asked::HandOver { answer, .. } if manager.is_there() => {
                    let _ = answer.send(Err("this supervisor is run by a service manager, which would start another one \
                        beside yours: `systemctl restart` its unit, which hands over, too".to_owned()));
                }
                Asked::HandOver { pid, answer } => {
                    let outcome = tokio::select! {
                        outcome = running.hand_over(pid, answer, asks) => outcome,
                        stop = signals.stop() => {
                            tracing::warn!("stop requested during the handover: the handover is aborted");
                            return End::Stop(stop);
                        }
                    };
                    match outcome {
                        Outcome::Gone => return End::HandedOver,
                        Outcome::Stays => if let Err(failure) = running.thaw().await {
                            return End::Failed(failure);
                        },
                    }
                }
            },
            () = running.server_ended() => {
                tracing::error!("host.sock ended unexpectedly; stopping");
                return End::Asked;
            }
        }
    }
}

/// Resolves when all inherited processes are adopted or refused, or when the time is over.
async fn adopted(registry: &Registry, events: &Events) {
    let mut news = events.subscribe_but_calls();
    let waits = async {
        // Processes that no plugin claims are never adopted, but all plugins settle.
        let plugins = registry.list();
        let all = join_all(plugins.iter().map(Plugin::settled));
        let each = async {
            while under_way(&registry.adopted()) {
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
fn under_way(adopted: &Adopted) -> bool {
    adopted.taken_over + adopted.refused < adopted.handed
}
