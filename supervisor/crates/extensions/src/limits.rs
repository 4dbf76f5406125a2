//! The limits of what an operator may write here, each with its reason. None of them is configurable.

use std::time::Duration;

/// The most entries of one list. 16: each of them delays every message, by its deadline at most.
pub const MAX_ENTRIES: usize = 16;
/// The longest name of an entry. 129 characters: a plugin's name, a dot, and an action's name.
pub const MAX_NAME_CHARS: usize = 129;
/// The longest deadline of a hook. 5 minutes: half of what a turn takes by default.
pub const MAX_DEADLINE: Duration = Duration::from_secs(300);
/// The most keys of metadata that one entry is given, and the most that a verdict sets.
pub(crate) const MAX_METADATA_KEYS: usize = 32;
/// The longest key of metadata.
pub(crate) const MAX_METADATA_KEY_CHARS: usize = 64;
/// The longest value of metadata. 1 KiB: it labels a message, and is no second message.
pub(crate) const MAX_METADATA_VALUE_BYTES: usize = 1 << 10;
/// The most sub-agents that one entry lists.
pub(crate) const MAX_SUBAGENTS: usize = 32;
/// The longest reason of a verdict. It is shown to the person, and a longer one is cut.
pub(crate) const MAX_REASON_CHARS: usize = 500;
/// The longest replacement of a message: the longest message that a person may send.
pub(crate) const MAX_REPLACEMENT_BYTES: usize = 256 << 10;
/// The most bytes of one text with placeholders. 8 KiB: arguments are made of it, not documents.
pub(crate) const MAX_TEMPLATE_BYTES: usize = 8 << 10;
/// The deepest nesting of the arguments' template.
pub(crate) const MAX_TEMPLATE_DEPTH: usize = 16;
/// The most bytes of rendered arguments. 1 MiB: the guard takes no more of a call.
pub(crate) const MAX_RENDERED_BYTES: usize = 1 << 20;
/// How much one text with placeholders may cost: 1 for each step, and for each 64 bytes that it makes. 32,768: 2 MiB, twice
/// of what the arguments may have.
pub(crate) const TEMPLATE_FUEL: u64 = 32_768;
