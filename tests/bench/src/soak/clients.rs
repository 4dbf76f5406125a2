//! The clients of a supervisor in a soak, each at a fixed pace, so that the load is the same in every minute.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use talon_client::{Client, RECONNECT_WINDOW};
use talon_proto::host::{ExecuteRequest, GetStatusRequest, ListPluginsRequest, Outcome, WatchEventsRequest};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::fixture::{KEEPS, KILLED, REPLACED, SAYS};
use super::totals::SoakTotals;

/// A kind of client: which calls it makes, how often, and how many such clients there are.
struct LoadProfile {
    count: usize,
    every: Duration,
    plugin: &'static str,
    action: &'static str,
    arguments: fn(u64) -> Vec<(&'static str, String)>,
    /// Whether it opens a new connection for each call.
    newcomer: bool,
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn small_args(_: u64) -> Vec<(&'static str, String)> {
    vec![("bytes", "1024".to_owned())]
}

fn large_args(_: u64) -> Vec<(&'static str, String)> {
    vec![("bytes", "65536".to_owned())]
}

/// Writes a few keys again and again.
fn state_args(number: u64) -> Vec<(&'static str, String)> {
    vec![("key", format!("key-{}", number % 50)), ("value", format!("value {number}"))]
}

fn log_args(_: u64) -> Vec<(&'static str, String)> {
    vec![("lines", "10".to_owned())]
}

const PROFILES: [LoadProfile; 7] = [
    LoadProfile {
        count: 8,
        every: millis(20),
        plugin: SAYS,
        action: "say",
        arguments: small_args,
        newcomer: false,
    },
    LoadProfile {
        count: 2,
        every: millis(100),
        plugin: SAYS,
        action: "say",
        arguments: large_args,
        newcomer: false,
    },
    LoadProfile {
        count: 4,
        every: millis(20),
        plugin: REPLACED,
        action: "say",
        arguments: small_args,
        newcomer: false,
    },
    LoadProfile {
        count: 2,
        every: millis(50),
        plugin: KILLED,
        action: "say",
        arguments: small_args,
        newcomer: false,
    },
    LoadProfile {
        count: 2,
        every: millis(50),
        plugin: KEEPS,
        action: "keep",
        arguments: state_args,
        newcomer: false,
    },
    LoadProfile {
        count: 1,
        every: millis(100),
        plugin: SAYS,
        action: "log",
        arguments: log_args,
        newcomer: false,
    },
    LoadProfile {
        count: 2,
        every: millis(100),
        plugin: REPLACED,
        action: "say",
        arguments: small_args,
        newcomer: true,
    },
];

/// Listeners that read as fast as they can.
const LISTENERS: usize = 3;
/// Events that a short-lived listener reads before it reconnects.
const SHORT_VISIT_EVENTS: usize = 50;
/// How long the slow listener takes for an event, during which a dozen more arrive: slow enough that it
/// misses some and is notified within the first minutes, once it has read what its connection buffers.
const SLOW_READER_DELAY: Duration = millis(20);
/// How often the operator's client polls everything.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Starts them all. They end when the sender of `going` is dropped.
pub(super) async fn start(
    socket: &Path,
    tally: &Arc<SoakTotals>,
    going: &watch::Receiver<()>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut clients = Vec::new();
    let me = async || -> Result<SoakClient> {
        let client = Client::connect(socket.to_owned()).await?;
        Ok(SoakClient { client, socket: socket.to_owned(), tally: tally.clone(), going: going.clone() })
    };
    for kind in &PROFILES {
        for _ in 0..kind.count {
            clients.push(tokio::spawn(me().await?.call_loop(kind)));
        }
    }
    for _ in 0..LISTENERS {
        clients.push(tokio::spawn(me().await?.listen_loop(Duration::ZERO, usize::MAX)));
    }
    clients.push(tokio::spawn(me().await?.listen_loop(Duration::ZERO, SHORT_VISIT_EVENTS)));
    clients.push(tokio::spawn(me().await?.listen_loop(SLOW_READER_DELAY, usize::MAX)));
    clients.push(tokio::spawn(me().await?.poll_loop()));
    Ok(clients)
}

/// One client.
struct SoakClient {
    client: Client,
    socket: PathBuf,
    tally: Arc<SoakTotals>,
    going: watch::Receiver<()>,
}

impl SoakClient {
    /// Waits for its next turn; false when the run is over.
    async fn turn(&mut self, pace: &mut tokio::time::Interval) -> bool {
        tokio::select! {
            biased;
            _ = self.going.changed() => false,
            _ = pace.tick() => true,
        }
    }

    fn pace(every: Duration) -> tokio::time::Interval {
        let mut pace = interval(every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pace
    }

    async fn call_loop(mut self, kind: &'static LoadProfile) {
        let mut pace = Self::pace(kind.every);
        for number in 0.. {
            if !self.turn(&mut pace).await {
                return;
            }
            if kind.newcomer {
                match Client::connect(self.socket.clone()).await {
                    Ok(client) => self.client = client,
                    Err(error) => self.tally.problem(format!("a newcomer: {error}")),
                }
            }
            let arguments = (kind.arguments)(number).into_iter();
            let request = ExecuteRequest {
                plugin: kind.plugin.to_owned(),
                action: kind.action.to_owned(),
                args: arguments.map(|(name, value)| (name.to_owned(), value)).collect(),
                ..ExecuteRequest::default()
            };
            let problem = match self.client.execute(request).await {
                Ok(answer) if answer.outcome() == Outcome::Ok => {
                    self.tally.calls.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                // A call in flight dies with its plugin. That must be reported as a host fault and nothing
                // else.
                Ok(answer) if kind.plugin == KILLED && answer.outcome() == Outcome::HostFault => {
                    self.tally.died.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Ok(answer) => format!("{:?} {}: {}", answer.outcome(), answer.reason, answer.error),
                Err(error) => error.to_string(),
            };
            self.tally.problem(format!("{}.{}: {problem}", kind.plugin, kind.action));
        }
    }

    /// Listens, takes this long for each event, and reconnects after this many.
    async fn listen_loop(mut self, slowness: Duration, visit: usize) {
        // An interval must not be zero.
        let mut pace = Self::pace(slowness.max(millis(1)));
        loop {
            let asked = self.client.host().watch_events(WatchEventsRequest::default()).await;
            let mut stream = match asked {
                Ok(stream) => stream.into_inner(),
                Err(status) => {
                    self.tally.problem(format!("a listener: {status}"));
                    return;
                }
            };
            for _ in 0..visit {
                let event = tokio::select! {
                    biased;
                    _ = self.going.changed() => return,
                    event = stream.message() => event,
                };
                let Ok(Some(event)) = event else {
                    self.tally.problem(format!("a listener's stream ended: {event:?}"));
                    return;
                };
                match event.fields.get("missed").and_then(|missed| missed.parse().ok()) {
                    None => _ = self.tally.events.fetch_add(1, Ordering::Relaxed),
                    Some(missed) => {
                        self.tally.missed.fetch_add(missed, Ordering::Relaxed);
                        if slowness.is_zero() {
                            self.tally.problem(format!("a fast listener missed {missed} events"));
                        }
                    }
                }
                if !slowness.is_zero() && !self.turn(&mut pace).await {
                    return;
                }
            }
        }
    }

    /// Polls like an operator's screen.
    async fn poll_loop(mut self) {
        let mut pace = Self::pace(POLL_INTERVAL);
        while self.turn(&mut pace).await {
            let status =
                self.client.ask(|mut host| async move { host.get_status(GetStatusRequest {}).await });
            if let Err(status) = status.await {
                self.tally.problem(format!("the status within {RECONNECT_WINDOW:?}: {status}"));
            }
            let list =
                self.client.ask(|mut host| async move { host.list_plugins(ListPluginsRequest {}).await });
            if let Err(status) = list.await {
                self.tally.problem(format!("the list: {status}"));
            }
        }
    }
}
