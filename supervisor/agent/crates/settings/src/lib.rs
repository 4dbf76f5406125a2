//! The operator's settings of the agent and its models.
//!
//! The supervisor reads them with the rest of the configuration, and sends them to the agent; both use these
//! types. This crate has only types, their defaults, and checks beyond the types: no network, no clock, and
//! no files except those that [`SettingsBundle`] collects.
//!
//! | key | type |
//! |---|---|
//! | `agent` | [`AgentKeys`] |
//! | `models` | [`ModelKeys`] |
//! | `orchestrator` | [`OrchestratorKeys`] |
//! | `shadow` | [`ShadowKeys`] |
//!
//! [`catalog`] checks `models.catalog` and finds models by name, for both.

mod agent;
mod agent_mode;
mod allow;
mod argument_texts;
mod bundle;
pub mod catalog;
mod confirm;
mod confirm_pattern;
mod context;
mod embeddings;
mod entry;
mod entry_check;
mod fallback;
mod groups;
mod identities;
mod limits;
mod media;
mod memory;
mod model;
mod models;
mod money;
mod orchestrator;
mod preset;
mod retention_period;
mod sampling;
mod secret;
mod sessions;
mod settings;
mod shadow;
mod span;
mod spending;
mod subagents;
mod thinking;
mod tier;
mod timeouts;
mod turn;

pub use agent::AgentKeys;
pub use agent_mode::AgentMode;
pub use allow::{
    AllowKeys, CHANNEL_KEY, MEMBER_KEY, SENDER_KEY, SUBAGENT_KEY, ToolPattern, covers, covers_some,
    is_pattern,
};
pub use argument_texts::argument_texts;
pub use bundle::{
    BundleError, Environment, FileLookupError, FoundKey, KeyError, MAX_BUNDLE_BYTES, NamedFile,
    NamedFileError, PROXY_VARIABLES, SettingsBundle, find_keys, read_file,
};
pub use confirm::{ConfirmKeys, ConfirmMode, ConfirmRule};
pub use confirm_pattern::{
    CompiledPattern, ConfirmPattern, ConfirmPatternError, ConfirmPatternFile, MAX_PATTERN_FILE_BYTES,
    confirm_pattern,
};
pub use context::{ContextKeys, ContextProfile, ContextShares};
pub use embeddings::EmbeddingKeys;
pub use entry::{Dialect, ProviderEntry, ProviderKind};
pub use entry_check::EntryProblem;
pub use fallback::{BreakerKeys, FallbackKeys, MAX_RETRIES};
pub use groups::GroupKeys;
pub use identities::{IdentityProblem, identity_problems, linked_sender};
pub use limits::LimitKeys;
pub use media::{MAX_REQUEST_IMAGE_BYTES, MediaKeys};
pub use memory::MemoryKeys;
pub use model::{CatalogKeys, Cost, Model};
pub use models::{ModelKeys, ProviderKeys};
pub use money::{DOLLARS_FORMAT, Money, PICOS_PER_DOLLAR, PICOS_PER_MICRO, ParseMoneyError, Price};
pub use orchestrator::OrchestratorKeys;
pub use preset::Protocol;
pub use retention_period::RetentionPeriod;
pub use sampling::{Sampling, SamplingNumber};
pub use secret::{HIDDEN, KeySource, Secret};
pub use sessions::{BusyMode, SessionKeys};
pub use settings::Settings;
pub use shadow::{Cooldown, ShadowBudget, ShadowKeys, ShadowSource};
pub use span::{TimeSpan, milliseconds};
pub use spending::Budget;
pub use subagents::{BUILT_IN_SUBAGENTS, SubAgentEntry, SubAgentKeys};
pub use thinking::Thinking;
pub use tier::Tier;
pub use timeouts::Timeouts;
pub use turn::{ParallelCalls, TurnKeys};
