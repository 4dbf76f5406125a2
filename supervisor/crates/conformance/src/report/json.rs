//! The report for programs.

use serde_json::{Value, json};

use super::{Outcome, Report, Verdict};

/// The report as one JSON value.
#[must_use]
pub fn json(report: &Report) -> Value {
    json!({
        "plugin": report.plugin.as_str(),
        "program": report.program.as_str(),
        "dialect": report.dialect,
        "profile": report.profile.as_str(),
        "called": report.called.as_str(),
        "passed": report.passed(),
        "pass": report.count(Verdict::Pass),
        "fail": report.count(Verdict::Fail),
        "warn": report.count(Verdict::Warn),
        "skip": report.count(Verdict::Skip),
        "took_ms": millis(report.took),
        "checks": report.outcomes.iter().map(check).collect::<Value>(),
    })
}

fn check(outcome: &Outcome) -> Value {
    let Outcome { check, verdict, detail, took } = outcome;
    json!({
        "id": check.id,
        "title": check.title,
        "outcome": verdict.as_str(),
        "detail": detail.as_str(),
        "why": check.why,
        "mend": check.mend,
        "took_ms": millis(*took),
        "docs": check.paragraph(),
        "protocol": check.protocol(),
    })
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
