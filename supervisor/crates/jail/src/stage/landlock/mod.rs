//! Landlock: restricts once more what the program may do with the files that it sees, and as far as the
//! kernel supports it, TCP ports, abstract sockets and signals.
//!
//! Its rules are derived from the same view as the private root, but are independent of it: if a mount is
//! wrong, or there are no namespaces at all, they still hold. They bind everything that the program starts,
//! and cannot be loosened. Their limits:
//!
//! - They restrict opening and executing. Memory may be mapped executable from a file that may only be read,
//!   so that `ld.so FILE` runs it; in the private root the mount forbids that (noexec).
//! - Rights of a directory apply to everything below it: what is writable below an executable directory may
//!   be executed too, as far as Landlock is concerned.
//! - Sockets with a path are not covered before ABI 9 (Linux 7.1), and no mount, read-only or not, keeps a
//!   program from connecting to one that it sees. UDP is not covered by any version.
//!
//! The library's default is best effort, which reports success on any kernel. Here every right is a hard
//! requirement, and afterwards something is tried that must fail.

mod probe;
mod rules;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset, RulesetAttr as _,
    RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use super::network;
use super::request::Plan;
use super::step_error::StepError;
use crate::network::{Network, PORTS_LANDLOCK_ABI};
use crate::report::Status;
use crate::spec::Isolation;
use crate::sys;

/// The lowest useful ABI, which Debian 12's kernel offers (Linux 5.19). Before it, files could be linked and
/// renamed only inside one directory, which breaks package caches of every kind.
const MIN_ABI: u32 = 2;

/// Since this ABI truncating is covered (Linux 6.2).
const TRUNCATE_ABI: u32 = 3;
/// Since this ABI device commands (ioctl) are covered (Linux 6.10).
const IOCTL_ABI: u32 = 5;
/// Since this ABI abstract sockets and signals are covered (Linux 6.12).
const SCOPES_ABI: u32 = 6;
/// Since this ABI logging of denials can be configured (Linux 6.15).
const LOG_ABI: u32 = 7;
/// Since this ABI connecting to sockets with a path is covered (Linux 7.1).
const SOCKETS_ABI: u32 = 9;

/// Restricts this process irrevocably to the rules of its view and network.
pub(super) fn restrict(plan: &Plan) -> Result<Option<Status>, StepError> {
    let Some(isolation) = plan.isolation() else { return Ok(Some(Status::Missing("not asked for".into()))) };
    let abi = kernel_abi()?;
    check_abi(abi, isolation)?;

    let network = network::effective(plan, isolation);
    let ruleset = ruleset(abi, network).map_err(|error| failed(&error))?;
    let (ruleset, granted) = rules::files(ruleset, library_abi(abi), plan, isolation)?;
    let mut ruleset = ports(ruleset, network).map_err(|error| failed(&error))?;
    if abi >= LOG_ABI {
        // Our own self-test is no attack and should not be in the audit log at each start.
        ruleset = ruleset.log_same_exec(false).map_err(|error| failed(&error))?;
    }
    let probes = probe::choose(&granted, plan.private.get().is_some())?;
    let restriction = ruleset.restrict_self().map_err(|error| failed(&error))?;
    if restriction.ruleset != RulesetStatus::FullyEnforced || !restriction.no_new_privs {
        return Err(StepError::new(format!("it holds in part only: {restriction:?} (please report this)")));
    }
    probe::prove(&probes)?;
    Ok(Some(status(abi, isolation)))
}

/// The kernel's ABI version.
fn kernel_abi() -> Result<u32, StepError> {
    let error = match sys::landlock_abi() {
        Ok(abi) => return Ok(u32::try_from(abi).unwrap_or(0)),
        Err(error) => error,
    };
    Err(match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => StepError::new(
            "the kernel has it, but not switched on (add `landlock` to the kernel parameter lsm=, or set \
             sandbox.mode to best-effort)",
        ),
        Some(libc::ENOSYS) => StepError::new(
            "the kernel has no Landlock, or a filter hides it (use Linux 5.19 or newer with \
             CONFIG_SECURITY_LANDLOCK; in a container, allow the landlock calls)",
        ),
        _ => StepError::io("the kernel does not say what it offers", &error, FILTER_ADVICE),
    })
}

