use super::*;
use crate::entry::Overlap;

fn entry(yaml: &str) -> ScheduleEntry {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"))
}

fn problems(yaml: &str) -> Vec<String> {
    entry(yaml).check().expect_err(yaml).iter().map(ToString::to_string).collect()
}

// Promises: EXT-33
#[test]
fn an_entry_is_a_job_with_defaults() {
    let job =
        entry("{ id: digest, cron: '0 9 * * 1-5', timezone: Europe/Berlin, ask: What changed? }").check();
    let job = job.expect("a job");
    assert_eq!(job.id.as_str(), "digest");
    assert_eq!((job.missed, job.overlap), (MissedPolicy::Once, Overlap::Skip));
    assert_eq!((job.retries, job.deadline), (0, Duration::from_secs(600)));
    let ask = Target::Ask { text: "What changed?".to_owned(), session: None, budget: None };
    assert_eq!(job.target, ask);
    let job =
        entry("{ id: a, every: 6h, missed: all, missed_max: 3, action: reports.send, args: { to: me } }");
    let job = job.check().expect("a job");
    assert_eq!(job.missed, MissedPolicy::All { most: 3 });
    assert!(
        matches!(job.target, Target::Action { action, args } if action == "reports.send" && args.len() == 1)
    );
}

// Promises: EXT-31, EXT-33
#[test]
fn what_does_not_fit_together_is_said() {
    for (yaml, expected) in [
        ("{ id: a, ask: x }", "it has none of them: write exactly one of `cron`, `every` and `at`"),
        ("{ id: a, cron: '@daily', every: 1h, ask: x }", "it has `cron` and `every`: write exactly one"),
        ("{ id: a, every: 1h }", "it has none of them: write exactly one of `ask` and `action`"),
        ("{ id: a, every: 1h, ask: x, action: a.b }", "it has `ask` and `action`"),
        (
            "{ id: a, every: 1h, timezone: UTC, ask: x }",
            "`timezone` has no meaning here: it belongs to `cron` and `at`",
        ),
        ("{ id: a, every: 1h, ask: x, args: {} }", "`args` has no meaning here"),
        ("{ id: a, every: 1h, action: a.b, budget: 1 }", "`budget` has no meaning here: it belongs to `ask`"),
        ("{ id: a, every: 1h, action: a.b, session: s }", "`session` has no meaning here"),
        ("{ id: a, every: 1h, action: ab }", "write a plugin's name, a dot, and its action"),
        ("{ id: a, every: 1h, ask: ' ' }", "`ask` is empty"),
        ("{ id: a, every: 1h, ask: x, session: 'a b' }", "`session` is \"a b\": write 1 to 64 letters"),
        ("{ id: a, cron: '0 0 30 2 *', ask: x }", "`cron`: it never runs: there is no day 30 in February"),
        ("{ id: a, cron: '@daily', timezone: Europe/Berln, ask: x }", "did you mean Europe/Berlin?"),
        ("{ id: a, at: noon, ask: x }", "`at`: \"noon\" is no time"),
        ("{ id: a, every: 1h, ask: x, retries: 11 }", "`retries` is 11: write 0 to 10"),
        ("{ id: a, every: 1h, ask: x, missed_max: 0 }", "`missed_max` is 0: write 1 to 100"),
    ] {
        let found = problems(yaml);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{yaml}: {found:?}");
    }
}

#[test]
fn what_no_entry_can_have_is_refused_where_it_is_read() {
    for yaml in [
        "{ id: '', every: 1h, ask: x }",
        "{ id: 'a b', every: 1h, ask: x }",
        "{ every: 1h, ask: x }",
        "{ id: a, every: 0s, ask: x }",
        "{ id: a, every: 1h, ask: x, deadline: 25h }",
        "{ id: a, every: 1h, ask: x, jitter: 25h }",
        "{ id: a, every: 1h, ask: x, overlap: both }",
        "{ id: a, every: 1h, ask: x, unknown: 1 }",
    ] {
        assert!(serde_saphyr::from_str::<ScheduleEntry>(yaml).is_err(), "{yaml}");
    }
}

// Promises: EXT-33
#[test]
fn all_problems_are_said_with_their_entries() {
    let good = entry("{ id: a, every: 1h, ask: x }");
    let bad = entry("{ id: b, cron: x, ask: x, retries: 99 }");
    assert_eq!(check_jobs(std::slice::from_ref(&good)).expect("jobs").len(), 1);
    let found = check_jobs(&[good.clone(), bad, good.clone()]).expect_err("problems");
    let places: Vec<(usize, Option<&str>)> = found.iter().map(|(at, problem)| (*at, problem.key())).collect();
    assert_eq!(places, [(1, Some("cron")), (1, Some("retries")), (2, Some("id"))]);
    let many = vec![good; MAX_JOBS + 1];
    assert!(matches!(check_jobs(&many).expect_err("too many")[..], [(_, EntryProblem::TooMany { .. })]));
}

#[test]
fn retries_wait_longer_each_time_up_to_an_hour() {
    let job = entry("{ id: a, every: 1h, ask: x, retry_after: 10m }").check().expect("a job");
    let waits: Vec<u64> = (1..=5).map(|failed| job.retry_wait(failed).as_secs() / 60).collect();
    assert_eq!(waits, [10, 20, 40, 60, 60]);
    assert_eq!(job.retry_wait(u32::MAX), Duration::from_secs(3600));
}

#[test]
fn only_what_decides_the_times_is_in_the_digest() {
    let of = |yaml: &str| entry(yaml).check().expect("a job").timing_digest();
    let job = of("{ id: a, every: 1h, ask: x }");
    assert_eq!(job, of("{ id: a, every: 60m, ask: y, retries: 3 }"));
    assert_ne!(job, of("{ id: a, every: 61m, ask: x }"));
    assert_ne!(job, of("{ id: a, every: 1h, ask: x, paused: true }"));
}

#[test]
fn jitter_keeps_the_order() {
    let job = entry("{ id: a, cron: '*/5 * * * *', jitter: 24h, ask: x }").check().expect("a job");
    let start = "2026-01-01T00:00:00Z".parse().expect("a time");
    let begins: Vec<_> = job.recurrence.times_after(start).take(50).map(|at| (at, job.begins(at))).collect();
    assert!(begins.iter().any(|(planned, begins)| planned != begins));
    for pair in begins.windows(2) {
        assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:?}");
    }
}
