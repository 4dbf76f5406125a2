use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::notify::NewEvent;

fn at(seconds: i64) -> Timestamp {
    // 2026-11-26 00:00:00 UTC.
    Timestamp::from_millis(1_795_651_200_000 + seconds * 1000)
}

fn rules(yaml: &str) -> Rules {
    let entries: Vec<NotificationEntry> = serde_saphyr::from_str(yaml).expect("entries");
    Rules::new(&entries)
}

fn failed(id: u32, plugin: &str) -> Incoming {
    let event = NewEvent::new(EventKind::PluginFailed, format!("e{id}"), format!("{plugin} failed"));
    Incoming { event: event.field("plugin", plugin).happened(), to: None }
}

/// A store of notifications that the rules decide about one after the other.
#[derive(Default)]
struct Outbox {
    all: Vec<Notification>,
    ids: u32,
}

impl Outbox {
    fn decide(&mut self, rules: &Rules, events: &[Incoming], now: i64) -> &[Notification] {
        let groups: BTreeSet<GroupKey> = rules.groups(events).into_iter().collect();
        let mut latest: BTreeMap<GroupKey, Notification> = BTreeMap::new();
        for one in self.all.iter().filter(|one| groups.contains(&one.key())) {
            latest.insert(one.key(), one.clone());
        }
        let ids = &mut self.ids;
        let mut new_id = || {
            *ids += 1;
            format!("n{:06}", *ids)
        };
        let is_known = |(event, entry): &(String, String)| {
            self.all.iter().any(|one| one.event == *event && one.entry == *entry)
        };
        let known = rules.pairs(events).into_iter().filter(is_known).collect();
        let stored = Stored { latest: latest.into_values().collect(), known };
        let batch = rules.decide(events, stored, at(now), &mut new_id);
        assert_eq!(batch.groups.iter().map(|(key, _)| key.clone()).collect::<BTreeSet<_>>(), groups);
        for change in batch.changes {
            match change {
                NotificationChange::New(new) => self.insert(new),
                NotificationChange::Extend { id, more, payload, severity } => {
                    let one = self.all.iter_mut().find(|one| one.id == id).expect("it is there");
                    assert!(at(now) < one.closes_at && one.state == NotificationState::Waiting);
                    one.count += more;
                    one.payload = payload.unwrap_or_else(|| one.payload.clone());
                    one.severity = severity;
                    one.revision += 1;
                }
            }
        }
        &self.all
    }

    fn insert(&mut self, new: NewNotification) {
        let is_known = self.all.iter().any(|one| one.event == new.event && one.entry == new.key.entry);
        assert!(!is_known, "the store would leave it out");
        self.all.push(Notification {
            id: new.id,
            event: new.event,
            entry: new.key.entry,
            group: new.key.group,
            severity: new.severity,
            payload: new.payload,
            count: new.count,
            revision: 0,
            state: NotificationState::Waiting,
            attempt: 0,
            due_at: new.due_at,
            next_at: new.due_at,
            closes_at: new.closes_at,
            holder: None,
            epoch: 0,
            lease_until: Timestamp::from_millis(0),
            created_at: new.created_at,
            ended_at: None,
            note: String::new(),
        });
    }

    /// What is due is delivered.
    fn deliver(&mut self, now: i64) {
        for one in self.all.iter_mut().filter(|one| one.due_at <= at(now)) {
            (one.state, one.attempt) = (NotificationState::Delivered, 1);
        }
    }

    /// When each is due in seconds, and how many events it stands for.
    fn due(&self) -> Vec<(i64, u64)> {
        let seconds = |one: &Notification| (one.due_at.as_millis() - at(0).as_millis()) / 1000;
        self.all.iter().map(|one| (seconds(one), one.count)).collect()
    }
}

