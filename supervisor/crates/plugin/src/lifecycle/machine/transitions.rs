//! The ways from one state to the next.

use std::time::Duration;

use super::Machine;
use super::phase::{AfterDrain, DrainStep, Phase};
use crate::lifecycle::MachineTime;
use crate::lifecycle::event::MachineAction;

/// The interval at which a kill is repeated while something is still running. SIGKILL works the first time,
/// except for processes that were just being forked.
pub(super) const KILL_RETRY: Duration = Duration::from_secs(1);

impl Machine {
    pub(super) fn cancel_launch(&mut self, next: AfterDrain, now: MachineTime) -> Vec<MachineAction> {
        self.await_cleanup(next, now);
        vec![MachineAction::CancelLaunch]
    }

    /// Waits until the remaining processes are gone.
    pub(super) fn await_cleanup(&mut self, next: AfterDrain, now: MachineTime) {
        let until = now.saturating_add(KILL_RETRY);
        self.phase = Phase::Draining { step: DrainStep::Clearing, until, grace: Duration::ZERO, next };
    }

    pub(super) fn drain(
        &mut self,
        grace: Duration,
        next: AfterDrain,
        now: MachineTime,
    ) -> Vec<MachineAction> {
        let until = now.saturating_add(grace);
        self.phase = Phase::Draining { step: DrainStep::Calls, until, grace, next };
        vec![MachineAction::AwaitCalls]
    }

    /// Enters a later step of draining. The grace period applies twice: once to the calls in flight, once to
    /// the process, which gets half of it to shut down and half to end on SIGTERM.
    pub(super) fn drain_step(&mut self, to: DrainStep, now: MachineTime) -> Vec<MachineAction> {
        let Phase::Draining { step, until, grace, .. } = &mut self.phase else { return Vec::new() };
        let (lasts, action) = match to {
            DrainStep::Calls => (*grace, MachineAction::AwaitCalls),
            DrainStep::ShutdownRequested => (*grace / 2, MachineAction::AskToExit),
            DrainStep::Terminated => (*grace / 2, MachineAction::Terminate),
            DrainStep::Clearing => (KILL_RETRY, MachineAction::Kill),
        };
        *step = to;
        *until = now.saturating_add(lasts);
        vec![action]
    }

    /// Enters a state without a process, or starts a new one. Called only when nothing of the last process is
    /// left.
    pub(super) fn enter(&mut self, next: AfterDrain, now: MachineTime) -> Vec<MachineAction> {
        match next {
            AfterDrain::Stop => self.phase = Phase::Stopped,
            AfterDrain::Fail => self.phase = Phase::Failed,
            AfterDrain::Backoff(wait) => self.phase = Phase::Backoff { until: now.saturating_add(wait) },
            AfterDrain::Launch => {
                self.phase = Phase::Starting;
                self.generation = self.generation.wrapping_add(1);
                return vec![MachineAction::Launch { generation: self.generation }];
            }
        }
        Vec::new()
    }
}
