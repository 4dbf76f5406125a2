//! Starts a program in a jail.
//!
//! The supervisor has threads, so it must not fork and set things up between fork and exec (`pre_exec`):
//! that is unsound with allocation, and from a large parent it is slow (59 ms against 0.8 ms from 1.5 GB).
//! Instead it starts *itself* again with posix_spawn, once, from a sealed copy of its executable, as a small
//! single-threaded **zygote**. A clone of that for each program is the **stage**, which builds the jail step by step
//! and executes what was checked.
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

mod around;
mod check;
mod exit;
mod graveyard;
mod group;
mod handover;
mod image;
mod monitor;
mod plainly;
mod probe;
mod profile;
mod progress;
mod report;
mod spare;
mod spawn;
mod spec;
mod stage;
#[expect(
    unsafe_code,
    reason = "what the kernel offers and no safe wrapper covers; each block names its fact"
)]
mod sys;
mod view;
mod who;
mod wire;
mod zygote;

pub use around::{forbid_new_code, forgo_huge_pages, see_all_processes};
pub use exit::ExitStatus;
pub use group::{Group, GroupError, Groups, Lacking};
pub use handover::{AdoptError, MonitorParts};
pub use image::{Stage, StageError};
pub use monitor::Monitor;
pub use plainly::open_beneath;
pub use probe::{Available, Machine, Tier, may_give_uids, probe};
pub use profile::{Compiled, Instruction, Learner, Profile, ProfileError, Used};
pub use report::{Protection, Report, Status};
pub use spawn::{Given, Jailed, SpawnError, spawn};
pub use spec::{Identity, Isolation, JailSpec, Limits, Mode, Network, Program};
pub use stage::become_stage_if_asked;
pub use view::{Access, Link, Made, Private, Shown, View, missing_interpreter, real_path};
pub use who::Who;
