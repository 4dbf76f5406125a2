//! The cgroups of programs: the supervisor's side.
//!
//! ```text
//! BASE                 the cgroup that was delegated to us, or the root of the hierarchy
//! ├── supervisor       this process: a cgroup that delegates controllers may have no processes (not needed in the root)
//! └── talon-LABEL      one for each runtime directory, whose lock keeps a second supervisor out
//!     ├── PLUGIN       the limits of one program; its stage joins before it does anything else
//!     └── …
//! ```
//!
//! Only this process is ever moved, and only what is below its own label is killed.

mod find;
mod handover;
mod limits;
mod remove;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use self::find::{CgroupBase, CgroupLookup};
use crate::exit::ExitStatus;
use crate::spec::Limits;

/// The leaf for the supervisor itself.
const SUPERVISOR: &str = "supervisor";

/// The longest label or name. A file name has room for 255 bytes; a quarter of that is enough.
const NAME_MAX_BYTES: usize = 64;

/// The cgroups of one supervisor's programs.
#[derive(Debug)]
pub struct Groups {
    /// The cgroup that was delegated to us.
    base: PathBuf,
    /// Whether this process moved from it to a leaf.
    moved: bool,
    dir: PathBuf,
    controllers: Vec<&'static str>,
}

/// Why no cgroups can be used, and how to change that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why} ({fix})")]
pub struct CgroupsUnavailableError {
    why: String,
    fix: &'static str,
}

/// Why a cgroup could not be made or cleared.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The name is not valid for a cgroup.
    #[error(
        "{0:?} cannot name a cgroup (use 1 to {NAME_MAX_BYTES} ASCII letters, digits, '-', '_', '@' and '+')"
    )]
    Name(String),
    /// A cgroup of this name has processes in it.
    #[error("the cgroup {} is in use (stop what runs in it)", .0.display())]
    InUse(PathBuf),
    /// The process is not in this cgroup.
    #[error("process {pid} is not in the cgroup {} (start the plugin again)", path.display())]
    NotMember {
        /// The cgroup's directory.
        path: PathBuf,
        /// The process.
        pid: u32,
    },
    /// Its directory could not be created or read.
    #[error("cannot make or read the cgroup {}: {source} (is it still delegated? see cgroup.max.descendants above it)", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// A limit could not be set.
    #[error("cannot set {} to {value}: {source} (correct the plugin's limits)", file.display())]
    Limit {
        /// The file that holds it.
        file: PathBuf,
        /// The value.
        value: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// The cgroup of one program. Dropping it kills the remaining processes and removes it, which blocks for at most two
/// seconds. Processes that the kernel cannot end in that time are left to the next [`Groups::clear`].
#[derive(Debug)]
pub struct Group {
    dir: PathBuf,
    procs: File,
    memory_bytes: u64,
    missing_limits: Vec<String>,
    /// Whether another supervisor owns it now.
    released: bool,
}

/// Which controllers this process could delegate to programs, for `talon doctor`. Changes nothing.
pub(crate) fn available_controllers() -> Result<Vec<&'static str>, CgroupsUnavailableError> {
    CgroupLookup::for_this_machine().find().map(|place| place.controllers)
}

impl CgroupsUnavailableError {
    /// The reason, and how to fix it.
    pub(crate) fn reason_and_fix(&self) -> (&str, &'static str) {
        (&self.why, self.fix)
    }

    fn new(why: impl Into<String>, fix: &'static str) -> Self {
        Self { why: why.into(), fix }
    }
}

impl Groups {
    /// Divides the cgroup that this process is in. To be called once, before any other process is started.
    ///
    /// The label separates supervisors that share a base: a short text that stands for the runtime directory, whose
    /// lock the caller holds. If other processes are in our cgroup, or it was not delegated to us, nothing is changed.
    pub fn open(label: &str) -> Result<Self, CgroupsUnavailableError> {
        Self::open_in(&CgroupLookup::for_this_machine().find()?, label)
    }

    fn open_in(place: &CgroupBase, label: &str) -> Result<Self, CgroupsUnavailableError> {
        if !is_valid_name(label) {
            return Err(CgroupsUnavailableError::new(
                GroupError::Name(label.into()).to_string(),
                "give it a plain label",
            ));
        }
        if place.must_move {
            move_to(&place.base.join(SUPERVISOR))
                .map_err(|error| unavailable(&place.base, "enter a leaf", &error))?;
        }
        let divided = delegate_controllers(place, label);
        if divided.is_err() && place.must_move {
            // Undo everything. Controllers that stay enabled would keep this process out of the base, so disable them
            // first.
            for controller in &place.controllers {
                let _ = write(&place.base.join("cgroup.subtree_control"), &format!("-{controller}"));
            }
            let _ = write(&place.base.join("cgroup.procs"), WRITING_PROCESS);
            let _ = fs::remove_dir(place.base.join(SUPERVISOR));
        }
        divided
    }

    /// Which of memory, pids, cpu and io each group limits.
    pub fn controllers(&self) -> &[&'static str] {
        &self.controllers
    }

    /// Kills and removes everything below our label, which an earlier supervisor left. So it must be called before the
    /// first [`Groups::make`]. Returns the number of removed cgroups. Blocks for at most five seconds.
    pub fn clear(&self) -> Result<usize, GroupError> {
        self.clear_except(&[])
    }

    /// The same, except for the cgroups with these directories: those that are taken over.
    pub fn clear_except(&self, kept: &[&Path]) -> Result<usize, GroupError> {
        remove::all_below(&self.dir, kept)
    }

