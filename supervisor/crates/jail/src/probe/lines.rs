//! Derives each protection from the facts.

use rustix::thread::CapabilitySet;

use super::Available;
use super::facts::Facts;
use super::tier::{OWN_UID_NEEDS, Tier};
use super::trial::Trial;
use crate::report::{
    BOUNDING_SET, CAPABILITIES, CPU_SHARE, FILESYSTEM, KEYRING, LANDLOCK, MEMORY_GROUP, NAMESPACES, NETWORK,
    NO_NEW_PRIVS, OWN_UID, PROCESS_COUNT, PROCESS_TREE, RLIMITS, SYSTEM_CALLS, Status,
};
use crate::stage::limits;

/// The Landlock version that the built-in profiles request: that of Linux 6.1, Debian 12's. A profile that requests
/// more is refused by name when a program is started with it.
const LANDLOCK_ASKED: u32 = 2;

/// The advice where a container's own confinement is the likely reason.
const CONTAINER: &str =
    "in a container: allow unshare and mount in its seccomp profile, or give it CAP_SYS_ADMIN";

/// How to get what only root has. If this is root already, or has some of its capabilities: the missing capabilities.
fn as_root(facts: &Facts) -> String {
    let needs = OWN_UID_NEEDS | CapabilitySet::SYS_ADMIN;
    if facts.uid != 0 && !facts.held.intersects(needs) {
        return "run the supervisor as root".into();
    }
    let lacking: Vec<_> =
        needs.difference(facts.held).iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    match lacking.as_slice() {
        [] => CONTAINER.into(),
        lacking => format!("give the supervisor {}", lacking.join(", ")),
    }
}

pub(super) fn of(facts: &Facts, tier: Tier) -> Vec<Available> {
    let trial = facts.trial.as_ref();
    let isolated = tier.accepted_by_enforce();
    vec![
        own_uid(facts, tier),
        given(NO_NEW_PRIVS, "every kernel that Talon runs on has it"),
        given(CAPABILITIES, "every capability set is emptied"),
        bounding_set(facts, isolated),
        Available {
            name: RLIMITS,
            status: limits::status(&facts.lowered),
            by: "open files, file size, locked memory, data, core dumps".into(),
            remedy: if facts.lowered.is_empty() { "" } else { "raise the supervisor's own limits" }.into(),
        },
        process_count(facts, tier),
        process_tree(facts, tier, isolated),
        tried(NAMESPACES, &namespaces(trial), namespaces_by(trial), facts),
        tried(FILESYSTEM, &filesystem(trial), "a private root of its own".into(), facts),
        landlock(facts),
        tried(NETWORK, &kind(trial, "net"), network_by(trial), facts),
        system_calls(facts),
        memory_group(facts, isolated),
        cpu_share(facts),
        keyring(facts, isolated),
    ]
}

fn given(name: &'static str, by: impl Into<String>) -> Available {
    Available { name, status: Status::Enforced, by: by.into(), remedy: String::new() }
}

fn stand_in(name: &'static str, how: impl Into<String>, remedy: impl Into<String>) -> Available {
    Available { name, status: Status::StandIn(how.into()), by: String::new(), remedy: remedy.into() }
}

