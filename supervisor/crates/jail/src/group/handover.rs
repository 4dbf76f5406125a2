//! Cgroups that outlive their supervisor.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::control_file::write;
use super::error::GroupError;
use super::groups::Groups;
use super::program_group::Group;
use super::{find, limits};
use crate::spec::Limits;

impl Groups {
    /// Disables the controllers again if this process had to move from the base to a leaf. While they are
    /// enabled, no process can be put into the base, so a service manager that starts the next supervisor
    /// there would fail (systemd before 254, which does not know `DelegateSubgroup=`). Until the next
    /// supervisor [adopts](Group::adopt) them, the cgroups in use limit nothing. Returns whether anything was
    /// changed. Must be the last step before this process ends.
    pub fn disable_controllers(&self) -> bool {
        if !self.moved {
            return false;
        }
        // Innermost first: a controller that a child delegates cannot be disabled in its parent.
        for group in [&self.dir, &self.base] {
            for controller in &self.controllers {
                // Fails for a controller that is not enabled, which does not matter.
                let _ = write(&group.join("cgroup.subtree_control"), &format!("-{controller}"));
            }
        }
        true
    }
}

impl Group {
    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes over the cgroup that another supervisor made for the process `member`, wherever it is. Call
    /// [`Group::set_limits`] next, to set its limits.
    ///
    /// # Errors
    /// If the process is not in that cgroup, which is left unchanged then.
    pub fn adopt(dir: PathBuf, member: u32) -> Result<Self, GroupError> {
        let failed = |source| GroupError::Directory { path: dir.clone(), source };
        let members = fs::read_to_string(dir.join("cgroup.procs")).map_err(failed)?;
        if !members.lines().any(|line| line.parse() == Ok(member)) {
            return Err(GroupError::NotMember { path: dir, pid: member });
        }
        let procs = File::options().write(true).open(dir.join("cgroup.procs")).map_err(failed)?;
        Ok(Self { dir, procs, memory_bytes: 0, missing_limits: Vec::new(), released: false })
    }

    /// Sets the limits again, as far as there are controllers by now.
    ///
    /// # Errors
    /// If the kernel offers a limit and refuses its value.
    pub fn set_limits(&mut self, limits: &Limits) -> Result<(), GroupError> {
        let offered = fs::read_to_string(self.dir.join("cgroup.controllers"));
        let offered = offered.map_err(|source| GroupError::Directory { path: self.dir.clone(), source })?;
        let is_offered = |name: &&str| offered.split_ascii_whitespace().any(|offered| offered == *name);
        let controllers: Vec<&str> = find::CONTROLLERS.into_iter().filter(is_offered).collect();
        self.memory_bytes = limits.memory_bytes;
        self.missing_limits = limits::apply(&self.dir, limits, &controllers)?;
        Ok(())
    }

    /// Forgets the cgroup without killing or removing anything: another supervisor owns it now.
    pub fn release(mut self) {
        self.released = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::CgroupBase;
    use super::super::tests::{group_like, text};
    use super::*;

    // Promises: HANDOVER-13
    #[test]
    fn the_controllers_are_taken_back_innermost_first_where_we_had_to_move() {
        let root = tempfile::tempdir().unwrap();
        let place =
            |must_move| CgroupBase { base: root.path().to_owned(), must_move, controllers: vec!["memory"] };
        fs::create_dir_all(root.path().join("talon-x")).unwrap();
        fs::create_dir_all(root.path().join("supervisor")).unwrap();
        for group in ["", "talon-x", "supervisor"] {
            for file in ["cgroup.subtree_control", "cgroup.procs"] {
                fs::write(root.path().join(group).join(file), "").unwrap();
            }
        }
        let control = |group: &str| text(&root.path().join(group), "cgroup.subtree_control");
        let stayed = Groups::open_in(&place(false), "x").unwrap();
        assert!(!stayed.disable_controllers());
        assert_eq!([control(""), control("talon-x")], ["+memory"; 2]);
        let moved = Groups::open_in(&place(true), "x").unwrap();
        assert!(moved.disable_controllers());
        assert_eq!([control(""), control("talon-x")], ["-memory"; 2]);
    }

    // Promises: HANDOVER-13
    #[test]
    fn a_group_is_adopted_by_its_member_and_bounded_again() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("talon-x/plugin");
        group_like(&dir, &["memory.max", "memory.oom.group", "pids.max"]);
        fs::write(dir.join("cgroup.procs"), "17\n18\n").unwrap();
        fs::write(dir.join("cgroup.controllers"), "pids memory\n").unwrap();
        let limits = Limits { memory_bytes: 1 << 20, ..Limits::default() };
        let refused = Group::adopt(dir.clone(), 7).unwrap_err();
        assert!(refused.to_string().contains("process 7 is not in the cgroup"), "{refused}");
        let mut group = Group::adopt(dir.clone(), 18).unwrap();
        assert_eq!(text(&dir, "memory.max"), "");
        group.set_limits(&limits).unwrap();
        assert_eq!(text(&dir, "memory.max"), "1048576");
        assert!(group.missing_limits().iter().any(|lacking| lacking.starts_with("cpu.weight")));
        group.release();
        assert!(dir.exists(), "it is somebody else's");
    }
}
