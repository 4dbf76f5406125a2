//! The result of compiling a profile.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::packed;
use crate::sys::seccomp::Instruction;

/// A profile as the stage loads it: compiled by the supervisor, for one architecture and one network.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CompiledProfile {
    /// The profile's name, for messages.
    pub name: String,
    /// BPF programs, each a list of instructions as the kernel's `sock_filter`, loaded in this order.
    #[serde(with = "packed")]
    pub filters: Vec<Vec<Instruction>>,
    /// The Landlock ABI that the kernel must have at least.
    pub landlock_abi: u32,
    /// Whether calls outside the profile are allowed and reported to the supervisor.
    pub learn: bool,
    /// For learning: which arguments decide, by the number of each call that is partly allowed.
    pub deciding_arguments: BTreeMap<u32, Vec<u8>>,
}
