//! Changes to the program's own uid and gid.

use nix::unistd::{Gid, Uid, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid};
use rustix::thread::CapabilitySet;

use super::capabilities;
use super::request::Plan;
use super::step_error::StepError;
use crate::identity::Identity;
use crate::report::Status;
use crate::spec::Mode;

const ADVICE: &str = "run as root, or set sandbox.mode to best-effort";

/// The identity of the program, or why it keeps ours. Valid before and after the change.
pub(super) fn assigned(plan: &Plan) -> Result<Identity, KeepsUid> {
    let Some(identity) = plan.spec.identity else { return Err(KeepsUid::NotRequested) };
    if getresuid().is_ok_and(|now| now.real.as_raw() == identity.uid) {
        // The change has been made, and the right to make it is gone. (The supervisor's own uid is refused as
        // an identity before any stage starts.)
        return Ok(identity);
    }
    let held =
        rustix::thread::capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
    if !held.contains(CapabilitySet::SETUID | CapabilitySet::SETGID) {
        return Err(KeepsUid::NotPermitted(StepError::errno(
            &format!("cannot become uid {}", identity.uid),
            libc::EPERM,
            ADVICE,
        )));
    }
    if !held.contains(CapabilitySet::KILL) {
        return Err(KeepsUid::NotPermitted(StepError::new(format!(
            "cannot give uid {}: without CAP_KILL it could not be ended (add CAP_KILL to the service's \
             capabilities, or set sandbox.mode to best-effort)",
            identity.uid
        ))));
    }
    Ok(identity)
}

/// Why a program keeps the supervisor's uid.
pub(super) enum KeepsUid {
    NotRequested,
    NotPermitted(StepError),
}

/// Changes all ids irrevocably. A change that fails half-way is fatal in every mode, since the process would
/// have ids that were never requested.
pub(super) fn switch_ids(plan: &Plan) -> Result<Option<Status>, StepError> {
    let identity = match assigned(plan) {
        Ok(identity) => identity,
        Err(KeepsUid::NotRequested) if plan.namespaces.get().is_some_and(|held| held.user) => {
            let uid = Uid::current();
            let how = "namespaces and filters keep them apart (run the supervisor as root)";
            return Ok(Some(Status::StandIn(format!("plugins share uid {uid}; {how}"))));
        }
        Err(KeepsUid::NotRequested) => return Ok(Some(Status::Missing(shared_uid()))),
        Err(KeepsUid::NotPermitted(error)) if plan.spec.mode == Mode::Enforce => return Err(error),
        Err(KeepsUid::NotPermitted(error)) => return Ok(Some(Status::Missing(error.reason))),
    };
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    setgroups(&[])
        .map_err(|errno| StepError::errno("cannot give up supplementary groups", errno as i32, ADVICE))?;
    setresgid(gid, gid, gid)
        .map_err(|errno| StepError::errno(&format!("cannot become gid {gid}"), errno as i32, ADVICE))?;
    setresuid(uid, uid, uid)
        .map_err(|errno| StepError::errno(&format!("cannot become uid {uid}"), errno as i32, ADVICE))?;
    // At this change the kernel removes root's capabilities, but not those of a supervisor that is not root:
    // with them the ids could be changed back until the step `capabilities`.
    capabilities::keep_only(CapabilitySet::empty())?;
    verify(uid, gid)?;
    Ok(Some(Status::Enforced))
}

fn shared_uid() -> String {
    let uid = Uid::current();
    if uid.is_root() {
        "it runs as uid 0, the supervisor's own (set sandbox.uid_range to a range of unused uids)".into()
    } else {
        format!("it runs as uid {uid} like the supervisor and its other plugins (run the supervisor as root)")
    }
}

/// Reads all ids back, and tries to become root.
fn verify(uid: Uid, gid: Gid) -> Result<(), StepError> {
    let users = getresuid().is_ok_and(|now| [now.real, now.effective, now.saved] == [uid; 3]);
    let groups = getresgid().is_ok_and(|now| [now.real, now.effective, now.saved] == [gid; 3]);
    let none = getgroups().is_ok_and(|groups| groups.is_empty());
    let (root, wheel) = (Uid::from_raw(0), Gid::from_raw(0));
    let comes_back = setresuid(root, root, root).is_ok() || setresgid(wheel, wheel, wheel).is_ok();
    if users && groups && none && !comes_back {
        Ok(())
    } else {
        Err(StepError::new(format!(
            "the change to uid {uid} does not hold (ids read back: {users}/{groups}/{none}, way back to root: \
             {comes_back}); please report this"
        )))
    }
}
