//! Which system calls a program may make.
//!
//! A profile is a TOML file. The built-in ones are in `profiles/` beside the sources, with a reason for each call. An
//! operator's own profile extends one of them, or is complete in itself:
//!
//! ```toml
//! description = "strict, and what our indexer needs"
//! extends = "strict"           # a built-in profile; without it, only what this file names is allowed
//! default = "errno"            # what is not allowed fails with EPERM; "kill" ends the process
//! landlock_abi = 2             # the Landlock version that the kernel must have
//!
//! [[allow]]
//! why = "one sentence"         # for the next reader of the file
//! calls = ["prctl"]
//! when = [                     # all of these hold, compared in the low 32 bits of the argument (from 0)
//!     { arg = 0, is = [1, 2] },                # one of these
//!     { arg = 1, mask = 0xf, is = [3] },       # one of these, in the bits of the mask
//!     { arg = 2, is_not = [4, 5] },            # none of these
//!     { arg = 3, any_bit = 0x30 },             # at least one of these bits is set
//!     { arg = 4, is_not = [0], wide = true },  # compared in all 64 bits, for pointers
//! ]
//!
//! [[answer]]
//! why = "one sentence"
//! calls = ["ioctl"]            # uses that no `allow` covers fail …
//! errno = "ENOTTY"             # … with this
//! ```
//!
//! Allowing is a union: a profile that extends another can allow more uses of a call, never less. `profiles/never.toml`
//! comes first: it is not a profile, but lists what no profile can allow.
//!
//! A call whose number is higher than all that this build knows is answered with ENOSYS, as by an older kernel, so that
//! libraries fall back to older calls. Calls of another architecture (32 bit, x32) end the process.

mod compile;
mod decision_graph;
mod error;
mod extra_filters;
mod join;
mod learn;
mod learned_profile;
mod packed;
mod parser;
mod rule;
mod search_tree;
mod syscalls;

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use serde::{Deserialize, Serialize};

pub use self::error::ProfileError;
pub use self::learn::{Learner, ObservedCall};
pub(crate) use extra_filters::{refuse_hidden_modes, refuse_unaccounted_memory};

use self::rule::{CallGroup, DefaultAction};
use self::syscalls::Architecture;
use crate::spec::Network;

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
    pub telling: BTreeMap<u32, Vec<u8>>,
}

/// One BPF instruction: code, jump if true, jump if false, constant.
pub type Instruction = (u16, u8, u8, u32);

/// A parsed profile.
#[derive(Debug, Clone)]
pub struct Profile {
    name: String,
    description: String,
    /// The built-in profile that it extends.
    extends: Option<String>,
    default: DefaultAction,
    landlock_abi: u32,
    /// Its own and those of the profile that it extends.
    groups: Vec<CallGroup>,
}

/// The built-in files.
const BUILT_IN: &[(&str, &str)] = &[
    ("strict", include_str!("../../profiles/strict.toml")),
    ("ports", include_str!("../../profiles/ports.toml")),
    ("wide", include_str!("../../profiles/wide.toml")),
];

/// What no profile can allow; checked before each profile.
static NEVER: LazyLock<Profile> = LazyLock::new(|| {
    parser::parse_file(include_str!("../../profiles/never.toml"), "never")
        .expect("the file is part of the program, and a test reads it")
});

impl Profile {
    /// The built-in profile of this name: see [`Profile::names`].
    pub fn builtin(name: &str) -> Option<Self> {
        static PARSED: [OnceLock<Profile>; BUILT_IN.len()] = [const { OnceLock::new() }; BUILT_IN.len()];
        let at = BUILT_IN.iter().position(|(known, _)| *known == name)?;
        let (name, text) = BUILT_IN[at];
        // A profile that extends another initializes that other one meanwhile, hence a lock for each.
        let parsed = PARSED[at].get_or_init(|| {
            Self::parse(text, name).expect("the files are part of the program, and a test reads them")
        });
        Some(parsed.clone())
    }

    /// The file of a built-in profile, for operators who want to read it before writing one.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The names of the built-in profiles, the default one first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Parses a profile. `origin` is the path of its file, or its name: messages begin with it, and the profile's name
    /// is its last component without the extension.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        parser::parse(text, origin)
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The profile's purpose, in one line.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The filter for this machine and this network. Takes a millisecond or two.
    ///
    /// If the network lists ports, the result requires Landlock ABI 4, even if the profile does not.
    pub fn compile(&self, network: &Network) -> Result<CompiledProfile, ProfileError> {
        compile::compile(self, network, Architecture::native(&self.name)?, false)
    }

    /// The same, but calls outside the profile are allowed and reported: see [`Learner`]. What no profile can allow
    /// stays forbidden.
    pub fn compile_learning(&self, network: &Network) -> Result<CompiledProfile, ProfileError> {
        compile::compile(self, network, Architecture::native(&self.name)?, true)
    }

    /// A profile that extends this one by what was used while learning. `command` is named in its reasons.
    ///
    /// Read it before using it: not everything that was used was needed.
    pub fn render_learned(&self, used: &[ObservedCall], command: &str) -> String {
        learned_profile::render(self, used, command)
    }
}

#[cfg(test)]
mod simulate;
#[cfg(test)]
mod tests;
