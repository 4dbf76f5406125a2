use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::entry::ScheduleEntry;

fn job(when: &str) -> Job {
    let yaml = format!("{{ id: a, ask: x, {when} }}");
    let entry: ScheduleEntry = serde_saphyr::from_str(&yaml).expect("an entry");
    entry.check().expect("a job")
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

fn planned(decision: &Decision) -> Vec<String> {
    decision.due.iter().map(|due| due.planned.to_string()).collect()
}

const MIDNIGHT: &str = "2026-11-26T00:00:00Z";

// Promises: EXT-34
#[test]
fn what_is_due_runs_and_the_rest_is_waited_for() {
    let hourly = job("cron: '0 * * * *'");
    let before = decide(&hourly, time(MIDNIGHT), time("2026-11-26T00:59:59Z"));
    assert!(before.due.is_empty() && before.progress == time(MIDNIGHT));
    assert_eq!(before.next, Some(time("2026-11-26T01:00:00Z")));
    let due = decide(&hourly, before.progress, time("2026-11-26T01:00:00Z"));
    assert_eq!(planned(&due), ["2026-11-26T01:00:00Z"]);
    assert_eq!((due.progress, due.next), (time("2026-11-26T01:00:00Z"), Some(time("2026-11-26T02:00:00Z"))));
    assert!(decide(&hourly, due.progress, time("2026-11-26T01:00:00Z")).due.is_empty());
}

// Promises: EXT-34
#[test]
fn a_little_late_is_not_missed() {
    let skip = job("cron: '0 * * * *', missed: skip");
    let late = decide(&skip, time(MIDNIGHT), time("2026-11-26T01:01:00Z"));
    assert_eq!(late.due, [Due { planned: time("2026-11-26T01:00:00Z"), late: false }]);
    let missed = decide(&skip, time(MIDNIGHT), time("2026-11-26T01:01:01Z"));
    assert!(missed.due.is_empty());
    assert_eq!(missed.missed, [time("2026-11-26T01:00:00Z")]);
}

// Promises: EXT-34
#[test]
fn after_a_downtime_none_one_or_some_run() {
    let now = time("2026-11-26T05:30:00Z");
    let of = |policy: &str| decide(&job(&format!("cron: '0 * * * *', {policy}")), time(MIDNIGHT), now);
    let skip = of("missed: skip");
    assert_eq!((skip.due.len(), skip.missed.len()), (0, 5));
    let once = of("missed: once");
    assert_eq!(planned(&once), ["2026-11-26T05:00:00Z"]);
    assert!(once.due[0].late && once.missed.len() == 4);
    let all = of("missed: all, missed_max: 3");
    assert_eq!(planned(&all), ["2026-11-26T03:00:00Z", "2026-11-26T04:00:00Z", "2026-11-26T05:00:00Z"]);
    assert_eq!(all.missed.len(), 2);
    for decision in [skip, once, all] {
        assert_eq!(decision.progress, time("2026-11-26T05:00:00Z"));
        assert_eq!(decision.next, Some(time("2026-11-26T06:00:00Z")));
    }
    // What is on time is the one run.
    let on_time = decide(&job("cron: '0 * * * *'"), time(MIDNIGHT), time("2026-11-26T05:00:30Z"));
    assert_eq!(planned(&on_time), ["2026-11-26T05:00:00Z"]);
    assert!(!on_time.due[0].late && on_time.missed.len() == 4);
}

// Promises: EXT-34
#[test]
fn a_long_downtime_is_decided_in_pieces_and_the_latest_run() {
    let job = job("cron: '* * * * * *', missed: all, missed_max: 7");
    let now = time("2026-11-26T12:00:00.5Z");
    let (mut progress, mut decisions, mut counted) = (time(MIDNIGHT), 0, 0);
    let last = loop {
        let decision = decide(&job, progress, now);
        decisions += 1;
        assert!(decision.missed.len() <= MAX_RECORDED && decision.progress > progress);
        counted += decision.unrecorded + (decision.missed.len() + decision.due.len()) as u64;
        progress = decision.progress;
        if decision.next != Some(now) {
            break decision;
        }
        assert!(decision.due.is_empty());
    };
    assert!(decisions > 2);
    assert_eq!(counted, 12 * 3600);
    // The latest seven that were missed, and those of the last minute.
    assert_eq!(last.due.iter().filter(|due| due.late).count(), 7);
    assert_eq!(last.due.first().map(|due| due.planned), Some(time("2026-11-26T11:58:54Z")));
    assert_eq!(last.due.last().map(|due| due.planned), Some(time("2026-11-26T12:00:00Z")));
}

// Promises: EXT-34
#[test]
fn a_clock_that_is_set_back_repeats_nothing_and_one_set_far_back_begins_anew() {
    let hourly = job("cron: '0 * * * *'");
    let progress = time("2026-11-26T05:00:00Z");
    let back = decide(&hourly, progress, time("2026-11-26T04:10:00Z"));
    assert!(back.due.is_empty() && back.progress == progress);
    assert_eq!(back.next, Some(time("2026-11-26T06:00:00Z")));
    let far = decide(&hourly, time("2031-01-01T00:00:00Z"), time("2026-11-26T04:10:00Z"));
    assert!(far.due.is_empty());
    assert_eq!(far.next, Some(time("2026-11-26T05:00:00Z")));
}

#[test]
fn a_wait_is_bounded_and_never_negative() {
    let most = Duration::from_secs(30);
    assert_eq!(wait(at(100), Some(at(110)), most), Duration::from_secs(10));
    assert_eq!(wait(at(100), Some(at(1000)), most), most);
    assert_eq!(wait(at(100), Some(at(90)), most), Duration::ZERO);
    assert_eq!(wait(at(100), None, most), most);
}

fn any_job() -> impl Strategy<Value = Job> {
    let when = prop_oneof![
        Just("cron: '*/5 * * * *'"),
        Just("cron: '0 * * * *', timezone: Europe/Berlin"),
        Just("cron: '30 2 * * *', timezone: Europe/Berlin"),
        Just("cron: '*/20 * * * * *'"),
        Just("every: 7m"),
        Just("every: 45s, jitter: 20s"),
        Just("cron: '0 9 * * 1-5', jitter: 1h"),
        Just("at: '2026-03-29T01:00:00Z'"),
    ];
    let missed = prop_oneof![
        Just("missed: skip"),
        Just("missed: once"),
        Just("missed: all"),
        Just("missed: all, missed_max: 100"),
    ];
    (when, missed).prop_map(|(when, missed)| job(&format!("{when}, {missed}")))
}

proptest! {
    /// Whenever decisions are made, each planned time is in exactly one of them: as a run, as missed, or
    /// counted; in their order, and never before it begins.
    #[test]
    fn each_planned_time_is_decided_once(
        job in any_job(),
        steps in prop::collection::vec(prop_oneof![4 => 0_i64..120, 2 => 0_i64..7200, 1 => 0_i64..200_000], 1..30),
    ) {
        let start = at(1_774_700_000);
        let (mut now, mut progress) = (start, start);
        let (mut ran, mut decided, mut counted) = (BTreeSet::new(), BTreeSet::new(), 0);
        for step in steps {
            now = now.checked_add(SignedDuration::from_secs(step)).expect("a time");
            loop {
                let decision = decide(&job, progress, now);
                for due in &decision.due {
                    prop_assert!(job.begins(due.planned) <= now);
                    prop_assert!(ran.last().is_none_or(|last| *last < due.planned));
                    ran.insert(due.planned);
                    prop_assert!(decided.insert(due.planned), "{} twice", due.planned);
                }
                for missed in &decision.missed {
                    prop_assert!(job.begins(*missed) < now);
                    prop_assert!(decided.insert(*missed), "{} twice", missed);
                }
                counted += decision.unrecorded;
                prop_assert!(decision.progress >= progress);
                progress = decision.progress;
                if decision.next.is_none_or(|next| next > now) {
                    break;
                }
            }
        }
        let all = job.recurrence.times_after(start).take_while(|planned| job.begins(*planned) <= now).count();
        prop_assert_eq!(decided.len() as u64 + counted, all as u64);
    }

    /// Nothing that is on time is left out, whatever was missed before.
    #[test]
    fn what_is_on_time_runs(job in any_job(), gap in 0_i64..400_000) {
        let start = at(1_774_700_000);
        let now = start.checked_add(SignedDuration::from_secs(gap)).expect("a time");
        let mut decision = decide(&job, start, now);
        while decision.next == Some(now) {
            decision = decide(&job, decision.progress, now);
        }
        let recent: Vec<Timestamp> = job.recurrence.times_after(start)
            .take_while(|planned| job.begins(*planned) <= now)
            .filter(|planned| now.duration_since(job.begins(*planned)) <= GRACE)
            .collect();
        let on_time: Vec<Timestamp> =
            decision.due.iter().filter(|due| !due.late).map(|due| due.planned).collect();
        prop_assert_eq!(on_time, recent);
    }
}
