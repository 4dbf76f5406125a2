//! The driver's reports: events for programs, log lines for people.

use talon_sanitize::{Sanitized, sanitized};

use super::Driver;
use crate::events::{EventKind, NewEvent};
use crate::jail_report::not_enforced;
use crate::lifecycle::State;
use crate::lifecycle::event::{CheckResult, ProcessReport};
use crate::lifecycle::reason::format_duration;
use crate::logs::Level;

/// How many protections of a plugin's last start are not in force, or only by a substitute.
const NOT_ENFORCED_GAUGE: &str = "talon_plugin_not_enforced";

impl Driver {
    pub(super) fn report_state(&self, from: State, to: State) {
        let name = &self.common.spec.name;
        let instance = self.slot.index;
        let reason = self.status.reason.clone().unwrap_or_default();
        let whose = self.common.role_label().map(|part| sanitized!("the {} one: ", part)).unwrap_or_default();
        let message = match reason.as_str() {
            "" => sanitized!("{}{} → {}", whose, from, to),
            _ => sanitized!("{}{} → {}: {}", whose, from, to, reason),
        };
        match to {
            State::Failed | State::Refused => tracing::error!(plugin = %name, instance, "{message}"),
            State::Unhealthy | State::Backoff => tracing::warn!(plugin = %name, instance, "{message}"),
            _ => tracing::info!(plugin = %name, instance, "{message}"),
        }
        let event = self
            .event(EventKind::StateChanged, message)
            .field("from", from)
            .field("to", to)
            .field("reason", reason);
        self.common.events.emit(match self.status.deaths {
            0 => event,
            deaths => event.field("deaths", deaths),
        });
    }

    /// Logs missing protections, each only once: a restart with the same ones adds nothing.
    pub(super) fn report_jail(&self, report: &talon_jail::Report) {
        let name = &self.common.spec.name;
        let lacking = not_enforced(report);
        #[expect(clippy::cast_precision_loss, reason = "a report has some twenty lines")]
        metrics::gauge!(NOT_ENFORCED_GAUGE, "plugin" => name.to_string()).set(lacking.len() as f64);
        let told =
            self.status.last_start.as_ref().map(|start| not_enforced(&start.report)).unwrap_or_default();
        for text in lacking.iter().filter(|text| !told.contains(text)) {
            self.common.logs.note(self.slot.index, Level::Warn, sanitized!("not enforced: {}", text));
        }
    }

    pub(super) fn report_exit(&self, how: &Sanitized) {
        self.common.logs.note(self.slot.index, Level::Info, sanitized!("the process ended: {}", how));
        let uptime = self.running.as_ref().map(|running| running.since.elapsed()).unwrap_or_default();
        // A draining process was asked to end.
        let planned = self.machine.state() == State::Draining;
        self.common.events.emit(
            self.event(EventKind::PluginExited, how.clone())
                .field("exit", how)
                .field("uptime_ms", uptime.as_millis())
                .field("planned", planned),
        );
    }

    /// Reported before the process is killed for it, and only then: an earlier process, or one that is
    /// draining, is not killed.
    pub(super) fn report_ignored_deadline(&self, generation: u64, report: &ProcessReport) {
        let ProcessReport::IgnoredDeadline { which, patience } = report else { return };
        let up = matches!(self.machine.state(), State::Ready | State::Unhealthy);
        if !up || generation != self.machine.generation() {
            return;
        }
        let text = sanitized!(
            "it ignored the deadline of {} for {}: it is killed",
            which,
            format_duration(*patience)
        );
        tracing::warn!(plugin = %self.common.spec.name, instance = self.slot.index, "{text}");
        self.common.logs.note(self.slot.index, Level::Warn, text);
    }

    /// Reported before the process is killed for it, and only then.
    pub(super) fn report_flood(&self, generation: u64, how: &Sanitized) {
        let up = matches!(self.machine.state(), State::Ready | State::Unhealthy);
        if !up || generation != self.machine.generation() {
            return;
        }
        let text = sanitized!("its connection was closed: {}: it is killed", how);
        tracing::warn!(plugin = %self.common.spec.name, instance = self.slot.index, "{text}");
        self.common.logs.note(self.slot.index, Level::Warn, text);
    }

    pub(super) fn report_failed_check(&self, verdict: &CheckResult, failed_before: u32) {
        let cause = match verdict {
            CheckResult::Serving => return,
            CheckResult::NotServing => "it says that it does not serve".into(),
            CheckResult::NoAnswer { cause, .. } => cause.clone(),
        };
        // A check that neither counted nor ended the instance was excused by calls in flight.
        let excused =
            self.machine.state() != State::Draining && self.machine.failed_checks() == failed_before;
        self.common.events.emit(
            self.event(EventKind::HealthFailed, sanitized!("health check failed: {}", cause))
                .field("excused", excused),
        );
    }

    fn event(&self, kind: EventKind, message: Sanitized) -> NewEvent {
        let event = NewEvent::new(kind, message).plugin(&self.common.spec.name).instance(self.slot.index);
        match self.common.role_label() {
            Some(part) => event.field("replacement", part),
            None => event,
        }
    }
}
