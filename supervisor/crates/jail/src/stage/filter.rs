//! Restricts the system calls of the program.

use std::fs;

use super::network;
use super::request::Plan;
use super::socket_broker;
use super::step_error::StepError;
use crate::profile::{refuse_hidden_modes, refuse_internet_sockets, refuse_unaccounted_memory};
use crate::report::Status;
use crate::sys::seccomp;
use crate::view::Access;

/// Loads the profile's filters, and reads back that they are in force. The calls made after this step must be
/// in every profile; `profile::parser::REQUIRED_CALLS` lists them.
pub(super) fn load(plan: &Plan) -> Result<Option<Status>, StepError> {
    let Some(isolation) = &plan.spec.isolation else {
        return Ok(Some(Status::Missing("not asked for".into())));
    };
    let profile = &isolation.profile;
    let Some((last, first)) = profile.filters.split_last() else {
        return Err(StepError::new(format!(
            "the profile `{}` has no filter (compile it for this machine)",
            profile.name
        )));
    };
    let failed = |error| {
        let what = format!("cannot load the filter of the profile `{}`", profile.name);
        StepError::io(
            &what,
            &error,
            "a kernel with CONFIG_SECCOMP_FILTER is needed, and a container that allows seccomp",
        )
    };
    if plan.group.is_none() {
        for filter in refuse_unaccounted_memory() {
            seccomp::load(&filter).map_err(failed)?;
        }
    }
    if isolation.view.shown.iter().any(|shown| shown.access == Access::Write) {
        seccomp::load(&refuse_hidden_modes()).map_err(failed)?;
    }
    if network::loses_loopback(plan, isolation) {
        seccomp::load(&refuse_internet_sockets()).map_err(failed)?;
    }
    socket_broker::hand_over(plan).map_err(failed)?;
    for filter in first {
        seccomp::load(filter).map_err(failed)?;
    }
    if profile.learn {
        let listener = seccomp::load_with_listener(last).map_err(failed)?;
        plan.listener
            .set(listener)
            .map_err(|_| StepError::new("the filter was loaded twice; please report this"))?;
    } else {
        seccomp::load(last).map_err(failed)?;
    }
    if is_loaded() == Some(false) {
        return Err(StepError::new(
            "the kernel took the filter, but says that there is none; please report this",
        ));
    }
    Ok(Some(if profile.learn {
        Status::StandIn("learning: calls outside the profile are let through and noted".into())
    } else {
        Status::Enforced
    }))
}

/// The kernel's status of this thread; `None` where there is no /proc.
fn is_loaded() -> Option<bool> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"))?;
    Some(mode.trim() == "2")
}
