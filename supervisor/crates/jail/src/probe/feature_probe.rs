//! Probes kernel features where that is harmless: a child of our own image makes namespaces and filters for
//! itself, reports the results, and ends. The kernel's sysctls are no proof: a container's filter, a security
//! module or a limit can still refuse.
//!
//! It must be a separate process, since all of this is irreversible, and single-threaded, since a process
//! with more threads cannot make a user namespace.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio, exit};
use std::time::{Duration, Instant};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetStatus,
};
use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};
use rustix::process::{WaitOptions, getegid, geteuid, waitpid};
use rustix::thread::{CapabilitySet, capabilities, set_no_new_privs};
use serde::{Deserialize, Serialize};

use crate::image::Stage;
use crate::sys::{self, ForkSide};

/// The child's first argument, by which [`crate::become_stage_if_asked`] recognizes it.
pub(crate) const FEATURE_PROBE_NAME: &str = "talon-jail-trial";

/// How long the child may take. It needs some milliseconds. If it takes five seconds, the machine cannot
/// start plugins either, and the features count as missing.
const FEATURE_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest answer that is read; it contains a dozen short texts.
const ANSWER_MAX_BYTES: u64 = 64 << 10;

/// Why a feature cannot be used here: the kernel's reason, or why it was not tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
#[serde(transparent)]
pub(crate) struct FeatureError(String);

impl FeatureError {
    pub(super) fn new(reason: impl std::fmt::Display) -> Self {
        Self(reason.to_string())
    }

    /// The same, with what was tried in front.
    pub(super) fn within(&self, what: &str) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

/// Success, or why not.
type ProbeResult = Result<(), FeatureError>;

/// The results of the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FeatureProbe {
    /// Whether everything else was tried inside a user namespace, which is necessary without CAP_SYS_ADMIN.
    pub(crate) in_user_namespace: bool,
    /// A user namespace that maps our own uid.
    pub(crate) user: ProbeResult,
    /// The other namespaces by name, in the order in which they are made.
    pub(crate) namespaces: Vec<(String, ProbeResult)>,
    /// A loopback interface that can be brought up in a new network namespace.
    pub(crate) loopback: ProbeResult,
    /// A port below 1024 there, where the egress proxy listens for a plugin.
    pub(crate) low_ports: ProbeResult,
    /// A `/proc` for a new pid namespace.
    pub(crate) proc: ProbeResult,
    /// A tmpfs.
    pub(crate) tmpfs: ProbeResult,
    /// An enforced Landlock rule set.
    pub(crate) landlock: ProbeResult,
    /// A loaded seccomp filter.
    pub(crate) filter: ProbeResult,
}

impl FeatureProbe {
    /// Whether a program can be separated from the machine.
    pub(super) fn isolates(&self) -> bool {
        self.failures().next().is_none()
    }

    /// What is missing for that, each with the kernel's reason.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let namespaces = self.namespaces.iter().map(|(name, tried)| (name.as_str(), tried));
        let all = [("user namespace", &self.user)].into_iter().chain(namespaces);
        all.chain([("/proc", &self.proc), ("tmpfs", &self.tmpfs)])
            .filter_map(|(name, tried)| Some((name, tried.as_ref().err()?.0.as_str())))
    }

    /// Whether one kind of namespace can be made.
    pub(super) fn namespace(&self, name: &str) -> ProbeResult {
        self.user.clone()?;
        let found = self.namespaces.iter().find(|(kind, _)| kind == name);
        found.map_or_else(|| Err(FeatureError::new("not tried")), |(_, tried)| tried.clone())
    }
}

/// Starts the child and reads its answer. Blocks for [`FEATURE_PROBE_TIMEOUT`] at most.
pub(super) fn run(stage: &Stage) -> Result<FeatureProbe, FeatureError> {
    let child = stage
        .command(FEATURE_PROBE_NAME)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| FeatureError::new(error).within("cannot start a trial"))?;
    let mut child = ReapOnDrop(child);
    let answer = read_answer(&mut child.0)
        .map_err(|error| FeatureError::new(error).within("cannot read the answer of the trial"))?;
    serde_json::from_slice(&answer)
        .map_err(|error| FeatureError::new(error).within("the trial ended half-way"))
}

/// Kills and reaps the child when dropped.
struct ReapOnDrop(Child);

impl Drop for ReapOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read_answer(child: &mut Child) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + FEATURE_PROBE_TIMEOUT;
    let mut pipe = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.take(ANSWER_MAX_BYTES);
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok();
        let mut polled = [PollFd::from_borrowed_fd(pipe.get_ref().as_fd(), PollFlags::IN)];
        if retry_on_intr(|| poll(&mut polled, left.as_ref()))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match pipe.read(&mut piece)? {
            0 => return Ok(answer),
            length => answer.extend_from_slice(&piece[..length]),
        }
    }
}

