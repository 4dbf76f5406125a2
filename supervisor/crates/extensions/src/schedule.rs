//! Checks of `extensions.schedule`.

use talon_schedule::{ScheduleEntry, Target, check_jobs};

use crate::finding::{Finding, Severity};

/// The list below `extensions`.
const LIST: &str = "schedule";
const HELP: &str = "see docs/schedule.md; `talon schedule check` shows the times of an expression";

/// What is wrong with the jobs.
pub(crate) fn findings(entries: &[ScheduleEntry]) -> Vec<Finding> {
    let finding = |index, key, message: String| Finding {
        severity: Severity::Problem,
        list: LIST,
        index: Some(index),
        key,
        message,
        help: HELP.to_owned(),
    };
    let jobs = match check_jobs(entries) {
        Ok(jobs) => jobs,
        Err(problems) => {
            let findings = problems.into_iter();
            return findings
                .map(|(index, problem)| finding(index, problem.key(), problem.to_string()))
                .collect();
        }
    };
    let not_yet = jobs.iter().enumerate().filter_map(|(index, job)| match &job.target {
        Target::Ask { deliver: Some(_), .. } => Some((index, "deliver")),
        Target::Ask { .. } | Target::Action { .. } => None,
    });
    not_yet
        .map(|(index, key)| {
            finding(index, Some(key), format!("`{key}` is for a later version: write `ask` alone"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> Vec<(Option<usize>, Option<&'static str>, String)> {
        let entries: Vec<ScheduleEntry> = serde_saphyr::from_str(yaml).expect("entries");
        findings(&entries).into_iter().map(|found| (found.index, found.key, found.message)).collect()
    }

    // Promises: EXT-33
    #[test]
    fn what_is_wrong_is_named_by_entry_and_key() {
        assert!(found("[{ id: a, every: 1h, ask: x }, { id: b, every: 1h, action: a.b }]").is_empty());
        let problems = found("[{ id: a, every: 1h, ask: x }, { id: b, cron: '0 0 30 2 *', ask: x }]");
        assert_eq!((problems.len(), problems[0].0, problems[0].1), (1, Some(1), Some("cron")));
        assert!(problems[0].2.contains("no day 30 in February"), "{problems:?}");
    }

    #[test]
    fn what_the_agent_does_not_do_yet_is_refused() {
        assert_eq!(found("[{ id: a, every: 1h, ask: x, deliver: mail }]")[0].1, Some("deliver"));
    }
}
