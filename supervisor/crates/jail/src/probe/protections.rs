//! Derives each protection from the facts.

use rustix::thread::CapabilitySet;

use super::facts::MachineFacts;
use super::feature_probe::{FeatureError, FeatureProbe};
use super::protection_support::ProtectionSupport;
use super::tier::{OWN_UID_CAPABILITIES, Tier};
use crate::network::PORTS_LANDLOCK_ABI;
use crate::report::{
    BOUNDING_SET, CAPABILITIES, CPU_SHARE, FILESYSTEM, KEYRING, LANDLOCK, MEMORY_GROUP, NAMESPACES, NETWORK,
    NO_NEW_PRIVS, OWN_UID, PROCESS_COUNT, PROCESS_TREE, RLIMITS, SYSTEM_CALLS, Status,
};
use crate::stage::limits;

/// The Landlock version that the built-in profiles request: that of Linux 6.1, Debian 12's. A profile that
/// requests more is refused by name when a program is started with it.
const LANDLOCK_ABI_REQUESTED: u32 = 2;

/// The advice where a container's own confinement is the likely reason.
const CONTAINER_ADVICE: &str =
    "in a container: allow unshare and mount in its seccomp profile, or give it CAP_SYS_ADMIN";

/// How to get what only root has. If this is root already, or has some of its capabilities: the missing
/// capabilities.
fn root_advice(facts: &MachineFacts) -> String {
    let needs = OWN_UID_CAPABILITIES | CapabilitySet::SYS_ADMIN;
    if facts.uid != 0 && !facts.held.intersects(needs) {
        return "run the supervisor as root".into();
    }
    let lacking: Vec<_> =
        needs.difference(facts.held).iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
    match lacking.as_slice() {
        [] => CONTAINER_ADVICE.into(),
        lacking => format!("give the supervisor {}", lacking.join(", ")),
    }
}

pub(super) fn for_machine(facts: &MachineFacts, tier: Tier) -> Vec<ProtectionSupport> {
    let trial = facts.features.as_ref();
    let isolated = tier.accepted_by_enforce();
    vec![
        own_uid(facts, tier),
        enforced(NO_NEW_PRIVS, "every kernel that Talon runs on has it"),
        enforced(CAPABILITIES, "every capability set is emptied"),
        bounding_set(facts, isolated),
        ProtectionSupport {
            name: RLIMITS,
            status: limits::status(&facts.lowered),
            provided_by: "open files, file size, locked memory, data, core dumps".into(),
            remedy: if facts.lowered.is_empty() { "" } else { "raise the supervisor's own limits" }.into(),
        },
        process_count(facts, tier),
        process_tree(facts, tier, isolated),
        probed(NAMESPACES, &namespaces(trial), namespaces_by(trial), facts),
        probed(FILESYSTEM, &filesystem(trial), "a private root of its own".into(), facts),
        landlock(facts),
        probed(NETWORK, &namespace(trial, "net"), network_by(trial), facts),
        system_calls(facts),
        memory_group(facts, isolated),
        cpu_share(facts),
        keyring(facts, isolated),
    ]
}

fn enforced(name: &'static str, by: impl Into<String>) -> ProtectionSupport {
    ProtectionSupport { name, status: Status::Enforced, provided_by: by.into(), remedy: String::new() }
}

fn stand_in(name: &'static str, how: impl Into<String>, remedy: impl Into<String>) -> ProtectionSupport {
    ProtectionSupport {
        name,
        status: Status::StandIn(how.into()),
        provided_by: String::new(),
        remedy: remedy.into(),
    }
}

fn missing(name: &'static str, why: impl Into<String>, remedy: impl Into<String>) -> ProtectionSupport {
    ProtectionSupport {
        name,
        status: Status::Missing(why.into()),
        provided_by: String::new(),
        remedy: remedy.into(),
    }
}

fn own_uid(facts: &MachineFacts, tier: Tier) -> ProtectionSupport {
    let uid = facts.uid;
    match tier {
        Tier::RootCgroup | Tier::Root => enforced(OWN_UID, "a uid of sandbox.uid_range for each plugin"),
        Tier::UserNamespaces => {
            let how = format!("plugins share uid {uid}; namespaces and filters keep them apart");
            stand_in(OWN_UID, how, root_advice(facts))
        }
        Tier::Bare | Tier::None if facts.held.contains(OWN_UID_CAPABILITIES) => {
            enforced(OWN_UID, "a uid of sandbox.uid_range for each plugin")
        }
        Tier::Bare | Tier::None => missing(OWN_UID, format!("plugins share uid {uid}"), root_advice(facts)),
    }
}