    /// Makes a cgroup with these limits. A leftover of the same name without processes is removed first.
    pub fn create(&self, name: &str, limits: &Limits) -> Result<Group, GroupError> {
        if !is_valid_name(name) {
            return Err(GroupError::Name(name.into()));
        }
        let dir = self.dir.join(name);
        let failed = |source| GroupError::Directory { path: dir.clone(), source };
        match fs::create_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                remove::empty_tree(&dir).map_err(|_| GroupError::InUse(dir.clone()))?;
                fs::create_dir(&dir).map_err(failed)?;
            }
            made => made.map_err(failed)?,
        }
        let filled = limits::apply(&dir, limits, &self.controllers).and_then(|lacking| {
            let procs = File::options().write(true).open(dir.join("cgroup.procs")).map_err(failed)?;
            Ok((lacking, procs))
        });
        match filled {
            Ok((lacking, procs)) => {
                let memory_bytes = limits.memory_bytes;
                Ok(Group { dir, procs, memory_bytes, missing_limits: lacking, released: false })
            }
            Err(error) => {
                let _ = fs::remove_dir(&dir);
                Err(error)
            }
        }
    }
}

impl Group {
    /// Its `cgroup.procs`, open for writing, for [`crate::Given`].
    pub fn procs(&self) -> BorrowedFd<'_> {
        self.procs.as_fd()
    }

    /// The limits that could not be set, one text each: `io.weight: not offered by this kernel`.
    pub fn missing_limits(&self) -> &[String] {
        &self.missing_limits
    }

    /// Sends SIGKILL to everything in it, including the program's monitor. Does not wait for their end.
    pub fn kill(&self) -> io::Result<()> {
        remove::kill(&self.dir)
    }

    /// How many of its processes the kernel killed because memory ran out.
    pub fn oom_kills(&self) -> u64 {
        self.event("memory.events", "oom_kill")
    }

    /// How many times a new process or thread was refused.
    pub fn pids_refused(&self) -> u64 {
        self.event("pids.events", "max")
    }

    /// Bytes of memory in use, including files in memory; `None` without the controller.
    pub fn memory_current(&self) -> Option<u64> {
        self.number("memory.current")
    }

    /// CPU time of everything that ever ran in it.
    pub fn cpu_time(&self) -> Option<Duration> {
        remove::keyed_value(&self.dir.join("cpu.stat"), "usage_usec").map(Duration::from_micros)
    }

    /// How many processes and threads are in it; `None` without the controller.
    pub fn pids_current(&self) -> Option<u64> {
        self.number("pids.current")
    }

    /// How the program ended, corrected if it ran out of memory. The kernel kills the whole cgroup then, including the
    /// monitor, so that the supervisor only sees a lost monitor.
    pub fn explain(&self, status: ExitStatus) -> ExitStatus {
        let killed = Signal::KILL.as_raw();
        match status {
            ExitStatus::Signal { signal, .. } if signal != killed => status,
            ExitStatus::Signal { .. } | ExitStatus::MonitorLost if self.oom_kills() > 0 => {
                // Kernels before 5.19 do not report the peak, which was at or just below the limit.
                let bytes = self.number("memory.peak").unwrap_or(self.memory_bytes);
                ExitStatus::OutOfMemory { bytes, limit: self.memory_bytes }
            }
            other => other,
        }
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.dir.join(file)).ok()?.trim().parse().ok()
    }

    fn event(&self, file: &str, name: &str) -> u64 {
        remove::keyed_value(&self.dir.join(file), name).unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.released {
            remove::group(&self.dir);
        }
    }
}

/// Written to `cgroup.procs`, moves the writing process with all its threads.
const WRITING_PROCESS: &str = "0";

fn move_to(leaf: &Path) -> io::Result<()> {
    make_dir(leaf)?;
    write(&leaf.join("cgroup.procs"), WRITING_PROCESS).inspect_err(|_| {
        let _ = fs::remove_dir(leaf);
    })
}

/// Delegates the controllers to the base's children, makes the label's cgroup, and delegates them to its children.
fn delegate_controllers(place: &CgroupBase, label: &str) -> Result<Groups, CgroupsUnavailableError> {
    let dir = place.base.join(format!("talon-{label}"));
    let mut controllers = place.controllers.clone();
    enable_controllers(&place.base, &mut controllers)?;
    make_dir(&dir).map_err(|error| unavailable(&dir, "make", &error))?;
    enable_controllers(&dir, &mut controllers)?;
    Ok(Groups { base: place.base.clone(), moved: place.must_move, dir, controllers })
}

/// Enables controllers one by one: together, all would be refused because of one. Optional ones may fail.
fn enable_controllers(
    group: &Path,
    controllers: &mut Vec<&'static str>,
) -> Result<(), CgroupsUnavailableError> {
    let mut failed = None;
    controllers.retain(|controller| {
        match write(&group.join("cgroup.subtree_control"), &format!("+{controller}")) {
            Ok(()) => true,
            Err(error) => {
                if find::is_needed(controller) {
                    failed =
                        Some(unavailable(group, &format!("enable the controller {controller} in"), &error));
                }
                false
            }
        }
    });
    failed.map_or(Ok(()), Err)
}

fn unavailable(group: &Path, what: &str, error: &io::Error) -> CgroupsUnavailableError {
    CgroupsUnavailableError::new(
        format!("cannot {what} the cgroup {}: {error}", group.display()),
        find::DELEGATE_ADVICE,
    )
}

fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Writes to an existing kernel file, in one write, since each write is one command.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let file = File::options().write(true).open(file)?;
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

/// The kernel's files have dots in their names, so a name without dots cannot collide with one.
fn is_valid_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_@+".contains(&byte);
    (1..=NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
mod tests;
