//! Calls at planned times, whether or not earlier ones are answered: how long an answer takes below the most that is possible.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::figures::Unit;
use crate::load::{Caller, Outcome, outcome};
use crate::turns::{Measurement, serve_turns};

/// The most unanswered calls: whoever has more does not keep up.
const MAX_IN_FLIGHT: usize = 512;

/// So many calls a second, for how long.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Pace {
    /// Calls a second.
    #[arg(long)]
    pub per_second: f64,
    /// Milliseconds of one turn.
    #[arg(long)]
    pub millis: u64,
}

/// Runs one turn.
///
/// # Errors
/// The error of a failed call, or that answers do not keep up.
pub async fn run<C: Caller>(caller: &C, pace: Pace) -> Result<Outcome> {
    let between = Duration::from_secs_f64(1.0 / pace.per_second);
    let begin = Instant::now();
    let end = begin + Duration::from_millis(pace.millis);
    // Callers have connections, which are used again.
    let idle = Arc::new(Mutex::new(Vec::<C>::new()));
    let (mut calls, mut times) = (JoinSet::new(), Vec::new());
    let mut planned = begin;
    while planned < end {
        sleep_until(planned.into()).await;
        while let Some(done) = calls.try_join_next() {
            times.push(done.context("a call panicked")??);
        }
        ensure!(
            calls.len() < MAX_IN_FLIGHT,
            "{} a second are too many: answers do not keep up",
            pace.per_second
        );
        let mut caller = idle.lock().pop().unwrap_or_else(|| caller.clone());
        let idle = Arc::clone(&idle);
        calls.spawn(async move {
            // Timers are a millisecond late at times: the call counts from when it is made.
            let begin = Instant::now();
            caller.call(0).await?;
            let took = u32::try_from(begin.elapsed().as_nanos()).unwrap_or(u32::MAX);
            idle.lock().push(caller);
            anyhow::Ok(took)
        });
        planned += between;
    }
    while let Some(done) = calls.join_next().await {
        times.push(done.context("a call panicked")??);
    }
    outcome(times, begin.elapsed())
}

/// Takes turns for the parent.
///
/// # Errors
/// As [`run`].
pub async fn serve<C: Caller>(caller: C, case: &str, contender: &str, pace: Pace) -> Result<()> {
    serve_turns(async || {
        let outcome = run(&caller, pace).await?;
        let figures = [
            ("p50", Unit::Milliseconds, outcome.p50_us / 1e3),
            ("p99", Unit::Milliseconds, outcome.p99_us / 1e3),
            ("calls", Unit::PerSecond, outcome.calls_per_second),
        ];
        Ok(figures.map(|(metric, unit, value)| Measurement::new(case, contender, metric, unit, value)).into())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Answers late, and counts the most calls at once.
    #[derive(Clone)]
    struct Slow {
        takes: Duration,
        under_way: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
    }

    impl Slow {
        fn new(takes: Duration) -> Self {
            Self { takes, under_way: Arc::default(), most: Arc::default() }
        }
    }

    impl Caller for Slow {
        async fn call(&mut self, _: usize) -> Result<()> {
            let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(under_way, Ordering::Relaxed);
            tokio::time::sleep(self.takes).await;
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn calls_do_not_wait_for_each_other() {
        let pace = Pace { per_second: 1000.0, millis: 50 };
        let slow = Slow::new(Duration::from_millis(20));
        let outcome = run(&slow, pace).await.expect("all are answered");
        assert_eq!(outcome.calls, 50);
        let most = slow.most.load(Ordering::Relaxed);
        assert!(most > 1, "each call waited for the one before it");
    }

    #[tokio::test]
    async fn whoever_does_not_keep_up_is_no_figure() {
        let pace = Pace { per_second: 100_000.0, millis: 10_000 };
        let error = run(&Slow::new(Duration::from_secs(3600)), pace).await.expect_err("nothing is answered");
        assert!(error.to_string().contains("keep up"), "{error}");
    }
}
