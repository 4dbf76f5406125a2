//! A load, its result, and the closed loop in between: a number of callers, each of which calls again as soon
//! as it has its answer.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// A load that a driver runs, as a line of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Bytes of content in every answer.
    pub content_bytes: usize,
    /// Concurrent callers.
    pub concurrency: usize,
    /// Its duration, in milliseconds.
    pub millis: u64,
}

/// The result of a load, as a line of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Calls that were answered.
    pub calls: u64,
    /// Answered calls a second.
    pub calls_per_second: f64,
    /// The time that half of all calls took at most, in microseconds.
    pub p50_us: f64,
    /// The same for 99 of 100.
    pub p99_us: f64,
    /// Calls before the load, to which no time counts, but what they cost.
    pub prepared: u64,
}

/// A client that makes one call at a time; clones call concurrently.
pub trait Caller: Clone + Send + 'static {
    /// Asks for this many bytes of content and checks that they came.
    fn call(&mut self, content_bytes: usize) -> impl Future<Output = Result<()>> + Send;

    /// Prepares for a load, and returns with how many calls. Callers prepare one after the other.
    fn prepare(&mut self) -> impl Future<Output = Result<u64>> + Send {
        std::future::ready(Ok(0))
    }
}

/// Runs a load. The first call that fails ends it.
///
/// # Errors
/// The error of the failed call, or that not a single call was answered.
pub async fn run<C: Caller>(caller: &C, load: Load) -> Result<Outcome> {
    let (mut ready, mut prepared) = (Vec::new(), 0);
    for _ in 0..load.concurrency.max(1) {
        let mut caller = caller.clone();
        prepared += caller.prepare().await?;
        ready.push(caller);
    }
    let begin = Instant::now();
    let end = begin + Duration::from_millis(load.millis);
    let callers: Vec<_> =
        ready.into_iter().map(|caller| tokio::spawn(keep_calling(caller, load.content_bytes, end))).collect();
    let mut times = Vec::new();
    for caller in callers {
        times.extend(caller.await.context("a caller panicked")??);
    }
    Ok(Outcome { prepared, ..outcome(times, begin.elapsed())? })
}

/// What calls that took so many nanoseconds come to.
pub(crate) fn outcome(mut times: Vec<u32>, took: Duration) -> Result<Outcome> {
    ensure!(!times.is_empty(), "no call was answered");
    times.sort_unstable();
    let part = |part: f64| {
        // An index into the list, which is shorter than the integers that f64 represents exactly.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ part ≤ 1")]
        let at = (times.len() as f64 * part) as usize;
        f64::from(times[at.min(times.len() - 1)]) / 1e3
    };
    Ok(Outcome {
        calls: times.len() as u64,
        calls_per_second: times.len() as f64 / took.as_secs_f64(),
        p50_us: part(0.5),
        p99_us: part(0.99),
        prepared: 0,
    })
}

/// Every call's nanoseconds; at most four seconds, longer calls count as that.
async fn keep_calling<C: Caller>(mut caller: C, content_bytes: usize, end: Instant) -> Result<Vec<u32>> {
    let mut times = Vec::new();
    let mut begin = Instant::now();
    while begin < end {
        caller.call(content_bytes).await?;
        let answered = Instant::now();
        times.push(u32::try_from((answered - begin).as_nanos()).unwrap_or(u32::MAX));
        begin = answered;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Clone)]
    struct Counting(Arc<AtomicUsize>, usize);

    impl Caller for Counting {
        async fn call(&mut self, _: usize) -> Result<()> {
            tokio::task::yield_now().await;
            ensure!(self.0.fetch_add(1, Ordering::Relaxed) < self.1, "enough");
            Ok(())
        }

        async fn prepare(&mut self) -> Result<u64> {
            self.call(0).await?;
            Ok(1)
        }
    }

    #[tokio::test]
    async fn every_answered_call_is_counted() {
        let calls = Arc::new(AtomicUsize::new(0));
        let load = Load { content_bytes: 0, concurrency: 8, millis: 20 };
        let outcome = run(&Counting(calls.clone(), usize::MAX), load).await.expect("all are answered");
        assert_eq!(outcome.prepared, 8);
        assert_eq!(outcome.calls + 8, calls.load(Ordering::Relaxed) as u64);
        assert!(outcome.p50_us <= outcome.p99_us && outcome.calls_per_second > 0.0, "{outcome:?}");
    }

    #[tokio::test]
    async fn a_failing_call_is_no_figure() {
        let load = Load { content_bytes: 0, concurrency: 2, millis: 10_000 };
        let error = run(&Counting(Arc::default(), 10), load).await.expect_err("the eleventh fails");
        assert_eq!(error.to_string(), "enough");
    }
}
