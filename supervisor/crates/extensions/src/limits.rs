//! The limits of what an operator may write here, each with its reason. None of them is configurable.

use std::time::Duration;

/// The most entries of one list. 16: each of them delays every message, by its deadline at most.
pub const MAX_ENTRIES: usize = 16;
/// The most entries of `notifications`. 64: each event is compared with each of them.
pub(crate) const MAX_NOTIFICATIONS: usize = 64;
/// The most entries of `auth`. 8: a credential that no one accepts goes to each of them.
pub(crate) const MAX_AUTH_PROVIDERS: usize = 8;
/// The most entries of `routes`. 256: more is a server of its own.
pub(crate) const MAX_ROUTES: usize = 256;
/// The longest name of an entry. 129 characters: a plugin's name, a dot, and an action's name.
pub const MAX_NAME_CHARS: usize = 129;
/// The longest deadline of an entry. 5 minutes: half of what a turn takes by default.
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
/// The most kinds, conditions, or values of a condition of a notification.
pub(crate) const MAX_CONDITIONS: usize = 32;
/// The longest value of a condition, of a scope or of a field of an event.
pub(crate) const MAX_FIELD_CHARS: usize = 256;
/// The most attempts of a notification after the first.
pub(crate) const MAX_RETRIES: u32 = 10_000;
/// The longest time for which a notification is tried. 30 days: later, nobody knows what it was about.
pub(crate) const MAX_GIVE_UP_AFTER: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest time until the next attempt that a sink may ask for. 1 hour: a sink that names no end is asked again.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// The most events of one digest.
pub const MAX_DIGEST_EVENTS: usize = 100;
/// The most entries of `channels`. 16: each is a service with an account of its own.
pub(crate) const MAX_CHANNELS: usize = 16;
/// The longest name of a channel: it stands in every subject of its senders.
pub(crate) const MAX_CHANNEL_NAME_CHARS: usize = 64;
/// The most ids, or names, of one list of a channel. 4,096: more is everybody.
pub(crate) const MAX_CHANNEL_IDS: usize = 4096;
/// The longest path of a route.
pub(crate) const MAX_PATH_BYTES: usize = 256;
/// The most headers that a route passes on, or an answer has.
pub(crate) const MAX_HEADERS: usize = 32;
/// The longest value of a header of an answer. 4 KiB: browsers and proxies take no more of all of them than some 8 KiB.
pub(crate) const MAX_HEADER_BYTES: usize = 4 << 10;
/// The largest body that a route takes. 512 KiB: as base64 within JSON it stays below the guard's 1 MiB of arguments.
pub(crate) const MAX_BODY_BYTES: u32 = 512 << 10;
/// The longest key of a storage backend. 640: a plugin's key of 512 bytes behind its name of 64 and what separates them.
pub const MAX_STORAGE_KEY_BYTES: usize = 640;
/// The largest value of a storage backend. 513 KiB: 512 KiB of a plugin's value, and room for what talon-state writes before it.
/// As base64 within JSON it stays below the guard's 1 MiB of arguments and of a role's structured answer.
pub const MAX_STORAGE_VALUE_BYTES: usize = 513 << 10;
/// The most keys of a page of a storage backend. 500 of the longest keys stay below the 1 MiB of a role's structured answer.
pub const MAX_STORAGE_PAGE_ITEMS: u32 = 500;
/// The longest revision that a storage backend gives a key. 64: a digest in hex.
pub(crate) const MAX_REVISION_CHARS: usize = 64;
/// The longest name of a subject. It stands in every audit record of its requests.
pub(crate) const MAX_SUBJECT_BYTES: usize = 256;
/// The most scopes of a provider's answer, or of the map of an entry.
pub(crate) const MAX_SCOPES: usize = 64;
