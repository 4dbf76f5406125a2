//! Connections of Socket Mode, one after the other, so that there is always one.

use std::sync::Arc;
use std::time::Duration;

use talon_sdk::tracing;
use talon_sink::reconnect_wait::reconnect_wait;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::api_error::ApiError;
use crate::session::{Listener, Replacement};
use crate::socket::Socket;

/// The most connections at once. 2: one that is about to end, and its successor. Slack has room for ten.
const MAX_CONNECTIONS: usize = 2;
/// How long a connection has to live to count as one. A minute, as long as the longest wait: after shorter ones each wait is longer than the
/// one before, so that a connection that ends at once is not made again without end.
const LIVED_TIME: Duration = Duration::from_secs(60);

/// Listens for as long as it is polled itself, and the token is somebody's.
pub(crate) async fn listen(listener: Arc<Listener>, first: Socket) {
    let mut connections = JoinSet::new();
    let (mut socket, mut failures) = (first, 0_u32);
    loop {
        let began = Instant::now();
        let (replacement, replaced) = oneshot::channel();
        let serving = Arc::clone(&listener);
        connections.spawn(async move { serving.serve(socket, replacement).await });
        match replaced.await {
            Ok(Replacement::Ended(reason)) => {
                tracing::warn!("a connection with Slack has ended, and another one is made: {reason}");
                *listener.outage.lock() = Some(reason);
            }
            Ok(Replacement::Asked(reason)) if reason == "link_disabled" => {
                tracing::warn!(
                    "Socket Mode was switched off for the app: switch it on, and it is heard again"
                );
            }
            // A task that panics says nothing.
            Ok(Replacement::Asked(_)) | Err(_) => {}
        }
        if began.elapsed() >= LIVED_TIME {
            failures = 0;
        } else {
            failures = failures.saturating_add(1);
            sleep(reconnect_wait(failures)).await;
        }
        while connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        socket = match successor(&listener, &mut failures).await {
            Some(socket) => socket,
            None => return,
        };
        *listener.outage.lock() = None;
    }
}

/// The next connection, as long as that takes; `None` if the token is nobody's any more.
async fn successor(listener: &Listener, failures: &mut u32) -> Option<Socket> {
    loop {
        let error = match Socket::open(&listener.api).await {
            Ok(socket) => return Some(socket),
            Err(error) => error,
        };
        let after = match &error {
            // So the call that opens the channel next fails, and tells.
            ApiError::Token(_) => {
                tracing::error!("Slack is not listened to any more: {error}");
                return None;
            }
            ApiError::Later { after, .. } => after.unwrap_or_default(),
            ApiError::Refused(_) => Duration::ZERO,
        };
        *failures = failures.saturating_add(1);
        tracing::warn!("Slack cannot be listened to, and is asked again: {error}");
        *listener.outage.lock() = Some(error.to_string());
        sleep(reconnect_wait(*failures).max(after)).await;
    }
}
