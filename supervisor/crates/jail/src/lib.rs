//! Starts a program in a jail.
//!
//! The supervisor has threads, so it must not fork and set things up between fork and exec (`pre_exec`): that
//! is unsound with allocation, and from a large parent it is slow (59 ms against 0.8 ms from 1.5 GB). Instead
//! it starts *itself* again with posix_spawn, once, from a sealed copy of its executable, as a small
//! single-threaded **zygote**. A clone of that for each program is the **stage**, which builds the jail step
//! by step and executes what was checked.
//!
//! ```text
//! supervisor ──posix_spawn──► zygote ──clone──► stage (monitor) ──fork──► program
//!      │   control socket                           │  waits, forwards signals, kills all the rest
//!      └────────────────────────────────────────────┘  its end of file is the lifeline
//! ```
//!
//! The stage is the supervisor's child, as the zygote is.
//!
//! The list of steps, and the reasons for their order, are documented in `src/stage/mod.rs`.
//!
//! This is the only crate of the tree with `unsafe`, all of it in `src/sys`.

mod check;
mod exit;
mod group;
mod handover;
mod identity;
mod image;
mod monitor;
mod network;
mod no_follow;
mod path_bytes;
mod probe;
mod process_identity;
mod process_settings;
mod profile;
mod progress;
mod reaper;
mod reexec;
mod report;
mod spawn;
mod spec;
mod stage;
mod standby;
#[expect(
    unsafe_code,
    reason = "what the kernel offers and no safe wrapper covers; each block names its fact"
)]
mod sys;
mod userns_switch;
mod view;
mod wire;
mod zygote;

pub use check::SpecError;
pub use exit::ExitStatus;
pub use group::{CgroupsUnavailableError, Group, GroupError, Groups};
pub use handover::{AdoptError, MonitorParts};
pub use identity::Identity;
pub use image::{Stage, StageError};
pub use monitor::Monitor;
pub use network::{LoopbackListeners, Network};
pub use no_follow::open_beneath;
pub use probe::{Machine, ProtectionSupport, Tier, can_assign_uids, probe};
pub use process_identity::ProcessIdentity;
pub use process_settings::{forbid_new_code, forgo_huge_pages, see_all_processes};
pub use profile::{CompiledProfile, Learner, ObservedCall, Profile, ProfileError};
pub use reexec::become_stage_if_asked;
pub use report::{Protection, Report, Status};
pub use spawn::{InheritedFds, JailedProgram, SpawnError, descriptor_help, spawn};
pub use spec::{Isolation, JailSpec, Limits, Mode, Program};
pub use sys::seccomp::Instruction;
pub use view::{
    Access, BindMount, GeneratedFile, PrivateTmpfs, Symlink, View, ViewError, missing_interpreter, real_path,
};
