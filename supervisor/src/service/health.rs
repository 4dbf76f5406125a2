//! Health checks of a service: a service that hangs would block all its users.

use std::future::Future;
use std::time::Duration;

use talon_plugin::Service;
use talon_sanitize::{Sanitized, sanitized};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};

use super::handle::ServiceHandle;
use super::managed_service::ManagedService;
use super::processor_time::processor_time;
use super::silence::{MAX_BUSY, Silence};
use super::status::ManagedServiceState;

/// Health check settings, as for plugins.
#[derive(Debug, Clone, Copy)]
pub struct HealthChecks {
    /// The time between two checks.
    pub interval: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// After this many failures in a row, the service is killed and restarted.
    pub threshold: u32,
}

/// How often a service is asked whether it lives. All its clients wait for a process that hangs, so it is
/// asked more often than a plugin; the answer takes no work, so a service that is only busy gives it in time as a rule.
/// One that was stopped is reported within 4 s, and replaced within 8 s; one that is busy, see [`MAX_BUSY`].
const LIVENESS: HealthChecks =
    HealthChecks { interval: Duration::from_secs(2), timeout: Duration::from_secs(2), threshold: 3 };

impl HealthChecks {
    /// The checks of liveness: those of [`LIVENESS`], or these where they are stricter.
    fn liveness(self) -> Self {
        Self {
            interval: self.interval.min(LIVENESS.interval),
            timeout: self.timeout.min(LIVENESS.timeout),
            threshold: self.threshold.min(LIVENESS.threshold),
        }
    }
}

/// Kills the service if it does not answer. `ping` asks whether its process lives; `check`, which is called
/// more seldom, asks whether it works. A refusal counts as an answer, and so does the report that its
/// database does not answer.
pub(crate) async fn watch<K, P, C>(
    held: ServiceHandle<K>,
    service: Service,
    checks: HealthChecks,
    ping: impl FnMut() -> P + Send,
    check: impl FnMut() -> C + Send,
) where
    K: ManagedService,
    P: Future<Output = Result<(), Status>> + Send,
    C: Future<Output = Result<(), Status>> + Send,
{
    let live = Watch { held: held.clone(), service: service.clone(), checks: checks.liveness() };
    let works = Watch { held, service, checks };
    tokio::join!(live.run(ping, true), works.run(check, false));
}

/// One kind of check.
struct Watch<K> {
    held: ServiceHandle<K>,
    service: Service,
    checks: HealthChecks,
}

impl<K: ManagedService> Watch<K> {
    /// Asks in intervals while the service is open, and at once again after a missing answer. With `reports`,
    /// the status says meanwhile that the service does not answer.
    async fn run<A>(self, mut ask: impl FnMut() -> A + Send, reports: bool)
    where
        A: Future<Output = Result<(), Status>> + Send,
    {
        let Self { held, service, checks } = self;
        let closing = held.closing_token();
        let (mut missed, mut pid) = (0, 0);
        let (mut before, mut silence) = (None, None);
        let mut asked = Instant::now();
        loop {
            // At once again after an answer that did not come in time; one that was refused at once is asked as seldom as that.
            let pause = if reports && missed > 0 {
                checks.timeout.saturating_sub(asked.elapsed())
            } else {
                checks.interval
            };
            if closing.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
            let status = held.status();
            if status.pid != pid || !status.state.is_open() {
                (missed, pid, before, silence) = (0, status.pid, None, None);
                if !status.state.is_open() {
                    continue;
                }
            }
            asked = Instant::now();
            let used = processor_time(pid);
            // A failed connection counts as no answer.
            let answered = match timeout(checks.timeout, ask()).await {
                Ok(Ok(())) => true,
                Ok(Err(status)) => status.code() != Code::Unavailable,
                Err(_) => false,
            };
            missed = if answered { 0 } else { missed + 1 };
            if reports && answered {
                report_answer(&held, pid, before.take());
            } else if reports && missed == 1 {
                before = report_silence(&held, pid, checks);
            }
            if answered {
                silence = None;
                continue;
            }
            let silent = silence.get_or_insert_with(|| Silence::new(asked, used));
            if missed >= checks.threshold && silent.is_hung(Instant::now(), processor_time(pid)) {
                tracing::error!(missed, "the {} does not answer; it is killed and started again", K::NAME);
                service.restart();
                (missed, silence) = (0, None);
            }
        }
    }
}

/// The state before a service did not answer, and its problem.
type Before = (ManagedServiceState, Option<Sanitized>);

/// Records that the process does not answer; returns what the status was.
fn report_silence<K: ManagedService>(
    held: &ServiceHandle<K>,
    pid: u32,
    checks: HealthChecks,
) -> Option<Before> {
    let within = checks.timeout * checks.threshold.saturating_sub(1);
    tracing::warn!(pid, "the {} does not answer", K::NAME);
    let mut before = None;
    held.update_status(|status| {
        if status.pid == pid && status.state.is_open() {
            let problem = sanitized!(
                "it has not answered for {} ms, and its clients wait; it is killed and started again if it does not \
                 within {} ms, or within {} s while it is busy",
                checks.timeout.as_millis(),
                within.as_millis(),
                MAX_BUSY.as_secs()
            );
            before = Some((status.state, status.problem.replace(problem)));
            status.state = ManagedServiceState::Unresponsive;
        }
    });
    before
}

/// Records that it answers again, unless it has reported something itself meanwhile.
fn report_answer<K: ManagedService>(held: &ServiceHandle<K>, pid: u32, before: Option<Before>) {
    let Some((state, problem)) = before else { return };
    held.update_status(|status| {
        if status.pid == pid && status.state == ManagedServiceState::Unresponsive {
            (status.state, status.problem) = (state, problem);
        }
    });
}
