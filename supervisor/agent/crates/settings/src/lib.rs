//! What an operator writes about the agent and its models.
//!
//! The supervisor reads it with the rest of the configuration, and hands it to the agent; both know it by these types. There is
//! nothing in here but types, their defaults, and what no type can say about them: no network, no clock, and no files but those that
//! [`Handed`] is gathered from.
//!
//! | key | type |
//! |---|---|
//! | `agent` | [`AgentKeys`] |
//! | `models` | [`ModelKeys`] |
//! | `orchestrator` | [`OrchestratorKeys`] |
//!
//! [`catalog`] finds what is wrong in `models.catalog` and which model a name means, for both.

mod agent;
mod allow;
pub mod catalog;
mod confirm;
mod context;
mod entry;
mod entry_check;
mod fallback;
mod handed;
mod memory;
mod model;
mod models;
mod money;
mod nearest;
mod orchestrator;
mod secret;
mod settings;
mod span;
mod spending;
mod subagents;
mod tier;
mod timeouts;
mod turn;

pub use agent::AgentKeys;
pub use allow::{
    AllowKeys, CHANNEL_KEY, SENDER_KEY, SUBAGENT_KEY, ToolPattern, covers, covers_some, is_pattern,
};
pub use confirm::{Ask, ConfirmKeys, ConfirmRule, confirm_pattern};
pub use context::ContextKeys;
pub use entry::{Dialect, Entry, Kind};
pub use entry_check::EntryProblem;
pub use fallback::{BreakerKeys, FallbackKeys, MAX_RETRIES};
pub use handed::{
    BadFile, BadHanded, BadKey, Found, Handed, MAX_HANDED_BYTES, NamedFile, PROXY_VARIABLES, Surroundings,
    find_keys, read_file,
};
pub use memory::MemoryKeys;
pub use model::{CatalogKeys, Cost, Model};
pub use models::{ModelKeys, ProviderKeys, Thinking};
pub use money::{BadMoney, DOLLARS_FORMAT, Money, Price};
pub use orchestrator::OrchestratorKeys;
pub use secret::{HIDDEN, KeySource, Secret};
pub use settings::Settings;
pub use span::TimeSpan;
pub use spending::Budget;
pub use subagents::{BUILT_IN_SUBAGENTS, SubAgentEntry, SubAgentKeys};
pub use tier::Tier;
pub use timeouts::Timeouts;
pub use turn::TurnKeys;
