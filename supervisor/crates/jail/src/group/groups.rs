//! The cgroups of all programs of one supervisor.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::control_file::{WRITING_PROCESS, write};
use super::error::{CgroupsUnavailableError, GroupError, NAME_MAX_BYTES};
use super::find::{CgroupBase, CgroupLookup, DELEGATE_ADVICE, SUPERVISOR, is_needed};
use super::program_group::Group;
use super::{limits, remove};
use crate::spec::Limits;

/// The cgroups of one supervisor's programs.
#[derive(Debug)]
pub struct Groups {
    /// The cgroup that was delegated to us.
    pub(super) base: PathBuf,
    /// Whether this process moved from it to a leaf.
    pub(super) moved: bool,
    pub(super) dir: PathBuf,
    pub(super) controllers: Vec<&'static str>,
}

impl Groups {
    /// Divides the cgroup that this process is in. To be called once, before any other process is started.
    ///
    /// The label separates supervisors that share a base: a short text that stands for the runtime directory,
    /// whose lock the caller holds. If other processes are in our cgroup, or it was not delegated to us,
    /// nothing is changed.
    pub fn open(label: &str) -> Result<Self, CgroupsUnavailableError> {
        Self::open_in(&CgroupLookup::for_this_machine().find()?, label)
    }

    pub(super) fn open_in(place: &CgroupBase, label: &str) -> Result<Self, CgroupsUnavailableError> {
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
            // Undo everything. Controllers that stay enabled would keep this process out of the base, so
            // disable them first.
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

    /// Kills and removes everything below our label, which an earlier supervisor left. So it must be called
    /// before the first [`Groups::create`]. Returns the number of removed cgroups. Blocks for at most five
    /// seconds.
    pub fn clear(&self) -> Result<usize, GroupError> {
        self.clear_except(&[])
    }

    /// The same, except for the cgroups with these directories: those that are taken over.
    pub fn clear_except(&self, except: &[&Path]) -> Result<usize, GroupError> {
        remove::all_below(&self.dir, except)
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

fn move_to(leaf: &Path) -> io::Result<()> {
    make_dir(leaf)?;
    write(&leaf.join("cgroup.procs"), WRITING_PROCESS).inspect_err(|_| {
        let _ = fs::remove_dir(leaf);
    })
}

/// Delegates the controllers to the base's children, makes the label's cgroup, and delegates them to its
/// children.
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
                if is_needed(controller) {
                    failed =
                        Some(unavailable(group, &format!("enable the controller {controller} in"), &error));
                }
                false
            }
        }
    });
    failed.map_or(Ok(()), Err)
}

fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// The kernel's files have dots in their names, so a name without dots cannot collide with one.
pub(super) fn is_valid_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_@+".contains(&byte);
    (1..=NAME_MAX_BYTES).contains(&name.len()) && name.bytes().all(plain)
}

fn unavailable(group: &Path, what: &str, error: &io::Error) -> CgroupsUnavailableError {
    CgroupsUnavailableError::new(
        format!("cannot {what} the cgroup {}: {error}", group.display()),
        DELEGATE_ADVICE,
    )
}