/// The main function of the child.
pub(crate) fn become_feature_probe() -> ! {
    let code = match sys::close_from(3).and_then(|()| {
        let answer = serde_json::to_vec(&probe_features())?;
        io::stdout().write_all(&answer)
    }) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    exit(code);
}

fn probe_features() -> FeatureProbe {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let in_user_namespace = !held.contains(CapabilitySet::SYS_ADMIN);
    let user = if in_user_namespace { own_user_namespace() } else { Ok(()) };
    let namespaces =
        NAMESPACES.iter().map(|(name, flag)| ((*name).to_owned(), unshare(*flag).map_err(FeatureError::new)));
    let namespaces: Vec<_> = namespaces.collect();
    // Mounts only in our own mount namespace, from which none propagate to the host's.
    let own_mounts = namespaces.iter().any(|(name, tried)| name == "mount" && tried.is_ok());
    let mounts = || -> ProbeResult {
        if !own_mounts {
            return Err(FeatureError::new("no mount namespace of its own"));
        }
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(FeatureError::new)
    };
    let proc = mounts().and_then(|()| own_proc());
    let tmpfs = mounts().and_then(|()| mount_over_proc("tmpfs"));
    let own_network = namespaces.iter().any(|(name, tried)| name == "net" && tried.is_ok());
    let loopback = if own_network {
        sys::network::bring_loopback_up().map_err(FeatureError::new)
    } else {
        // Not in the host's own network namespace.
        Err(FeatureError::new("no net namespace of its own"))
    };
    let low_ports = loopback.clone().and_then(|()| bind_low_port());
    let filters = set_no_new_privs(true).map_err(FeatureError::new);
    FeatureProbe {
        in_user_namespace,
        user,
        namespaces,
        loopback,
        low_ports,
        proc,
        tmpfs,
        landlock: filters.clone().and_then(|()| rules()),
        filter: filters.and_then(|()| filter()),
    }
}

fn bind_low_port() -> ProbeResult {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let https = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 443);
    socket.and_then(|socket| bind(&socket, &https)).map_err(FeatureError::new)
}

const NAMESPACES: &[(&str, CloneFlags)] = &[
    ("mount", CloneFlags::CLONE_NEWNS),
    ("pid", CloneFlags::CLONE_NEWPID),
    ("ipc", CloneFlags::CLONE_NEWIPC),
    ("uts", CloneFlags::CLONE_NEWUTS),
    ("cgroup", CloneFlags::CLONE_NEWCGROUP),
    ("net", CloneFlags::CLONE_NEWNET),
];

/// A user namespace that maps only our own uid and gid. Without a map every call in it would fail.
fn own_user_namespace() -> ProbeResult {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(FeatureError::new)?;
    let write = |file: &str, content: String| {
        std::fs::write(format!("/proc/self/{file}"), content)
            .map_err(|error| FeatureError::new(error).within(file))
    };
    write("setgroups", "deny".into())?;
    write("gid_map", format!("{gid} {gid} 1"))?;
    write("uid_map", format!("{uid} {uid} 1"))
}

/// A mounted proc shows the pid namespace of the process that mounts it; only a child is in the new one.
fn own_proc() -> ProbeResult {
    match sys::fork().map_err(FeatureError::new)? {
        ForkSide::Child => {
            let errno = match mount_over_proc("proc") {
                Ok(()) => 0,
                Err(_) => 1,
            };
            exit(errno);
        }
        ForkSide::Parent(child) => {
            let ended =
                retry_on_intr(|| waitpid(Some(child), WaitOptions::empty())).map_err(FeatureError::new)?;
            match ended.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                _ => Err(FeatureError::new("it cannot be mounted (a container may hide parts of its own)")),
            }
        }
    }
}

/// Mounts over a directory that exists on every machine; this is our own mount namespace.
fn mount_over_proc(kind: &str) -> ProbeResult {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(kind, "/proc", kind, flags, None).map_err(FeatureError::new)
}

/// A rule set that forbids nothing we still do. By default the crate ignores a kernel that refuses; here it
/// is to return an error instead.
fn rules() -> ProbeResult {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1) & AccessFs::Execute)
        .and_then(|rules| rules.create())
        .and_then(|rules| rules.restrict_self())
        .map_err(FeatureError::new)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(FeatureError::new("the kernel took it and does not enforce it")),
        _ => Ok(()),
    }
}

/// A filter that lets everything through.
fn filter() -> ProbeResult {
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let allow = seccompiler::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    seccompiler::apply_filter(&[allow]).map_err(FeatureError::new)
}
