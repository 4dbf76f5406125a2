//! From the start of the plugins to whatever ends the supervisor.

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

/// How long processes that were handed over may take to be taken up before the old supervisor is told to go, and what was not
/// taken up is left to be started anew. A process answers within milliseconds, or hangs.
const ADOPT_WITHIN: Duration = Duration::from_secs(10);

/// How a supervisor's life ends.
pub(super) enum End {
    /// A signal, or what its life hung on.
    Stop(Stop),
    /// A client asked for it.
    Asked,
    /// Another supervisor has everything.
    HandedOver,
    /// It cannot go on; nothing of another supervisor's was taken over.
    Failed(ServeFailure),
    /// It did not take over from another one, which goes on.
    NotOurs(ServeFailure),
}

/// Waits for the end.
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
                    // What the store keeps stays there, and a supervisor that runs goes on.
                    arrival.failed("it was told to stop").await;
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
                    // Whoever asked may have gone.
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
                            tracing::warn!("told to stop while handing over: nothing is handed over");
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
                tracing::error!("host.sock ended by itself; stopping");
                return End::Asked;
            }
        }
    }
}

/// Resolves when what was handed over is taken up or refused, or takes too long.
async fn adopted(registry: &Registry, events: &Events) {
    let mut news = events.subscribe_but_calls();
    let waits = async {
        // What no plugin asks for is never taken up; all plugins settle.
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

/// Whether there are processes of which nobody knows yet what becomes of them.
fn under_way(adopted: &Adopted) -> bool {
    adopted.taken_over + adopted.refused < adopted.handed
}
