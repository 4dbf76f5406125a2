//! The session with one process of a service: sends it what it should have, and receives its messages, until
//! it ends.

use std::os::fd::OwnedFd;
use std::time::Duration;

use talon_control::ControlError;
use talon_plugin::ServiceHooks;
use talon_sanitize::{Sanitized, sanitized};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handle::ServiceHandle;
use super::managed_service::{ControlSocket, ManagedService};
use super::status::ManagedServiceState;

/// Maximum number of messages from a service in [`WINDOW`]. It reports changes of its database's
/// availability, requests, and answers to reloads: a few messages a minute. One that sends more is
/// misbehaving; its session is ended, and the process with it. A limit for the whole lifetime would end a
/// service that runs for long.
const MAX_MESSAGES: u32 = 100;
/// The window in which messages are counted.
const WINDOW: Duration = Duration::from_mins(1);

impl<K: ManagedService> ServiceHooks for ServiceHandle<K> {
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32) {
        self.update_status(|status| {
            (status.pid, status.uid) = (pid, uid);
            status.state = ManagedServiceState::Starting;
        });
        let ends = self.start_session();
        tokio::spawn(run(self.clone(), control, ends));
    }

    fn on_stopping(&self) {
        self.closing_token().cancel();
    }

    fn on_ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        self.start_session();
        self.service().process_ended();
        self.update_status(|status| {
            status.pid = 0;
            status.restarts += u64::from(again_in.is_some());
            status.state = ManagedServiceState::Backoff;
            // A problem that the service reported before it ended is more specific.
            if status.refused.is_none() {
                status.problem = Some(sanitized!("it ended: {}", how));
            }
        });
        match again_in {
            Some(wait) => {
                tracing::error!(%how, again_in = ?wait, "the {} ended; it will be started again", K::NAME)
            }
            None => tracing::debug!(%how, "the {} ended", K::NAME),
        }
    }
}

/// Runs until the process ends or `ends` is cancelled. This drops our end of the control socket, which makes
/// the process end.
async fn run<K: ManagedService>(held: ServiceHandle<K>, control: OwnedFd, ends: CancellationToken) {
    let ended = async {
        let line = ControlSocket::<K>::new(control).map_err(ControlError::from)?;
        exchange(&held, &line).await
    };
    match ends.run_until_cancelled(ended).await {
        // The exit of the process reports the rest.
        None | Some(Ok(())) => {}
        Some(Err(error)) => tracing::error!(%error, "the control socket of the {} is closed", K::NAME),
    }
}

async fn exchange<K: ManagedService>(
    held: &ServiceHandle<K>,
    line: &ControlSocket<K>,
) -> Result<(), ControlError> {
    let mut given = K::Session::default();
    let mut said = MessageRate::from(Instant::now());
    loop {
        K::reconcile(held, line, &mut given).await?;
        tokio::select! {
            packet = line.receive() => match packet? {
                None => return Ok(()),
                Some(_) if !said.allow(Instant::now()) => {
                    tracing::error!("the {} says too much; it is ended", K::NAME);
                    return Ok(());
                }
                Some(packet) => K::receive(held, &mut given, packet.message, packet.descriptor),
            },
            () = held.wait_changed() => {}
        }
    }
}

/// Counts messages in a window.
struct MessageRate {
    since: Instant,
    messages: u32,
}

impl MessageRate {
    fn from(since: Instant) -> Self {
        Self { since, messages: 0 }
    }

    /// Whether one more message is allowed.
    fn allow(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = Self::from(now);
        }
        self.messages = self.messages.saturating_add(1);
        self.messages <= MAX_MESSAGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_a_little_for_long_is_heard() {
        let start = Instant::now();
        let mut said = MessageRate::from(start);
        let words = (0..MAX_MESSAGES * 20).map(|at| start + WINDOW / 50 * at);
        assert!(words.into_iter().all(|at| said.allow(at)));
    }

    #[test]
    fn who_says_too_much_at_once_is_not() {
        let start = Instant::now();
        let mut said = MessageRate::from(start);
        let heard = (0..MAX_MESSAGES + 5).filter(|_| said.allow(start)).count();
        assert_eq!(heard, MAX_MESSAGES as usize);
        assert!(said.allow(start + WINDOW));
    }
}
