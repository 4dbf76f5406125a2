//! The driver's metrics: how its processes ended, and how long they took to start.

use super::Driver;
use crate::lifecycle::State;
use crate::lifecycle::event::{FailureKind, MachineEvent, ProcessReport};
use crate::lifecycle::reason::restart_reason;

/// The time from a process's start to its handshake.
const HANDSHAKE: &str = "talon_plugin_handshake_duration_seconds";
/// The time from the start command until the plugin was ready.
const START: &str = "talon_plugin_start_duration_seconds";

impl Driver {
    /// The reason for which an event counts as a restart, if it ends a process.
    pub(super) fn restart_reason(&self, event: &MachineEvent) -> Option<&'static str> {
        let up = matches!(
            self.machine.state(),
            State::Starting | State::Handshaking | State::Ready | State::Unhealthy
        );
        match event {
            MachineEvent::Restart => up.then_some(restart_reason::REQUESTED),
            MachineEvent::Report { report, .. } => match report {
                ProcessReport::LaunchFailed { kind: FailureKind::Permanent, .. } => {
                    Some(restart_reason::REFUSED)
                }
                ProcessReport::LaunchFailed { kind: FailureKind::FrameFlood, .. } => {
                    Some(restart_reason::FRAME_FLOOD)
                }
                ProcessReport::LaunchFailed { .. } => Some(restart_reason::START_FAILED),
                ProcessReport::Exited { .. } => {
                    let by_memory =
                        self.running.as_ref().is_some_and(|running| running.process.was_oom_killed());
                    Some(if by_memory { restart_reason::OUT_OF_MEMORY } else { restart_reason::EXITED })
                }
                ProcessReport::Gone => Some(restart_reason::EXITED),
                ProcessReport::Checked(_) => Some(restart_reason::HEALTH_CHECKS),
                ProcessReport::IgnoredDeadline { .. } => Some(restart_reason::IGNORED_DEADLINE),
                ProcessReport::Flooded { .. } => Some(restart_reason::FRAME_FLOOD),
                ProcessReport::ProcessStarted
                | ProcessReport::Launched
                | ProcessReport::CallsDone
                | ProcessReport::ExitAnswered { .. } => None,
            },
            MachineEvent::Start | MachineEvent::Stop { .. } | MachineEvent::Tick => None,
        }
    }

    /// Counts a restart, if the machine counted a death or an operator asked for it.
    pub(super) fn count_restart(&mut self, word: Option<&'static str>, died_before: u64) {
        let Some(word) = word else { return };
        if word == restart_reason::REQUESTED || self.machine.total_deaths() > died_before {
            *self.status.restarts.entry(word).or_default() += 1;
        }
    }

    pub(super) fn time_handshake(&mut self) {
        if let Some(spawned) = self.spawned_at.take() {
            let plugin = self.common.spec.name.to_string();
            metrics::histogram!(HANDSHAKE, "plugin" => plugin).record(spawned.elapsed());
        }
    }

    pub(super) fn time_start(&self) {
        if let Some(took) = self.status.start_to_ready {
            metrics::histogram!(START, "plugin" => self.common.spec.name.to_string()).record(took);
        }
    }
}
