//! The specification of a jail: everything that the stage needs, sent to it over its control socket.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::network::{LoopbackListeners, Network};
use crate::profile::CompiledProfile;
use crate::view::View;

/// The largest encoded spec. The kernel accepts arguments and environment of 2 MiB together (a quarter of the
/// usual 8 MiB stack), and a byte needs up to four characters in the encoding. A larger spec is refused
/// before anything is started; raising this limit only moves the error to execve.
pub(crate) const SPEC_MAX_BYTES: u64 = 8 << 20;

/// One program to start and the jail around it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JailSpec {
    /// For messages: the plugin's name and instance.
    pub name: String,
    /// What is executed.
    pub program: Program,
    /// The arguments, the first of which is the program's own name.
    pub argv: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    #[serde(with = "crate::path_bytes")]
    pub cwd: PathBuf,
    /// The uid and gid to become; `None` keeps those of the supervisor (which an unprivileged one must).
    pub identity: Option<Identity>,
    /// Resource limits.
    pub limits: Limits,
    /// What to do when a protection cannot be provided.
    pub mode: Mode,
    /// What it sees and may ask the kernel for. With `None`, and with [`Mode::Off`], it uses the host's
    /// files, network and pids, which the report says.
    pub isolation: Option<Isolation>,
}

/// What separates a program from the machine that it runs on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Isolation {
    /// The files that exist for it.
    pub view: View,
    /// Where it may connect to.
    pub network: Network,
    /// Sockets of the supervisor's inside its network.
    pub listeners: LoopbackListeners,
    /// The system calls that it may make.
    pub profile: CompiledProfile,
}

/// What is executed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Program {
    /// The open file passed with the spec: the checked file is the one that runs, whatever happens to its
    /// path.
    Descriptor,
    /// A path, for scripts (whose interpreter needs one); it must lie in a read-only view of what was
    /// checked.
    Path(#[serde(with = "crate::path_bytes")] PathBuf),
}

/// Resource limits, each set hard and soft. A limit above the supervisor's own is lowered to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open files. 1,024: what select() can count to, and more than a tool that serves one socket needs.
    pub nofile: u64,
    /// Processes and threads of the uid. 256: room for a runtime's thread pools, none for a fork bomb. Set
    /// only with an [`Identity`]: the kernel would count everything else that a shared uid runs.
    pub nproc: u64,
    /// The largest file it may write, in bytes.
    pub fsize_bytes: u64,
    /// Memory it may lock, in bytes.
    pub memlock_bytes: u64,
    /// Data segment and private anonymous memory, in bytes; `None` leaves it open.
    pub data_bytes: Option<u64>,
    /// Core dumps, in bytes. 1: too small for any dump, and the one value for which the kernel does not pipe
    /// a dump to a program either (`/proc/sys/kernel/core_pattern` with a `|`), as it does for 0. Dumps would
    /// carry secrets to disk.
    pub core_bytes: u64,
    /// The main thread's stack, in bytes. 8 MiB: Linux's default.
    pub stack_bytes: u64,
    /// Address space, in bytes; `None` does not limit it, because Go, Java and Node reserve far more than
    /// they use.
    pub as_bytes: Option<u64>,
    /// Seconds of CPU time, after which it is killed; `None` does not limit it, as a plugin runs for weeks.
    pub cpu_seconds: Option<u64>,
    /// Memory of the whole tree together, in bytes: files in its private directory count where a cgroup
    /// counts.
    pub memory_bytes: u64,
    /// Memory of the whole tree together, in bytes, above which the kernel slows it down and reclaims memory.
    /// `None` leaves it at full speed up to `memory_bytes`. Between the two limits a runaway process is
    /// slowed down for minutes (Linux 6.1), instead of being killed. Needs a cgroup.
    pub memory_high_bytes: Option<u64>,
    /// CPU time of the whole tree together, in percent of one core; `None` leaves it open. Needs a cgroup.
    pub cpu_percent: Option<u32>,
    /// How much it yields to others when cores are scarce, as in nice(1).
    pub nice: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nofile: 1024,
            nproc: 256,
            fsize_bytes: 1 << 30,
            memlock_bytes: 64 << 10,
            data_bytes: Some(4 << 30),
            core_bytes: 1,
            stack_bytes: 8 << 20,
            as_bytes: None,
            cpu_seconds: None,
            memory_bytes: 1 << 30,
            memory_high_bytes: None,
            cpu_percent: None,
            nice: 5,
        }
    }
}

/// What to do when a requested protection cannot be provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Refuse to start the program, naming what is missing.
    Enforce,
    /// Start it, and report what is not enforced.
    BestEffort,
    /// No protections beyond a separate process (and the [`Identity`], if one is given); reported
    /// prominently.
    Off,
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_spec_with_bytes_that_are_not_utf8_survives_the_way_to_the_stage() {
        let odd = || OsString::from_vec(vec![b'/', 0xff, 0xfe]);
        let spec = JailSpec {
            name: "odd".into(),
            program: Program::Path(odd().into()),
            argv: vec![odd()],
            env: vec![(odd(), odd())],
            cwd: odd().into(),
            identity: Some(Identity { uid: 70_000, gid: 70_000 }),
            limits: Limits::default(),
            mode: Mode::Enforce,
            isolation: None,
        };
        let text = serde_json::to_vec(&spec).unwrap();
        let back: JailSpec = serde_json::from_slice(&text).unwrap();
        assert_eq!(back.cwd, spec.cwd);
        assert_eq!(back.argv, spec.argv);
        assert_eq!(back.env, spec.env);
        assert!(matches!(back.program, Program::Path(path) if path.as_os_str() == odd()));
    }
}
