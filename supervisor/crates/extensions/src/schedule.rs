//! Checks of `extensions.schedule`.

use talon_sanitize::nearest;
use talon_schedule::check_jobs;

use crate::finding::{Finding, Severity};
use crate::{Extensions, MAX_NAME_CHARS, NotificationEntry};

/// The list below `extensions`.
const LIST: &str = "schedule";
const HELP: &str = "see docs/schedule.md; `talon schedule check` shows the times of an expression";

/// What is wrong with the jobs.
pub(crate) fn findings(extensions: &Extensions) -> Vec<Finding> {
    let finding = |index, key, message: String, help: String| Finding {
        severity: Severity::Problem,
        list: LIST,
        index: Some(index),
        key,
        message,
        help,
    };
    let mut found = Vec::new();
    if let Err(problems) = check_jobs(&extensions.schedule) {
        let of_jobs = problems.into_iter();
        found.extend(
            of_jobs
                .map(|(index, problem)| finding(index, problem.key(), problem.to_string(), HELP.to_owned())),
        );
    }
    for (index, job) in extensions.schedule.iter().enumerate() {
        let Some(name) = job.deliver.as_deref().filter(|name| extensions.notification(name).is_none()) else {
            continue;
        };
        let names = || extensions.notifications.iter().map(NotificationEntry::name);
        let help = match nearest(name, names()).first() {
            Some(near) => format!("did you mean {near}?"),
            None if extensions.notifications.is_empty() => {
                "write one under extensions.notifications".to_owned()
            }
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
        found.push(finding(index, Some("deliver"), format!("no notification entry is called {shown}"), help));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> Vec<(Option<usize>, Option<&'static str>, String)> {
        let extensions: Extensions = serde_saphyr::from_str(yaml).expect("extensions");
        findings(&extensions).into_iter().map(|found| (found.index, found.key, found.message)).collect()
    }

    // Promises: EXT-33
    #[test]
    fn what_is_wrong_is_named_by_entry_and_key() {
        assert!(
            found("schedule: [{ id: a, every: 1h, ask: x }, { id: b, every: 1h, action: a.b }]").is_empty()
        );
        let problems =
            found("schedule: [{ id: a, every: 1h, ask: x }, { id: b, cron: '0 0 30 2 *', ask: x }]");
        assert_eq!((problems.len(), problems[0].0, problems[0].1), (1, Some(1), Some("cron")));
        assert!(problems[0].2.contains("no day 30 in February"), "{problems:?}");
    }

    // Promises: EXT-92
    #[test]
    fn an_answer_is_delivered_to_an_entry_that_there_is() {
        let sinks = "notifications: [{ on: [answer], action: mail.send, name: ops-mail }]\nschedule: ";
        let job = |name: &str| format!("{sinks}[{{ id: a, every: 1h, ask: x, deliver: {name} }}]");
        assert!(found(&job("ops-mail")).is_empty());
        let problems = found(&job("ops-mial"));
        assert_eq!((problems[0].0, problems[0].1), (Some(0), Some("deliver")));
        let both = "[{ id: a, every: 1h, action: b.c, deliver: none }]";
        assert!(found(&format!("schedule: {both}"))[0].2.contains("no notification entry is called none"));
    }
}
