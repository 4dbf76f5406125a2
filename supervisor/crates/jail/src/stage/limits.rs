//! Resource limits.

use nix::unistd::Uid;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::identity;
use super::request::Plan;
use super::step::StepError;
use crate::report::Status;
use crate::spec::Limits;

/// The limits that count for each process, with the names that `ulimit` and systemd give them.
pub(crate) fn wanted(limits: &Limits) -> impl Iterator<Item = (&'static str, Resource, u64)> {
    [
        ("nofile", Resource::Nofile, Some(limits.nofile)),
        ("fsize", Resource::Fsize, Some(limits.fsize_bytes)),
        ("memlock", Resource::Memlock, Some(limits.memlock_bytes)),
        ("core", Resource::Core, Some(limits.core_bytes)),
        ("data", Resource::Data, limits.data_bytes),
    ]
    .into_iter()
    .filter_map(|(name, resource, wanted)| Some((name, resource, wanted?)))
}

/// What would be set: the wanted limit, unless our own hard one is below it.
pub(crate) fn given(resource: Resource, wanted: u64) -> u64 {
    getrlimit(resource).maximum.map_or(wanted, |hard| hard.min(wanted))
}

/// Sets everything that counts for each process.
pub(super) fn per_process(plan: &Plan) -> Result<Option<Status>, StepError> {
    let mut lowered = Vec::new();
    for (name, resource, wanted) in wanted(&plan.spec.limits) {
        lowered.extend(set(name, resource, wanted)?);
    }
    Ok(Some(status(&lowered)))
}

/// Sets how many processes and threads the uid may have. Only a uid of its own can be limited: the kernel counts
/// all that a uid runs, so that a limit on a shared one would hit by what a neighbour or the user's browser does.
pub(super) fn process_count(plan: &Plan) -> Result<Option<Status>, StepError> {
    if identity::given(plan).is_err() {
        return Ok(Some(Status::Missing(uncounted())));
    }
    let lowered = set("nproc", Resource::Nproc, plan.spec.limits.nproc)?;
    Ok(Some(status(lowered.as_slice())))
}

/// Why there is no limit on processes.
pub(crate) fn uncounted() -> String {
    let why = if Uid::current().is_root() { "the kernel exempts root" } else { "its uid is shared" };
    format!("not limited: {why} (give it a uid of its own)")
}

/// The sentence about limits that had to be lower than asked.
pub(crate) fn status(lowered: &[String]) -> Status {
    if lowered.is_empty() {
        Status::Enforced
    } else {
        Status::StandIn(format!("{}: the supervisor's own hard limits", lowered.join(", ")))
    }
}

/// Sets soft and hard; says so when it is less than wanted.
fn set(name: &str, resource: Resource, wanted: u64) -> Result<Option<String>, StepError> {
    let given = given(resource, wanted);
    let limit = Rlimit { current: Some(given), maximum: Some(given) };
    setrlimit(resource, limit).map_err(|errno| {
        StepError::errno(&format!("cannot set {name} to {given}"), errno.raw_os_error(), "")
    })?;
    Ok((given < wanted).then(|| format!("{name} {given} instead of {wanted}")))
}
