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

/// How long a service may give no answer while it uses the processor. 60 s: with a thousand turns on a full machine an answer takes seconds, and
/// a restart would only add work; one that hangs in a loop is replaced then.
const MAX_BUSY: Duration = Duration::from_secs(60);
/// The part of the time that a busy service uses the processor at least: a fiftieth. Beside a full machine it may get little more, and one that
/// was stopped, or waits for a lock, uses none.
const BUSY_PART: u32 = 50;

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
        let mut before = None;
        // Since when it has given no answer.
        let mut silent = None;
        loop {
            let pause = if reports && missed > 0 { Duration::ZERO } else { checks.interval };
            if closing.run_until_cancelled(sleep(pause)).await.is_none() {
                return;
            }
            let status = held.status();
            if status.pid != pid || !status.state.is_open() {
                (missed, pid, before, silent) = (0, status.pid, None, None);
                if !status.state.is_open() {
                    continue;
                }
            }
            let (asked, used) = (Instant::now(), processor_time(pid));
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
            let since = *silent.get_or_insert(asked);
            if answered {
                silent = None;
            }
            let is_busy =
                || is_busy(used, processor_time(pid), asked.elapsed()) && since.elapsed() < MAX_BUSY;
            if missed >= checks.threshold && !is_busy() {
                tracing::error!(missed, "the {} does not answer; it is killed and started again", K::NAME);
                service.restart();
                (missed, silent) = (0, None);
            }
        }
    }
}

/// Whether a process that used so much of the processor before and after this time is busy.
fn is_busy(before: Option<Duration>, after: Option<Duration>, time: Duration) -> bool {
    let used = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    used.is_some_and(|used| used * BUSY_PART >= time)
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

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-138
    #[test]
    fn a_service_that_uses_the_processor_is_busy_and_one_that_was_stopped_is_not() {
        let (time, used) = (Duration::from_secs(2), |ms| Some(Duration::from_millis(ms)));
        assert!(is_busy(used(1000), used(1100), time));
        assert!(!is_busy(used(1000), used(1010), time) && !is_busy(used(1000), used(1000), time));
        assert!(!is_busy(used(1000), None, time) && !is_busy(None, used(1000), time));
    }
}