// Promises: EXT-54
#[test]
fn an_event_goes_to_each_entry_that_takes_it() {
    let rules = rules(
        "[{ on: [plugin.*], action: mail.send }, { on: [plugin.failed], where: { plugin: [files] }, action: a.b, name: files },
          { on: [budget.*], action: c.d }, { action: e.f, name: named }]",
    );
    let mut stored = Outbox::default();
    stored.decide(&rules, &[failed(1, "files"), failed(2, "search")], 5);
    let to = |stored: &Outbox| -> Vec<(String, String)> {
        stored.all.iter().map(|one| (one.event.clone(), one.entry.clone())).collect()
    };
    let pairs = |all: &[(&str, &str)]| -> Vec<_> {
        all.iter().map(|(event, entry)| ((*event).to_owned(), (*entry).to_owned())).collect()
    };
    assert_eq!(to(&stored), pairs(&[("e1", "mail.send"), ("e1", "files"), ("e2", "mail.send")]));
    assert_eq!(stored.due(), [(5, 1), (5, 1), (5, 1)]);
    // To one entry alone, whatever it takes.
    let named = Incoming { to: Some("named".into()), ..failed(3, "files") };
    stored.decide(&rules, &[named, failed(1, "files")], 6);
    assert_eq!(to(&stored)[3..], pairs(&[("e3", "named")]));
}

// Promises: EXT-54
#[test]
fn what_comes_within_the_interval_is_counted_in_the_next() {
    let rules = rules("[{ on: [plugin.*], action: a.b, min_interval: 10m }]");
    let mut stored = Outbox::default();
    // In one decision, and in several.
    stored.decide(&rules, &[failed(1, "x"), failed(2, "x"), failed(4, "x")], 0);
    stored.decide(&rules, &[failed(3, "y")], 0);
    stored.deliver(0);
    assert_eq!(stored.due(), [(0, 1), (600, 2), (0, 1)]);
    stored.decide(&rules, &[failed(5, "x"), failed(2, "x"), failed(5, "x")], 300);
    assert_eq!(stored.due()[1], (600, 3), "the same event counts once");
    stored.deliver(600);
    stored.decide(&rules, &[failed(6, "x")], 700);
    assert_eq!(stored.due().last(), Some(&(1200, 1)));
    stored.deliver(1200);
    stored.decide(&rules, &[failed(7, "x")], 5000);
    assert_eq!(stored.due().last(), Some(&(5000, 1)));
}

// Promises: EXT-54
#[test]
fn quiet_hours_hold_back_all_but_some_kinds() {
    let rules = rules(
        "[{ on: [plugin.*], action: a.b,
            quiet: { from: '22:00', to: '07:00', timezone: Europe/Berlin, except: [plugin.quarantined] } }]",
    );
    let quarantined =
        Incoming { event: NewEvent::new(EventKind::PluginQuarantined, "q", "x").happened(), to: None };
    let test =
        Incoming { event: NewEvent::new(EventKind::Test, "t", "x").happened(), to: Some("a.b".into()) };
    let mut stored = Outbox::default();
    let hour = 3600;
    // Midnight in UTC is one o'clock in Berlin.
    stored.decide(&rules, &[failed(1, "x"), quarantined, test, failed(2, "x")], 0);
    assert_eq!(stored.due(), [(6 * hour, 1), (0, 1), (0, 1), (6 * hour, 1)]);
    stored.decide(&rules, &[failed(3, "x")], 6 * hour);
    assert_eq!(stored.due()[4], (6 * hour, 1));
}

// Promises: EXT-54
#[test]
fn a_digest_tells_what_came_in_its_time() {
    let rules = rules("[{ on: [plugin.*], action: a.b, digest: 1h }]");
    let mut stored = Outbox::default();
    stored.decide(&rules, &[failed(1, "x"), failed(2, "y")], 0);
    stored.decide(&rules, &[failed(3, "x"), failed(2, "y")], 3599);
    assert_eq!(stored.due(), [(3600, 3)]);
    let payload = Payload::read(&stored.all[0].payload).expect("a payload");
    assert_eq!(payload.events.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["e1", "e2", "e3"]);
    let request = payload.request(&stored.all[0]);
    assert_eq!((request.event.count, request.events.len()), (3, 3));
    assert!(request.event.id == "n000001" && request.event.details.lines().count() == 3, "{request:?}");
    stored.decide(&rules, &[failed(4, "x")], 3600);
    assert_eq!(stored.due(), [(3600, 3), (7200, 1)]);
    // An answer is not put with others.
    let answer = Incoming {
        event: NewEvent::new(EventKind::Answer, "answer", "42").happened(),
        to: Some("a.b".into()),
    };
    stored.decide(&rules, &[answer], 3700);
    assert_eq!(stored.due()[2], (3700, 1));
}