fn missing(name: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> Available {
    Available { name, status: Status::Missing(why.into()), by: String::new(), remedy: remedy.into() }
}

fn own_uid(facts: &Facts, tier: Tier) -> Available {
    let uid = facts.uid;
    match tier {
        Tier::RootCgroup | Tier::Root => given(OWN_UID, "a uid of sandbox.uid_range for each plugin"),
        Tier::UserNamespaces => {
            let how = format!("plugins share uid {uid}; namespaces and filters keep them apart");
            stand_in(OWN_UID, how, as_root(facts))
        }
        Tier::Bare | Tier::None if facts.held.contains(OWN_UID_NEEDS) => {
            given(OWN_UID, "a uid of sandbox.uid_range for each plugin")
        }
        Tier::Bare | Tier::None => missing(OWN_UID, format!("plugins share uid {uid}"), as_root(facts)),
    }
}

fn bounding_set(facts: &Facts, isolated: bool) -> Available {
    // The process that makes a user namespace has all capabilities in it.
    let in_user_namespace = facts.trial.as_ref().is_ok_and(|trial| trial.in_user_namespace);
    if facts.held.contains(CapabilitySet::SETPCAP) || (isolated && in_user_namespace) {
        given(BOUNDING_SET, "emptied")
    } else {
        let how = "kept without CAP_SETPCAP; no-new-privs keeps it from being of use";
        stand_in(BOUNDING_SET, how, "add CAP_SETPCAP to the service's capabilities")
    }
}

fn process_count(facts: &Facts, tier: Tier) -> Available {
    match tier {
        Tier::RootCgroup | Tier::Root => given(PROCESS_COUNT, "counted for its uid"),
        Tier::UserNamespaces if facts.uid != 0 => given(PROCESS_COUNT, "counted for its user namespace"),
        Tier::UserNamespaces => {
            stand_in(PROCESS_COUNT, "the kernel exempts root from the limit", as_root(facts))
        }
        Tier::Bare | Tier::None if facts.held.contains(OWN_UID_NEEDS) => {
            given(PROCESS_COUNT, "counted for its uid")
        }
        Tier::Bare | Tier::None => missing(PROCESS_COUNT, "its uid is shared", as_root(facts)),
    }
}

fn process_tree(facts: &Facts, tier: Tier, isolated: bool) -> Available {
    match &facts.pidfd {
        Err(why) => {
            missing(PROCESS_TREE, format!("no process descriptors: {why}"), "boot Linux 5.9 or newer")
        }
        Ok(()) if isolated => given(PROCESS_TREE, "ends with its pid namespace"),
        Ok(()) if tier < Tier::None && facts.held.contains(OWN_UID_NEEDS) => {
            given(PROCESS_TREE, "ended by its monitor")
        }
        Ok(()) => stand_in(PROCESS_TREE, "a plugin of the same uid could kill its monitor", as_root(facts)),
    }
}

/// A protection by the result of the probe, with advice that fits the reason.
fn tried(name: &'static str, tried: &Result<(), String>, by: String, facts: &Facts) -> Available {
    let Err(why) = tried else { return given(name, by) };
    let remedy = match (&facts.trial, facts.switch) {
        (Err(_), _) => "see the log, and please report this".to_owned(),
        (Ok(_), Some(switch)) => format!("{switch}; or {}", as_root(facts)),
        (Ok(_), None) if facts.uid == 0 => as_root(facts),
        (Ok(_), None) => format!("{}; {CONTAINER}", as_root(facts)),
    };
    missing(name, why.as_str(), remedy)
}

type Trialled<'t> = Result<&'t Trial, &'t String>;

fn namespaces(trial: Trialled<'_>) -> Result<(), String> {
    let trial = trial.map_err(Clone::clone)?;
    trial.user.clone().map_err(|why| format!("no user namespace: {why}"))?;
    let lacking: Vec<String> = trial
        .namespaces
        .iter()
        .filter_map(|(kind, tried)| Some(format!("no {kind} namespace: {}", tried.as_ref().err()?)))
        .collect();
    if lacking.is_empty() { Ok(()) } else { Err(lacking.join("; ")) }
}

fn namespaces_by(trial: Trialled<'_>) -> String {
    match trial {
        Ok(trial) if trial.in_user_namespace => "mount, pid, ipc, uts, cgroup and net in a user namespace",
        _ => "mount, pid, ipc, uts, cgroup and net, made as root",
    }
    .to_owned()
}

fn filesystem(trial: Trialled<'_>) -> Result<(), String> {
    kind(trial, "mount")?;
    let trial = trial.map_err(Clone::clone)?;
    trial.tmpfs.clone().map_err(|why| format!("no tmpfs: {why}"))?;
    trial.proc.clone().map_err(|why| format!("no /proc of its own: {why}"))
}

fn kind(trial: Trialled<'_>, kind: &str) -> Result<(), String> {
    let trial = trial.map_err(Clone::clone)?;
    trial.namespace(kind).map_err(|why| format!("no {kind} namespace: {why}"))
}

fn network_by(trial: Trialled<'_>) -> String {
    match trial.map(|trial| &trial.loopback) {
        Ok(Err(why)) => format!("none and full, without loopback ({why}: CAP_NET_ADMIN is needed)"),
        _ => "none, loopback and full".into(),
    }
}

/// Lists what each version of Landlock added that a profile can use.
fn landlock(facts: &Facts) -> Available {
    match &facts.landlock {
        Ok(abi) if *abi < LANDLOCK_ASKED => missing(
            LANDLOCK,
            format!("the kernel has ABI {abi}, profiles ask {LANDLOCK_ASKED}"),
            "boot Linux 5.19 or newer",
        ),
        Ok(abi) => {
            let mut covers = vec!["files"];
            let added = [(4, "TCP ports"), (6, "abstract sockets, signals")];
            covers.extend(added.into_iter().filter(|(from, _)| abi >= from).map(|(_, what)| what));
            given(LANDLOCK, format!("ABI {abi}: {}", covers.join(", ")))
        }
        Err(why) => missing(
            LANDLOCK,
            why.as_str(),
            "boot with landlock among lsm=; in a container: allow the landlock calls",
        ),
    }
}

fn system_calls(facts: &Facts) -> Available {
    let filter = match &facts.trial {
        Ok(trial) => trial.filter.clone(),
        Err(why) => Err(why.clone()),
    };
    match filter {
        Ok(()) if facts.actions.iter().any(|action| action == "user_notif") => {
            given(SYSTEM_CALLS, "seccomp filters, with learn mode")
        }
        Ok(()) => given(SYSTEM_CALLS, "seccomp filters, without learn mode (Linux 5.0)"),
        Err(why) => missing(SYSTEM_CALLS, why, "boot a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn memory_group(facts: &Facts, isolated: bool) -> Available {
    match &facts.group {
        Ok(controllers) => given(MEMORY_GROUP, format!("a cgroup of its own: {}", controllers.join(", "))),
        Err(no) if isolated => {
            stand_in(MEMORY_GROUP, format!("{}; its memory is watched instead", no.why), no.remedy.as_str())
        }
        Err(no) => {
            missing(MEMORY_GROUP, format!("{}; only each process is limited", no.why), no.remedy.as_str())
        }
    }
}

fn cpu_share(facts: &Facts) -> Available {
    match &facts.group {
        Ok(controllers) if controllers.contains(&"cpu") => {
            given(CPU_SHARE, "the cgroup's share of the cores")
        }
        Ok(_) => stand_in(
            CPU_SHARE,
            "the cgroup lacks the controller cpu; nice is set instead",
            "delegate the controller cpu as well",
        ),
        Err(no) => stand_in(CPU_SHARE, format!("{}; nice is set instead", no.why), no.remedy.as_str()),
    }
}

/// A session's keys are private to it. A uid's keys are private if the uid is, or if a user namespace counts them
/// separately.
fn keyring(facts: &Facts, isolated: bool) -> Available {
    let in_user_namespace = facts.trial.as_ref().is_ok_and(|trial| trial.in_user_namespace);
    if facts.held.contains(OWN_UID_NEEDS) || (isolated && in_user_namespace) {
        given(KEYRING, "a session keyring of its own")
    } else {
        let how = format!("the keyring of uid {} is shared", facts.uid);
        stand_in(KEYRING, how, as_root(facts))
    }
}
