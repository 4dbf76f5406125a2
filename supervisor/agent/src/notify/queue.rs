//! Events that are not written yet.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use talon_extensions::EventKind;
use talon_extensions::contract::Event;
use tokio::sync::Notify;

use super::event::NewEvent;
use super::group::alike_text;
use super::payload::gap_summary;
use super::rules::{Incoming, Rules};

/// The most events that wait to be written. Their writing takes a few milliseconds; 2,048 are what a burst brings
/// while the disk is slow. Further ones are counted for each entry that would have taken them.
const MAX_WAITING: usize = 2048;
/// From so many on, an event that is like one that waits is counted with that one.
const JOIN_FROM: usize = 256;

/// Bounded, and never waits: who reports an event has other things to do.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// Where in `events` the event of a text is, counted from the first event ever.
    alike: BTreeMap<String, u64>,
    /// How many were taken out.
    taken: u64,
    /// How many were dropped, by the entries that would have taken them.
    dropped: BTreeMap<String, u64>,
    /// How many were dropped ever.
    dropped_ever: u64,
    /// The number of the next gap.
    gaps: u64,
}

impl EventQueue {
    /// Adds an event for the entries that take it.
    pub(super) fn push(&self, event: Event, rules: &Rules) {
        if rules.takers(&event).next().is_none() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.events.len() >= JOIN_FROM && waiting.join(&event) {
            return;
        }
        if waiting.events.len() >= MAX_WAITING {
            for entry in rules.takers(&event) {
                let dropped = waiting.dropped.entry(entry.to_owned()).or_default();
                *dropped = dropped.saturating_add(event.count);
            }
            waiting.dropped_ever = waiting.dropped_ever.saturating_add(event.count);
            return;
        }
        let position = waiting.taken + waiting.events.len() as u64;
        waiting.alike.insert(alike_text(&event), position);
        waiting.events.push_back(event);
        drop(waiting);
        self.filled.notify_one();
    }

    /// Takes out at most `limit` events, the oldest first. Without any left, what was dropped is told instead.
    pub(super) fn take(&self, limit: usize, process: &str) -> Vec<Incoming> {
        let mut waiting = self.waiting.lock();
        let taken = limit.min(waiting.events.len());
        if taken > 0 {
            waiting.taken += taken as u64;
            let from = waiting.taken;
            waiting.alike.retain(|_, position| *position >= from);
            return waiting.events.drain(..taken).map(|event| Incoming { event, to: None }).collect();
        }
        let dropped = std::mem::take(&mut waiting.dropped);
        waiting.gaps += u64::from(!dropped.is_empty());
        let gap = waiting.gaps;
        dropped
            .into_iter()
            .map(|(entry, count)| {
                let id = format!("gap {process} {gap}");
                let event = NewEvent::new(EventKind::EventsGap, id, gap_summary(count)).happened();
                Incoming { event: Event { count, ..event }, to: Some(entry) }
            })
            .collect()
    }

    /// Resolves when there is something that was not there before.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// How many events were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.waiting.lock().dropped_ever
    }
}

impl Waiting {
    /// Counts an event with one that is like it; `false` if none is.
    fn join(&mut self, event: &Event) -> bool {
        let Some(position) = self.alike.get(&alike_text(event)) else { return false };
        let index = usize::try_from(position - self.taken).unwrap_or(usize::MAX);
        let Some(same) = self.events.get_mut(index) else { return false };
        same.count = same.count.saturating_add(event.count);
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use talon_extensions::NotificationEntry;

    use super::*;

    fn event(id: u64, plugin: u64) -> Event {
        let event = NewEvent::new(EventKind::PluginFailed, format!("e{id}"), "it failed");
        event.field("plugin", format!("p{plugin}")).happened()
    }

    fn rules() -> Rules {
        Rules::new(&[
            NotificationEntry::new(&["plugin.*"], "a.b"),
            NotificationEntry::new(&["plugin.failed"], "c.d"),
            NotificationEntry::new(&["budget.*"], "e.f"),
        ])
    }

    #[test]
    fn events_that_no_entry_takes_do_not_wait() {
        let (queue, rules) = (EventQueue::default(), rules());
        queue.push(NewEvent::new(EventKind::TaskFailed, "t", "x").happened(), &rules);
        assert!(queue.take(10, "p").is_empty());
    }

    // Promises: EXT-55
    #[test]
    fn a_flood_is_bounded_and_counted() {
        let (queue, rules) = (EventQueue::default(), rules());
        const FLOOD: u64 = 100_000;
        for id in 0..FLOOD {
            queue.push(event(id, id), &rules);
        }
        let mut told = 0;
        loop {
            let some = queue.take(500, "p");
            let gaps: Vec<_> = some.iter().filter(|one| one.to.is_some()).collect();
            if !gaps.is_empty() {
                let of: Vec<_> = gaps.iter().map(|one| (one.to.as_deref(), one.event.count)).collect();
                let lost = FLOOD - MAX_WAITING as u64;
                assert_eq!(of, [(Some("a.b"), lost), (Some("c.d"), lost)]);
                assert_eq!(queue.dropped(), lost);
                break;
            }
            assert!(!some.is_empty());
            told += some.len();
        }
        assert_eq!(told, MAX_WAITING);
        assert!(queue.take(500, "p").is_empty());
    }

    proptest! {
        /// However events come and are taken: each is counted once.
        #[test]
        fn every_event_is_counted(
            steps in prop::collection::vec((1_u64..900, 1_u64..600, 0_usize..700), 1..12),
        ) {
            let (queue, rules) = (EventQueue::default(), rules());
            let (mut pushed, mut counted) = (0, 0);
            let count = |some: &[Incoming]| -> u64 {
                some.iter().filter(|one| one.to.as_deref().is_none_or(|to| to == "a.b")).map(|one| one.event.count).sum()
            };
            for (events, plugins, taken) in steps {
                for _ in 0..events {
                    queue.push(event(pushed, pushed % plugins), &rules);
                    pushed += 1;
                }
                counted += count(&queue.take(taken, "p"));
                prop_assert!(queue.waiting.lock().events.len() <= MAX_WAITING);
                prop_assert!(queue.waiting.lock().alike.len() <= MAX_WAITING);
            }
            loop {
                let some = queue.take(1000, "p");
                if some.is_empty() { break }
                counted += count(&some);
            }
            prop_assert_eq!(counted, pushed);
        }
    }
}
