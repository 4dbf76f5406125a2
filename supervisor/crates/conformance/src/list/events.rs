//! Checks of the events that a plugin tells.

use super::section;
use crate::check::{Applicability, Check, Level, Test};

pub(super) const RESENT: Check = Check {
    id: "events.resent",
    title: "sends events again until they are acknowledged",
    tries: "Two streams of events are opened, one after the other: the second one has what the first one had, in its order, and the first one ends. An event that was never sent is acknowledged, which changes nothing. Then the first event is acknowledged, and a third stream is without it. It is skipped for a plugin that tells no events.",
    why: "Hosts and plugins restart. What was not acknowledged is on nobody's disk, and what was is told once.",
    mend: "Keep events until they are acknowledged, and begin each stream with them, the oldest first. The SDKs do.",
    level: Level::Must,
    about: Applicability::GoPlugin,
    section: section::EVENTS,
    test: Test::EventsResent,
};
