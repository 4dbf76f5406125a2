//! What this machine can enforce, reported before the first plugin starts.

use std::sync::Arc;

use crate::blocking::blocking;

/// Prefix of the text about a protection that is replaced by a weaker one.
pub const STAND_IN: &str = "only a stand-in: ";

/// Takes some milliseconds, mostly in the kernel.
pub(super) async fn probe_machine(stage: &Arc<talon_jail::Stage>) -> talon_jail::Machine {
    let stage = Arc::clone(stage);
    blocking(move || talon_jail::probe(&stage)).await
}

/// The mode of our own services' jails.
///
/// A service is our own program, so for one user's supervisor a weaker jail is better than no answer.
pub(super) fn service_mode(
    configured: talon_jail::Mode,
    for_user: bool,
    machine: &talon_jail::Machine,
) -> talon_jail::Mode {
    if configured == talon_jail::Mode::Enforce && for_user && !machine.accepted_by_enforce() {
        tracing::warn!(
            "this machine cannot jail what this user starts as sandbox.mode: enforce asks: the agent and the state \
             service run with what it can give, and plugins are refused; `talon doctor` says how to get the rest"
        );
        return talon_jail::Mode::BestEffort;
    }
    configured
}

pub(super) fn log_protections(
    machine: &talon_jail::Machine,
    mode: talon_jail::Mode,
    not_enforced: &[String],
) {
    let tier = machine.tier;
    tracing::info!(tier = tier.name(), kernel = machine.kernel, "this machine: {}", tier.describe());
    for protection in not_enforced {
        tracing::warn!("not enforced on this machine: {protection}");
    }
    match mode {
        talon_jail::Mode::Enforce if !machine.accepted_by_enforce() => tracing::error!(
            tier = tier.name(),
            "sandbox.mode is enforce, and this machine cannot give what that asks: plugins will be refused \
             (`talon doctor` says how to get it; sandbox.mode: best-effort runs them without)"
        ),
        talon_jail::Mode::Off => tracing::warn!(
            "sandbox.mode is off: plugins run without a jail, with the rights of this supervisor's user \
             (set it to enforce)"
        ),
        talon_jail::Mode::Enforce | talon_jail::Mode::BestEffort => {}
    }
}

/// Protections that are not enforced, each with the reason.
#[must_use]
pub fn not_enforced(report: &talon_jail::Report) -> Vec<String> {
    let line = |protection: &talon_jail::Protection| match &protection.status {
        talon_jail::Status::Enforced => None,
        talon_jail::Status::StandIn(how) => Some(format!("{}: {STAND_IN}{how}", protection.name)),
        talon_jail::Status::Missing(why) => Some(format!("{}: {why}", protection.name)),
    };
    report.iter().filter_map(line).collect()
}
