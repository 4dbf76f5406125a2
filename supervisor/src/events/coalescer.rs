//! Repeated events become one. Pure.
//!
//! The first event of a kind about a plugin, or about one of its scripts, goes out at once and opens a window. Those that come within the window are held: the
//! latest of them, with a count, goes out at its end and opens the next. So a plugin that crashes all the time makes a few events
//! a minute, whatever it does. A more severe event of the same kind has a window of its own, so that it is not held. Events about one plugin keep their order: one that goes out takes the held ones that came before it
//! along.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::classifier::SCRIPT;
use super::host_event::{HostEventKind, NewHostEvent, Severity};

/// The most pairs of kind and plugin that have a window: more than a supervisor has plugins. At the bound the oldest window is
/// closed, so that its event goes out early.
const MAX_WINDOWS: usize = 4096;

/// Combines events of the same kind about the same plugin.
#[derive(Debug)]
pub(super) struct Coalescer {
    window: Duration,
    open: HashMap<Key, Window>,
    /// Counts the events, for their order.
    arrivals: u64,
}

/// Kind, severity, plugin, and its script if it is about one.
type Key = (HostEventKind, Severity, String, String);

#[derive(Debug)]
struct Window {
    ends: Instant,
    held: Option<HeldEvent>,
}

#[derive(Debug)]
struct HeldEvent {
    event: NewHostEvent,
    /// When the latest of them came.
    arrival: u64,
}

impl Coalescer {
    /// A window of zero combines nothing.
    pub(super) fn new(window: Duration) -> Self {
        Self { window, open: HashMap::new(), arrivals: 0 }
    }

    /// Takes an event; returns those that go out now.
    pub(super) fn push(&mut self, event: NewHostEvent, now: Instant) -> Vec<NewHostEvent> {
        if self.window.is_zero() {
            return vec![event];
        }
        let mut out = self.due(now);
        self.arrivals += 1;
        let arrival = self.arrivals;
        let script = event.fields.get(SCRIPT).map(ToString::to_string).unwrap_or_default();
        let key = (event.kind, event.severity, event.plugin.clone(), script);
        if let Some(window) = self.open.get_mut(&key) {
            let before = window.held.take().map_or(0, |held| held.event.count);
            let event = NewHostEvent { count: event.count.saturating_add(before), ..event };
            window.held = Some(HeldEvent { event, arrival });
            return out;
        }
        if self.open.len() >= MAX_WINDOWS {
            out.extend(self.close_oldest(now));
        }
        out.extend(self.release(&event.plugin, arrival, now));
        self.open.insert(key, Window { ends: now + self.window, held: None });
        out.push(event);
        out
    }

    /// The events whose windows end.
    pub(super) fn due(&mut self, now: Instant) -> Vec<NewHostEvent> {
        let mut ended: Vec<(u64, String)> = self
            .open
            .iter()
            .filter(|(_, window)| window.ends <= now)
            .filter_map(|((_, _, plugin, _), window)| Some((window.held.as_ref()?.arrival, plugin.clone())))
            .collect();
        ended.sort_unstable();
        let out =
            ended.into_iter().flat_map(|(arrival, plugin)| self.release(&plugin, arrival, now)).collect();
        // Those that held nothing, and did not begin anew.
        self.open.retain(|_, window| window.ends > now);
        out
    }

    /// When [`due`](Self::due) has something.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.values().filter(|window| window.held.is_some()).map(|window| window.ends).min()
    }

    /// All events that are held.
    pub(super) fn flush(&mut self) -> Vec<NewHostEvent> {
        let mut held: Vec<HeldEvent> = self.open.drain().filter_map(|(_, window)| window.held).collect();
        held.sort_by_key(|held| held.arrival);
        held.into_iter().map(|held| held.event).collect()
    }

    /// The held events about a plugin up to an arrival, in their order. Their windows begin anew.
    fn release(&mut self, plugin: &str, through: u64, now: Instant) -> Vec<NewHostEvent> {
        let mut out: Vec<HeldEvent> = Vec::new();
        for (_, window) in self.open.iter_mut().filter(|((_, _, about, _), _)| about == plugin) {
            if let Some(held) = window.held.take_if(|held| held.arrival <= through) {
                window.ends = now + self.window;
                out.push(held);
            }
        }
        out.sort_by_key(|held| held.arrival);
        out.into_iter().map(|held| held.event).collect()
    }

    fn close_oldest(&mut self, now: Instant) -> Vec<NewHostEvent> {
        let oldest = self.open.iter().min_by_key(|(_, window)| window.ends);
        let Some((key, arrival)) =
            oldest.map(|(key, window)| (key.clone(), window.held.as_ref().map(|held| held.arrival)))
        else {
            return Vec::new();
        };
        let out = arrival.map(|arrival| self.release(&key.2, arrival, now)).unwrap_or_default();
        self.open.remove(&key);
        out
    }
}

#[cfg(test)]
#[path = "coalescer_tests.rs"]
mod tests;
