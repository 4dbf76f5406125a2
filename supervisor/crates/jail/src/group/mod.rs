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

mod control_file;
mod error;
mod find;
mod groups;
mod handover;
mod limits;
mod program_group;
mod remove;

pub(crate) use self::control_file::WRITING_PROCESS;
pub use self::error::{CgroupsUnavailableError, GroupError};
pub(crate) use self::find::available_controllers;
pub use self::groups::Groups;
pub use self::program_group::Group;

#[cfg(test)]
mod tests;