fn bounding_set(facts: &MachineFacts, isolated: bool) -> ProtectionSupport {
    // The process that makes a user namespace has all capabilities in it.
    let in_user_namespace = facts.features.as_ref().is_ok_and(|trial| trial.in_user_namespace);
    if facts.held.contains(CapabilitySet::SETPCAP) || (isolated && in_user_namespace) {
        enforced(BOUNDING_SET, "emptied")
    } else {
        let how = "kept without CAP_SETPCAP; no-new-privs keeps it from being of use";
        stand_in(BOUNDING_SET, how, "add CAP_SETPCAP to the service's capabilities")
    }
}

fn process_count(facts: &MachineFacts, tier: Tier) -> ProtectionSupport {
    match tier {
        Tier::RootCgroup | Tier::Root => enforced(PROCESS_COUNT, "counted for its uid"),
        Tier::UserNamespaces if facts.uid != 0 => enforced(PROCESS_COUNT, "counted for its user namespace"),
        Tier::UserNamespaces => {
            stand_in(PROCESS_COUNT, "the kernel exempts root from the limit", root_advice(facts))
        }
        Tier::Bare | Tier::None if facts.held.contains(OWN_UID_CAPABILITIES) => {
            enforced(PROCESS_COUNT, "counted for its uid")
        }
        Tier::Bare | Tier::None => missing(PROCESS_COUNT, "its uid is shared", root_advice(facts)),
    }
}

fn process_tree(facts: &MachineFacts, tier: Tier, isolated: bool) -> ProtectionSupport {
    match &facts.pidfd {
        Err(why) => {
            missing(PROCESS_TREE, format!("no process descriptors: {why}"), "boot Linux 5.9 or newer")
        }
        Ok(()) if isolated => enforced(PROCESS_TREE, "ends with its pid namespace"),
        Ok(()) if tier < Tier::None && facts.held.contains(OWN_UID_CAPABILITIES) => {
            enforced(PROCESS_TREE, "ended by its monitor")
        }
        Ok(()) => {
            stand_in(PROCESS_TREE, "a plugin of the same uid could kill its monitor", root_advice(facts))
        }
    }
}

/// A protection by the result of the probe, with advice that fits the reason.
fn probed(
    name: &'static str,
    tried: &Result<(), FeatureError>,
    by: String,
    facts: &MachineFacts,
) -> ProtectionSupport {
    let Err(why) = tried else { return enforced(name, by) };
    let remedy = match (&facts.features, facts.userns_switch) {
        (Err(_), _) => "see the log, and please report this".to_owned(),
        (Ok(_), Some(switch)) => format!("{switch}; or {}", root_advice(facts)),
        (Ok(_), None) if facts.uid == 0 => root_advice(facts),
        (Ok(_), None) => format!("{}; {CONTAINER_ADVICE}", root_advice(facts)),
    };
    missing(name, why.to_string(), remedy)
}

type ProbeRef<'t> = Result<&'t FeatureProbe, &'t FeatureError>;

fn namespaces(trial: ProbeRef<'_>) -> Result<(), FeatureError> {
    let trial = trial.map_err(Clone::clone)?;
    trial.user.clone().map_err(|why| why.within("no user namespace"))?;
    let lacking: Vec<String> = trial
        .namespaces
        .iter()
        .filter_map(|(kind, tried)| Some(format!("no {kind} namespace: {}", tried.as_ref().err()?)))
        .collect();
    if lacking.is_empty() { Ok(()) } else { Err(FeatureError::new(lacking.join("; "))) }
}

fn namespaces_by(trial: ProbeRef<'_>) -> String {
    match trial {
        Ok(trial) if trial.in_user_namespace => "mount, pid, ipc, uts, cgroup and net in a user namespace",
        _ => "mount, pid, ipc, uts, cgroup and net, made as root",
    }
    .to_owned()
}

fn filesystem(trial: ProbeRef<'_>) -> Result<(), FeatureError> {
    namespace(trial, "mount")?;
    let trial = trial.map_err(Clone::clone)?;
    trial.tmpfs.clone().map_err(|why| why.within("no tmpfs"))?;
    trial.proc.clone().map_err(|why| why.within("no /proc of its own"))
}

