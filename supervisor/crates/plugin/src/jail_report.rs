//! What a jail's report says to operators.

use talon_jail::{Report, Status};
use talon_sanitize::{Raw, Sanitized};

/// The protections that are not in force, or only by a substitute, each with its reason.
pub(crate) fn not_enforced(report: &Report) -> Vec<Sanitized> {
    let lines = report.iter().filter_map(|protection| match &protection.status {
        Status::Enforced => None,
        Status::StandIn(how) => Some(format!("{}: only a stand-in: {how}", protection.name)),
        Status::Missing(why) => Some(format!("{}: {why}", protection.name)),
    });
    lines.map(|line| Raw::from(line).line()).collect()
}
