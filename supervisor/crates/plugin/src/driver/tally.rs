//! The driver's metrics: how its processes ended, and how long they took to start.

use super::Driver;
use crate::lifecycle::State;
use crate::lifecycle::event::{Event, Report};
use crate::lifecycle::reason::word;

/// The time from a process's start to its handshake.
const HANDSHAKE: &str = "talon_plugin_handshake_duration_seconds";
/// The time from the start command until the plugin was ready.
const START: &str = "talon_plugin_start_duration_seconds";

impl Driver {
    /// The reason for which an event counts as a restart, if it ends a process.
    pub(super) fn word_of(&self, event: &Event) -> Option<&'static str> {
        let up = matches!(
            self.machine.state(),
            State::Starting | State::Handshaking | State::Ready | State::Unhealthy
        );
        match event {
            Event::Restart => up.then_some(word::REQUESTED),
            Event::Report { report, .. } => match report {
                Report::LaunchFailed { refused: true, .. } => Some(word::REFUSED),
                Report::LaunchFailed { .. } => Some(word::START_FAILED),
                Report::Exited { .. } => {
                    let by_memory =
                        self.running.as_ref().is_some_and(|running| running.process.ended_by_memory());
                    Some(if by_memory { word::OUT_OF_MEMORY } else { word::EXITED })
                }
                Report::Gone => Some(word::EXITED),
                Report::Checked(_) => Some(word::HEALTH_CHECKS),
                Report::IgnoredDeadline { .. } => Some(word::IGNORED_DEADLINE),
                Report::ProcessStarted
                | Report::Launched
                | Report::CallsDone
                | Report::ExitAnswered { .. } => None,
            },
            Event::Start | Event::Stop { .. } | Event::Tick => None,
        }
    }

    /// Counts a restart, if the machine counted a death or an operator asked for it.
    pub(super) fn count_restart(&mut self, word: Option<&'static str>, died_before: u64) {
        let Some(word) = word else { return };
        if word == word::REQUESTED || self.machine.died() > died_before {
            *self.view.restarts.entry(word).or_default() += 1;
        }
    }

    pub(super) fn time_handshake(&mut self) {
        if let Some(spawned) = self.spawned.take() {
            let plugin = self.common.spec.name.to_string();
            metrics::histogram!(HANDSHAKE, "plugin" => plugin).record(spawned.elapsed());
        }
    }

    pub(super) fn time_start(&self) {
        if let Some(took) = self.view.start_to_ready {
            metrics::histogram!(START, "plugin" => self.common.spec.name.to_string()).record(took);
        }
    }
}