#[test]
fn a_digest_is_bounded_and_counts_the_rest() {
    let rules = rules("[{ on: [plugin.*], action: a.b, digest: 1h }]");
    for (details, summary) in [(0, 5), (16_000, 5), (16_000, 500)] {
        let mut stored = Outbox::default();
        for first in (0..600).step_by(50) {
            let event = |id: u32| {
                let mut incoming = failed(id, &format!("p{id}"));
                incoming.event.details = "d".repeat(details);
                incoming.event.summary = "s".repeat(summary);
                incoming
            };
            stored.decide(&rules, &(first..first + 50).map(event).collect::<Vec<_>>(), 10);
        }
        let one = &stored.all[0];
        assert_eq!((stored.all.len(), one.count), (1, 600));
        assert!(one.payload.len() <= talon_store::limits::MAX_PAYLOAD_BYTES, "{}", one.payload.len());
        let request = Payload::read(&one.payload).expect("a payload").request(one);
        assert!(request.events.len() <= 100);
        assert_eq!(request.events.iter().map(|event| event.count).sum::<u64>(), 600);
        assert_eq!(request.events.last().map(|last| last.kind), Some(EventKind::EventsGap));
    }
}

fn any_entry() -> impl Strategy<Value = NotificationEntry> {
    let hold = prop::sample::select(vec![
        "",
        ", min_interval: 90s",
        ", digest: 5m",
        ", digest: 5m, min_interval: 1m",
        ", quiet: { from: '23:00', to: '02:30', timezone: Europe/Berlin }",
        ", min_interval: 1m, quiet: { from: '01:00', to: '01:10' }",
    ]);
    hold.prop_map(|hold| {
        let yaml = format!("{{ on: [plugin.failed], action: a.b{hold} }}");
        serde_saphyr::from_str(&yaml).expect("an entry")
    })
}

proptest! {
    /// Whatever comes, when and in which pieces: no event is lost, none is told twice, none before its time,
    /// and like ones never more often than the interval says.
    #[test]
    fn every_event_is_told_once(
        entry in any_entry(),
        arrivals in prop::collection::vec((0_i64..400, 0_usize..3, 1_usize..4, any::<bool>()), 1..40),
    ) {
        let rules = Rules::new(std::slice::from_ref(&entry));
        let (mut stored, mut now, mut id) = (Outbox::default(), 0_i64, 0_u32);
        for (wait, plugin, events, again) in arrivals {
            now += wait;
            stored.deliver(now);
            let mut batch: Vec<Incoming> = (0..events).map(|_| { id += 1; failed(id, ["x", "y", "z"][plugin]) }).collect();
            if again {
                batch.push(batch[0].clone());
            }
            stored.decide(&rules, &batch, now);
            for one in &stored.all {
                prop_assert!(one.due_at >= one.created_at && one.closes_at <= one.due_at);
            }
        }
        prop_assert_eq!(stored.all.iter().map(|one| one.count).sum::<u64>(), u64::from(id));
        if let (Some(interval), None) = (entry.min_interval, entry.digest) {
            let mut last: BTreeMap<&str, i64> = BTreeMap::new();
            for one in &stored.all {
                let due = one.due_at.as_millis();
                if let Some(before) = last.insert(&one.group, due) {
                    prop_assert!(due - before >= i64::try_from(interval.get().as_millis()).expect("short"));
                }
            }
        }
        if entry.digest.is_some() {
            for one in &stored.all {
                let payload = Payload::read(&one.payload).expect("a payload");
                prop_assert_eq!(payload.events.iter().map(|event| event.count).sum::<u64>(), one.count);
            }
        }
    }
}
