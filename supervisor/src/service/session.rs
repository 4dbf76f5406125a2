//! The session with one process of a service: sends it what it should have, and receives its messages, until
//! it ends.

use std::os::fd::OwnedFd;
use std::time::Duration;

use talon_control::ControlError;
use talon_plugin::ServiceHooks;
use talon_sanitize::{Sanitized, sanitized};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::handle::{LAST_WAIT, ServiceHandle};
use super::managed_service::{ControlSocket, ManagedService};
use super::status::ManagedServiceState;

/// Maximum number of messages from a service in [`WINDOW`]. It reports changes of its database's
/// availability, requests, and answers to reloads: a few messages a minute. One that sends more is
/// misbehaving; its session is ended, and the process with it. A limit for the whole lifetime would end a
/// service that runs for long.
const MAX_MESSAGES: u32 = 100;
/// Maximum number of reported operations in [`WINDOW`]. 60,000, a thousand a second: the agent writes at most 900 a second, however much its
/// clients do. What happens beyond is the same.
const MAX_OPERATIONS: u32 = 60_000;
/// The window in which messages are counted.
const WINDOW: Duration = Duration::from_mins(1);

impl<K: ManagedService> ServiceHooks for ServiceHandle<K> {
    fn on_started(&self, control: OwnedFd, pid: u32, uid: u32) {
        self.update_status(|status| {
            (status.pid, status.uid) = (pid, uid);
            status.state = ManagedServiceState::Starting;
        });
        let ends = self.start_session();
        let given = K::new_session(pid, uid);
        self.receiving().spawn(run(self.clone(), control, given, ends));
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

/// Runs until the process ends or `ends` is cancelled. Then the process is told that our end of the control socket has ended, which makes
/// it end, and what its clients changed until then is still received.
async fn run<K: ManagedService>(
    held: ServiceHandle<K>,
    control: OwnedFd,
    mut given: K::Session,
    ends: CancellationToken,
) {
    let line = match ControlSocket::<K>::new(control) {
        Ok(line) => line,
        Err(error) => {
            return tracing::error!(%error, "the control socket of the {} cannot be watched", K::NAME);
        }
    };
    let ended = ends.run_until_cancelled(exchange(&held, &line, &mut given)).await;
    match ended {
        // The exit of the process reports the rest.
        None => receive_last(&held, &line, &mut given).await,
        Some(Ok(())) => {}
        Some(Err(error)) => {
            tracing::error!(%error, "the control socket of the {} is closed", K::NAME);
            if matches!(error, ControlError::Socket(_)) {
                receive_last(&held, &line, &mut given).await;
            }
        }
    }
}

/// Receives the operations of a process that has ended, or is asked to.
async fn receive_last<K: ManagedService>(
    held: &ServiceHandle<K>,
    line: &ControlSocket<K>,
    given: &mut K::Session,
) {
    // An error means that it is gone; it may have told something before.
    let _gone = line.end_sending();
    let mut operations = MessageRate::new(MAX_OPERATIONS, Instant::now());
    let received = async {
        while let Ok(Some(packet)) = line.receive().await {
            if K::is_operation(&packet.message) && operations.allow(Instant::now()) {
                K::receive(held, given, packet.message, packet.descriptor);
            }
        }
    };
    // A process that stays longer is killed, and what it tells does not count.
    let _stayed = timeout(LAST_WAIT, received).await;
}

async fn exchange<K: ManagedService>(
    held: &ServiceHandle<K>,
    line: &ControlSocket<K>,
    given: &mut K::Session,
) -> Result<(), ControlError> {
    let mut said = MessageRate::new(MAX_MESSAGES, Instant::now());
    let mut operations = MessageRate::new(MAX_OPERATIONS, Instant::now());
    loop {
        K::reconcile(held, line, given).await?;
        tokio::select! {
            packet = line.receive() => match packet? {
                None => return Ok(()),
                Some(packet) => {
                    let rate = if K::is_operation(&packet.message) { &mut operations } else { &mut said };
                    if !rate.allow(Instant::now()) {
                        tracing::error!("the {} says too much; it is ended", K::NAME);
                        return Ok(());
                    }
                    K::receive(held, given, packet.message, packet.descriptor);
                }
            },
            () = held.wait_changed() => {}
        }
    }
}

/// Counts messages in a window.
struct MessageRate {
    most: u32,
    since: Instant,
    messages: u32,
}

impl MessageRate {
    fn new(most: u32, since: Instant) -> Self {
        Self { most, since, messages: 0 }
    }

    /// Whether one more message is allowed.
    fn allow(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = Self::new(self.most, now);
        }
        self.messages = self.messages.saturating_add(1);
        self.messages <= self.most
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use parking_lot::Mutex;
    use talon_control::Control;
    use talon_plugin::Events;
    use talon_proto::agent::{FromAgent, Operation, Ready, ToAgent, from_agent};

    use super::*;

    /// Keeps the verbs of operations, with the pid of who told them.
    #[derive(Default)]
    struct Verbs(Mutex<Vec<String>>);

    impl ManagedService for Verbs {
        const NAME: &'static str = "test service";
        type Outgoing = ToAgent;
        type Incoming = FromAgent;
        type Session = u32;

        fn new_session(pid: u32, _uid: u32) -> u32 {
            pid
        }

        async fn reconcile(
            _held: &ServiceHandle<Self>,
            _line: &ControlSocket<Self>,
            _given: &mut u32,
        ) -> Result<(), ControlError> {
            Ok(())
        }

        fn receive(
            held: &ServiceHandle<Self>,
            pid: &mut u32,
            message: FromAgent,
            _descriptor: Option<OwnedFd>,
        ) {
            let told = match message.kind {
                Some(from_agent::Kind::Operation(operation)) => format!("{} of {pid}", operation.verb),
                other => format!("{other:?}"),
            };
            held.service().0.lock().push(told);
        }

        fn is_operation(message: &FromAgent) -> bool {
            matches!(message.kind, Some(from_agent::Kind::Operation(_)))
        }

        fn process_ended(&self) {}
    }

    fn operation(verb: &str) -> FromAgent {
        let operation = Operation { verb: verb.to_owned(), ..Operation::default() };
        FromAgent { kind: Some(from_agent::Kind::Operation(operation)) }
    }

    // Promises: AUDIT-20
    #[tokio::test]
    async fn what_a_process_did_until_its_end_is_received() {
        let held = ServiceHandle::new(Verbs::NAME, Verbs::default(), Events::new());
        let (ours, theirs) = talon_control::pair().unwrap();
        let process = Control::<FromAgent, ToAgent>::new(theirs).unwrap();
        process.send(&operation("before"), None).await.unwrap();
        held.on_started(ours, 4, 990);
        held.on_stopping();
        // Another one runs before all is read of this one.
        held.update_status(|status| status.pid = 5);
        let mut received = Box::pin(held.wait_received());
        assert!(received.as_mut().now_or_never().is_none(), "it may still say something");
        assert!(process.receive().await.unwrap().is_none(), "it is told to end");
        let ready = FromAgent { kind: Some(from_agent::Kind::Ready(Ready::default())) };
        process.send(&ready, None).await.unwrap();
        process.send(&operation("while_it_ends"), None).await.unwrap();
        drop(process);
        received.await;
        assert_eq!(*held.service().0.lock(), ["before of 4", "while_it_ends of 4"]);
    }

    // Promises: AUDIT-20
    #[test]
    fn a_crowd_of_operations_is_no_misbehaviour() {
        let start = Instant::now();
        let mut operations = MessageRate::new(MAX_OPERATIONS, start);
        // As fast as the agent writes them.
        let second = |at: u32| start + Duration::from_secs(u64::from(at));
        assert!((0..300).all(|at| (0..900).all(|_| operations.allow(second(at)))));
    }

    #[test]
    fn who_says_a_little_for_long_is_heard() {
        let start = Instant::now();
        let mut said = MessageRate::new(MAX_MESSAGES, start);
        let words = (0..MAX_MESSAGES * 20).map(|at| start + WINDOW / 50 * at);
        assert!(words.into_iter().all(|at| said.allow(at)));
    }

    #[test]
    fn who_says_too_much_at_once_is_not() {
        let start = Instant::now();
        let mut said = MessageRate::new(MAX_MESSAGES, start);
        let heard = (0..MAX_MESSAGES + 5).filter(|_| said.allow(start)).count();
        assert_eq!(heard, MAX_MESSAGES as usize);
        assert!(said.allow(start + WINDOW));
    }
}
