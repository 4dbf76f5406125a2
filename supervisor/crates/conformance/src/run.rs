//! One run: every selected check, in order, each with a time limit.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use talon_jail::{Mode, Status};
use talon_plugin::probe::{ProbeError, Prober};
use talon_plugin_config::spec::{DEFAULT_PROFILE, PluginSpec};
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::check::{Check, Test};
use crate::checks::perform;
use crate::harness::{Finding, Harness};
use crate::list::CHECKS;
use crate::options::Options;
use crate::report::{Outcome, Report, Verdict};

/// The longest detail of one check, in bytes: a few sentences.
const MAX_DETAIL_BYTES: usize = 1 << 10;
/// The time limit of a check without starts and stops: two calls that are never answered.
const CALL_ALLOWANCE: Duration = Duration::from_secs(60);
/// The most starts and stops of one check.
const MAX_STARTS: u32 = 3;

/// The progress of a run.
#[derive(Debug)]
pub enum Progress<'o> {
    /// A check begins: its number from 0, and the number of checks.
    Started(&'static Check, usize, usize),
    /// A check is finished.
    Finished(&'o Outcome),
}

/// Why no check was performed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The program cannot be started on this machine.
    #[error("it cannot be started: {0}")]
    Start(#[from] ProbeError),
}

/// Checks a plugin. All started processes are gone once `Prober::wait_until_gone` has returned, also if this
/// future is dropped.
///
/// # Errors
/// [`RunError`], when the program cannot be started at all, so that nothing is known about it.
pub fn run<'a>(
    prober: &'a Prober,
    spec: PluginSpec,
    options: &'a Options,
    progress: &'a mut (dyn FnMut(Progress<'_>) + Send),
) -> BoxFuture<'a, Result<Report, RunError>> {
    // Boxed, so that the checks are compiled once, in this crate, and not again in the program that awaits them.
    Box::pin(perform_all(prober, spec, options, progress))
}

async fn perform_all(
    prober: &Prober,
    spec: PluginSpec,
    options: &Options,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<Report, RunError> {
    let began = Instant::now();
    let wanted: Vec<_> = CHECKS.iter().filter(|check| options.includes(check)).collect();
    let mut harness = Harness::new(prober, spec, options);
    harness.start().await?;
    let mut outcomes = Vec::with_capacity(wanted.len());
    for (number, check) in wanted.iter().enumerate() {
        progress(Progress::Started(check, number, wanted.len()));
        let began = Instant::now();
        let finding = match check.test {
            Test::JailStrict => check_strict_profile(&harness, options, &outcomes).await,
            _ => perform_within_limit(check, &mut harness).await,
        };
        let outcome = outcome(check, finding, began.elapsed());
        progress(Progress::Finished(&outcome));
        outcomes.push(outcome);
    }
    harness.drop_session().await;
    Ok(Report {
        plugin: Raw::from(harness.spec.name.as_str()).line(),
        program: Raw::from(harness.spec.program.to_string_lossy()).line_within(MAX_DETAIL_BYTES),
        dialect: harness.dialect().map(|dialect| dialect.as_str()),
        profile: Raw::from(&harness.spec.sandbox.profile).line_within(MAX_DETAIL_BYTES),
        called: harness.targets.summary(),
        outcomes,
        took: began.elapsed(),
    })
}

fn outcome(check: &'static Check, finding: Finding, took: Duration) -> Outcome {
    let (verdict, detail) = match finding {
        Finding::Pass(detail) => (Verdict::Pass, detail),
        Finding::Fail(detail) => (Verdict::Fail, detail),
        Finding::Warn(detail) => (Verdict::Warn, detail),
        Finding::Skip(detail) => (Verdict::Skip, detail),
    };
    Outcome { check, verdict, detail: detail.cut(MAX_DETAIL_BYTES), took }
}

/// Performs a check within its time limit. After a failure the process is discarded, so that the next check
/// gets a new one.
async fn perform_within_limit(check: &'static Check, harness: &mut Harness<'_>) -> Finding {
    let life = &harness.spec.lifecycle;
    let limit = CALL_ALLOWANCE + MAX_STARTS * (life.start_timeout + 2 * life.grace_period);
    let finding = tokio::time::timeout(limit, Box::pin(perform(check, harness))).await;
    let finding =
        finding.unwrap_or_else(|_| Finding::Fail(sanitized!("it was given up after {} s", limit.as_secs())));
    if matches!(finding, Finding::Fail(_)) {
        harness.drop_session().await;
    }
    finding
}

/// Whether the plugin works under the strict profile.
async fn check_strict_profile(harness: &Harness<'_>, options: &Options, before: &[Outcome]) -> Finding {
    if let Some(finding) = harness.skip_reason() {
        return finding;
    }
    let sandbox = &harness.spec.sandbox;
    if sandbox.mode == Mode::Off {
        return Finding::Skip("its sandbox.mode is off, so it has no profile".into());
    }
    if sandbox.profile == DEFAULT_PROFILE {
        return enforcement_finding(harness.facts.jail.as_ref());
    }
    let mut spec = harness.spec.clone();
    spec.sandbox.profile = DEFAULT_PROFILE.to_owned();
    let passed = before.iter().filter(|outcome| matches!(outcome.verdict, Verdict::Pass | Verdict::Warn));
    let again: Vec<&'static Check> = passed.map(|outcome| outcome.check).collect();
    let failed = match failing_checks(harness.prober, spec, options, &again).await {
        Ok(failed) => failed,
        Err(problem) => {
            return Finding::Fail(sanitized!("under it the plugin cannot be started: {}", problem.text));
        }
    };
    match failed.split_first() {
        None => Finding::Pass(sanitized!("{} checks hold under it, too", again.len())),
        Some(((first, detail), more)) => {
            Finding::Fail(sanitized!("under it {} fails: {} ({} more fail)", *first, detail, more.len()))
        }
    }
}

/// What the jail reports about the profile that all checks ran under.
fn enforcement_finding(report: Option<&talon_jail::Report>) -> Finding {
    let calls = report.and_then(|report| report.iter().find(|line| line.name == "system-calls"));
    match calls.map(|line| &line.status) {
        Some(Status::Enforced) => Finding::Pass("all of the above was under it".into()),
        Some(Status::StandIn(why) | Status::Missing(why)) => {
            let why = Raw::from(why).line_within(MAX_DETAIL_BYTES / 2);
            Finding::Skip(sanitized!("this machine does not enforce it: {}", why))
        }
        None => Finding::Skip("this machine does not say whether it is enforced".into()),
    }
}

/// The failing checks among these.
fn failing_checks<'a>(
    prober: &'a Prober,
    spec: PluginSpec,
    options: &'a Options,
    checks: &'a [&'static Check],
) -> BoxFuture<'a, Result<Vec<(&'static str, Sanitized)>, ProbeError>> {
    async move {
        let mut harness = Harness::new(prober, spec, options);
        harness.start().await?;
        let mut failed = Vec::new();
        for check in checks {
            if let Finding::Fail(detail) = perform_within_limit(check, &mut harness).await {
                failed.push((check.id, detail));
            }
        }
        harness.drop_session().await;
        Ok(failed)
    }
    .boxed()
}
