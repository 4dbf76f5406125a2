//! Which system calls a program may make.
//!
//! A profile is a TOML file. The built-in ones are in `profiles/` beside the sources, with a reason for each
//! call. An operator's own profile extends one of them, or is complete in itself:
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
//! Allowing is a union: a profile that extends another can allow more uses of a call, never less.
//! `profiles/never.toml` comes first: it is not a profile, but lists what no profile can allow.
//!
//! A call whose number is higher than all that this build knows is answered with ENOSYS, as by an older
//! kernel, so that libraries fall back to older calls. Calls of another architecture (32 bit, x32) end the
//! process.

mod bpf;
mod compile;
mod compiled_profile;
mod decision_graph;
mod definition;
mod error;
mod extra_filters;
mod join;
mod learn;
mod learned_profile;
mod load;
mod never;
mod packed;
mod parser;
mod rule;
mod search_tree;
mod syscalls;

pub use self::compiled_profile::CompiledProfile;
pub use self::definition::Profile;
pub use self::error::ProfileError;
pub(crate) use self::extra_filters::{
    refuse_hidden_modes, refuse_internet_sockets, refuse_unaccounted_memory, report_internet_sockets,
};
pub use self::learn::{Learner, ObservedCall};

#[cfg(test)]
mod simulate;
#[cfg(test)]
mod tests;
