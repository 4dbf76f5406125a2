use std::collections::BTreeMap;
use std::time::SystemTime;

use proptest::prelude::*;
use talon_sanitize::sanitized;

use super::*;

const WINDOW: Duration = Duration::from_secs(60);
const KINDS: [HostEventKind; 3] =
    [HostEventKind::PluginFailed, HostEventKind::PluginRestarting, HostEventKind::PluginReady];

/// The summary says which event it is.
fn event(kind: HostEventKind, plugin: &str, id: u64) -> NewHostEvent {
    NewHostEvent {
        kind,
        plugin: plugin.to_owned(),
        severity: Severity::Warning,
        summary: sanitized!("{}", id),
        details: talon_sanitize::Sanitized::default(),
        at: SystemTime::UNIX_EPOCH,
        fields: BTreeMap::new(),
        count: 1,
    }
}

fn id(event: &NewHostEvent) -> u64 {
    event.summary.as_str().parse().unwrap()
}

// Promises: EXT-69
#[test]
fn the_first_goes_out_at_once_and_the_rest_as_one() {
    let mut coalescer = Coalescer::new(WINDOW);
    let start = Instant::now();
    let mut push = |id, after| coalescer.push(event(KINDS[0], "p", id), start + Duration::from_secs(after));
    assert_eq!(push(1, 0).len(), 1);
    for id in 2..1000 {
        assert_eq!(push(id, 1), []);
    }
    assert_eq!(coalescer.next_due(), Some(start + WINDOW));
    let out = coalescer.due(start + WINDOW);
    assert_eq!((out.len(), id(&out[0]), out[0].count), (1, 999, 998));
    assert_eq!(coalescer.next_due(), None);
    // A window without an event ends by itself.
    assert_eq!(coalescer.due(start + 3 * WINDOW), []);
    assert_eq!(coalescer.push(event(KINDS[0], "p", 1000), start + 3 * WINDOW).len(), 1);
}

#[test]
fn a_more_severe_one_is_not_held_and_takes_the_held_ones_along() {
    let mut coalescer = Coalescer::new(WINDOW);
    let now = Instant::now();
    assert_eq!(coalescer.push(event(KINDS[0], "p", 1), now).len(), 1);
    assert_eq!(coalescer.push(event(KINDS[0], "p", 2), now), []);
    let critical = NewHostEvent { severity: Severity::Critical, ..event(KINDS[0], "p", 3) };
    let out: Vec<u64> = coalescer.push(critical, now).iter().map(id).collect();
    assert_eq!(out, [2, 3]);
}

#[test]
fn without_a_window_nothing_is_combined() {
    let mut coalescer = Coalescer::new(Duration::ZERO);
    for id in 0..10 {
        assert_eq!(coalescer.push(event(KINDS[0], "p", id), Instant::now()).len(), 1);
    }
    assert_eq!(coalescer.flush(), []);
}

#[test]
fn the_number_of_windows_is_bounded() {
    let mut coalescer = Coalescer::new(WINDOW);
    let now = Instant::now();
    let mut out = 0;
    for round in 0..2 {
        for plugin in 0..MAX_WINDOWS as u64 + 100 {
            let pushed = coalescer.push(event(KINDS[0], &plugin.to_string(), round), now);
            out += pushed.iter().map(|event| event.count).sum::<u64>();
            assert!(coalescer.open.len() <= MAX_WINDOWS);
        }
    }
    out += coalescer.flush().iter().map(|event| event.count).sum::<u64>();
    assert_eq!(out, 2 * (MAX_WINDOWS as u64 + 100));
}

proptest! {
    // Promises: EXT-69
    #[test]
    fn none_is_lost_and_the_last_of_a_plugin_comes_last(
        steps in prop::collection::vec((0..3_usize, 0..2_usize, 0..40_u64), 1..200),
    ) {
        let mut coalescer = Coalescer::new(WINDOW);
        let mut now = Instant::now();
        let start = now;
        let mut out = Vec::new();
        let mut last = BTreeMap::new();
        for (number, (kind, plugin, pause)) in steps.iter().enumerate() {
            now += Duration::from_secs(*pause);
            out.extend(coalescer.due(now));
            let plugin = ["p", "q"][*plugin];
            last.insert(plugin, number as u64);
            out.extend(coalescer.push(event(KINDS[*kind], plugin, number as u64), now));
        }
        // A few a minute, whatever happens.
        let minutes = usize::try_from(now.duration_since(start).as_secs() / 60).unwrap() + 1;
        prop_assert!(out.len() <= minutes * 2 * KINDS.len() * (KINDS.len() + 1), "{} in {minutes} minutes", out.len());
        out.extend(coalescer.flush());
        prop_assert_eq!(out.iter().map(|event| event.count).sum::<u64>(), steps.len() as u64);
        for (plugin, last) in last {
            let ids: Vec<u64> = out.iter().filter(|event| event.plugin == plugin).map(id).collect();
            prop_assert!(ids.is_sorted(), "{ids:?}");
            prop_assert_eq!(ids.last(), Some(&last));
        }
    }
}