fn namespace(trial: ProbeRef<'_>, kind: &str) -> Result<(), FeatureError> {
    let trial = trial.map_err(Clone::clone)?;
    trial.namespace(kind).map_err(|why| why.within(&format!("no {kind} namespace")))
}

fn network_by(trial: ProbeRef<'_>) -> String {
    match trial.map(|trial| &trial.loopback) {
        Ok(Err(why)) => format!(
            "none and full; no loopback, and proxy for programs that know TALON_PROXY_SOCKET alone ({why}: \
             CAP_NET_ADMIN is needed, and CAP_NET_BIND_SERVICE for proxy)"
        ),
        _ => match trial.map(|trial| &trial.low_ports) {
            Ok(Err(why)) => format!(
                "none, loopback and full; proxy for programs that know TALON_PROXY_SOCKET alone ({why}: \
                 CAP_NET_BIND_SERVICE is needed)"
            ),
            _ => "none, loopback, proxy and full".into(),
        },
    }
}

/// Lists what each version of Landlock added that a profile can use.
fn landlock(facts: &MachineFacts) -> ProtectionSupport {
    match &facts.landlock {
        Ok(abi) if *abi < LANDLOCK_ABI_REQUESTED => missing(
            LANDLOCK,
            format!("the kernel has ABI {abi}, profiles ask {LANDLOCK_ABI_REQUESTED}"),
            "boot Linux 5.19 or newer",
        ),
        Ok(abi) => {
            let mut covers = vec!["files"];
            let added = [(PORTS_LANDLOCK_ABI, "TCP ports"), (6, "abstract sockets, signals")];
            covers.extend(added.into_iter().filter(|(from, _)| abi >= from).map(|(_, what)| what));
            enforced(LANDLOCK, format!("ABI {abi}: {}", covers.join(", ")))
        }
        Err(why) => missing(
            LANDLOCK,
            why.to_string(),
            "boot with landlock among lsm=; in a container: allow the landlock calls",
        ),
    }
}

fn system_calls(facts: &MachineFacts) -> ProtectionSupport {
    let filter = match &facts.features {
        Ok(trial) => trial.filter.clone(),
        Err(why) => Err(why.clone()),
    };
    match filter {
        Ok(()) if facts.actions.iter().any(|action| action == "user_notif") => {
            enforced(SYSTEM_CALLS, "seccomp filters, with learn mode")
        }
        Ok(()) => enforced(SYSTEM_CALLS, "seccomp filters, without learn mode (Linux 5.0)"),
        Err(why) => missing(SYSTEM_CALLS, why.to_string(), "boot a kernel with CONFIG_SECCOMP_FILTER"),
    }
}

fn memory_group(facts: &MachineFacts, isolated: bool) -> ProtectionSupport {
    match &facts.cgroup_controllers {
        Ok(controllers) => enforced(MEMORY_GROUP, format!("a cgroup of its own: {}", controllers.join(", "))),
        Err(no) if isolated => {
            stand_in(MEMORY_GROUP, format!("{}; its memory is watched instead", no.why), no.remedy.as_str())
        }
        Err(no) => {
            missing(MEMORY_GROUP, format!("{}; only each process is limited", no.why), no.remedy.as_str())
        }
    }
}

fn cpu_share(facts: &MachineFacts) -> ProtectionSupport {
    match &facts.cgroup_controllers {
        Ok(controllers) if controllers.contains(&"cpu") => {
            enforced(CPU_SHARE, "the cgroup's share of the cores")
        }
        Ok(_) => stand_in(
            CPU_SHARE,
            "the cgroup lacks the controller cpu; nice is set instead",
            "delegate the controller cpu as well",
        ),
        Err(no) => stand_in(CPU_SHARE, format!("{}; nice is set instead", no.why), no.remedy.as_str()),
    }
}

/// A session's keys are private to it. A uid's keys are private if the uid is, or if a user namespace counts
/// them separately.
fn keyring(facts: &MachineFacts, isolated: bool) -> ProtectionSupport {
    let in_user_namespace = facts.features.as_ref().is_ok_and(|trial| trial.in_user_namespace);
    if facts.held.contains(OWN_UID_CAPABILITIES) || (isolated && in_user_namespace) {
        enforced(KEYRING, "a session keyring of its own")
    } else {
        let how = format!("the keyring of uid {} is shared", facts.uid);
        stand_in(KEYRING, how, root_advice(facts))
    }
}
