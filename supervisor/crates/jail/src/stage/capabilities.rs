//! Drops all capabilities, and makes it impossible to regain any.

use nix::unistd::Uid;
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::request::Plan;
use super::step_error::StepError;
use crate::report::Status;

const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// Empties the bounding set, which limits what executing a file can give.
pub(super) fn drop_bounding_set(_: &Plan) -> Result<Option<Status>, StepError> {
    if !holds(CapabilitySet::SETPCAP)? {
        return Ok(Some(Status::StandIn(
            "kept, since dropping it needs CAP_SETPCAP; no-new-privs keeps it from being of use".into(),
        )));
    }
    empty_bounding_set()?;
    Ok(Some(Status::Enforced))
}

/// Drops all capabilities, and reads them back.
pub(super) fn drop_all(_: &Plan) -> Result<Option<Status>, StepError> {
    keep_only(CapabilitySet::empty())?;
    let now = capabilities(None).map_err(failed("cannot read capabilities"))?;
    if now != NO_CAPABILITIES {
        return Err(StepError::new(format!("they came back: {now:?}; please report this")));
    }
    if Uid::effective().is_root() && in_bounding_set()?.next().is_some() {
        return Err(StepError::new(
            "root gets them back by executing, as the bounding set cannot be dropped without CAP_SETPCAP \
             (add it to the service's capabilities, or set sandbox.uid_range)",
        ));
    }
    Ok(Some(Status::Enforced))
}

/// Keeps only the right to kill processes of other uids, for the monitor. Errors are ignored, since they must
/// not stop the monitor's work.
pub(super) fn keep_right_to_kill() {
    if holds(CapabilitySet::SETPCAP).unwrap_or(false) {
        let _ = empty_bounding_set();
    }
    let _ = keep_only(CapabilitySet::KILL);
}

/// Drops all capabilities except these.
pub(super) fn keep_only(remaining: CapabilitySet) -> Result<(), StepError> {
    clear_ambient_capability_set().map_err(failed("cannot clear the ambient set"))?;
    let held = capabilities(None).map_err(failed("cannot read capabilities"))?;
    let sets = CapabilitySets {
        effective: held.effective & remaining,
        permitted: held.permitted & remaining,
        ..NO_CAPABILITIES
    };
    set_capabilities(None, sets).map_err(failed("cannot drop capabilities"))
}

fn holds(capability: CapabilitySet) -> Result<bool, StepError> {
    let held = capabilities(None).map_err(failed("cannot read capabilities"))?;
    Ok(held.effective.contains(capability))
}

fn empty_bounding_set() -> Result<(), StepError> {
    for capability in in_bounding_set()? {
        remove_capability_from_bounding_set(capability).map_err(failed("cannot drop the bounding set"))?;
    }
    Ok(())
}

/// All members of the bounding set. The kernel refuses the first number without a capability, so this also
/// finds capabilities that are newer than this program.
fn in_bounding_set() -> Result<impl Iterator<Item = CapabilitySet>, StepError> {
    let mut members = Vec::new();
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => members.push(capability),
            Ok(false) => {}
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(failed("cannot read the bounding set")(errno)),
        }
    }
    Ok(members.into_iter())
}

fn failed(what: &'static str) -> impl Fn(Errno) -> StepError {
    move |errno| StepError::errno(what, errno.raw_os_error(), "")
}