/// The advice when a kernel that has Landlock refuses it.
const FILTER_ADVICE: &str = "a filter is in the way: allow landlock_create_ruleset, landlock_add_rule and \
                             landlock_restrict_self in the service's SystemCallFilter or the container";

/// Checks that the kernel supports what was requested.
fn check_abi(abi: u32, isolation: &Isolation) -> Result<(), StepError> {
    let profile = &isolation.profile;
    if abi < profile.landlock_abi {
        Err(StepError::new(format!(
            "kernel has ABI {abi}, profile `{}` asks {} (use a newer kernel, or another profile)",
            profile.name, profile.landlock_abi
        )))
    } else if isolation.network.lists_ports() && abi < PORTS_LANDLOCK_ABI {
        Err(StepError::new(format!(
            "kernel has ABI {abi}, a list of ports asks {PORTS_LANDLOCK_ABI} (use Linux 6.7 or newer, or allow every port)"
        )))
    } else if abi < MIN_ABI {
        Err(StepError::new(format!(
            "kernel has ABI {abi}, every profile asks {MIN_ABI} (use Linux 5.19 or newer, or set sandbox.mode \
             to best-effort)"
        )))
    } else {
        Ok(())
    }
}

/// The ABI that both the kernel and the library support.
fn library_abi(abi: u32) -> ABI {
    ABI::from(i32::try_from(abi).unwrap_or(i32::MAX))
}

/// An empty rule set, which forbids everything that the kernel can forbid.
fn ruleset(abi: u32, network: &Network) -> Result<RulesetCreated, RulesetError> {
    let known = library_abi(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(known))?;
    let (connect, bind) = match network {
        // An empty network namespace forbids it too; this also works without one.
        Network::None => (true, true),
        Network::Loopback => (false, false),
        Network::Host { connect, bind } => (connect.is_some(), bind.is_some()),
    };
    if connect && abi >= PORTS_LANDLOCK_ABI {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    if bind && abi >= PORTS_LANDLOCK_ABI {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    if abi >= SCOPES_ABI {
        ruleset = ruleset.scope(Scope::from_all(known))?;
    }
    ruleset.create()
}

/// Adds rules for the listed ports. Port 0, for which the kernel chooses a port to listen on, is treated like
/// any other.
fn ports(mut ruleset: RulesetCreated, network: &Network) -> Result<RulesetCreated, RulesetError> {
    let Network::Host { connect, bind } = network else { return Ok(ruleset) };
    for port in connect.iter().flatten() {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    for port in bind.iter().flatten() {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
    }
    Ok(ruleset)
}

fn failed(error: &RulesetError) -> StepError {
    StepError::new(format!("{error} ({FILTER_ADVICE})"))
}

/// What is in force, on a kernel with the required ABI.
fn status(abi: u32, isolation: &Isolation) -> Status {
    let ports = matches!(isolation.network, Network::None).then_some((PORTS_LANDLOCK_ABI, "TCP ports"));
    let lacking: Vec<_> = [
        Some((TRUNCATE_ABI, "truncating")),
        ports,
        Some((IOCTL_ABI, "device commands")),
        Some((SCOPES_ABI, "abstract sockets and signals")),
    ]
    .into_iter()
    .flatten()
    .filter(|(since, _)| abi < *since)
    .map(|(_, what)| what)
    .collect();
    let mut texts = Vec::new();
    if !lacking.is_empty() {
        let lacking = lacking.join(", ");
        texts.push(format!("{lacking} are left to the other layers (Linux 6.12 covers them)"));
    }
    if isolation.view.may_hold_sockets && abi < SOCKETS_ABI {
        texts.push("sockets below what it may read can be connected to (Linux 7.1 covers that)".to_owned());
    }
    if texts.is_empty() {
        return Status::Enforced;
    }
    Status::StandIn(format!("kernel has ABI {abi}: {}", texts.join("; ")))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
