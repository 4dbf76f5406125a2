//! Finds, launches, watches and calls plugin processes.
//!
//! ```text
//! Registry ── Plugin (handle) ──┬─ driver task ── machine (pure)      one of each for every instance
//!    by name      │             └─ …    │ performs its actions
//!                 │                     ▼
//!                 └─ Executor ──► the live client of the least loaded ready instance
//! ```
//!
//! Services ([`service`]) run beside the plugins: programs that belong to Talon, started and jailed by the same
//! launcher. The launcher also passes them what no plugin may have, such as the sockets through which plugins reach
//! their key-value store ([`state_sockets`]).

mod approved;
mod bridge;
pub mod capability;
mod client;
mod common;
mod connect;
mod declared;
pub mod discover;
pub mod document;
mod driver;
pub mod egress;
pub mod entry;
mod environment;
pub mod events;
mod execute;
mod followed;
pub mod grant;
pub mod handover;
pub mod handshake;
mod identity;
mod instances;
mod launch;
mod lifecycle;
mod live;
pub mod logs;
pub mod name;
mod notices;
mod overdue;
mod plugin;
pub mod probe;
mod profile;
mod registry;
mod rundir;
mod seam;
pub mod service;
mod settings;
mod shown;
mod snapshot;
pub mod spec;
pub mod state_sockets;
mod stdio;
pub mod units;
mod usage;
mod view;

pub use approved::PLUGIN_TEXTS;
pub use bridge::Bridges;
pub use capability::Capability;
pub use environment::DEFAULT_ENV_ALLOW_LIST;
pub use events::{Event, EventKind, Events, NewEvent};
pub use execute::{
    ExecuteError, ExecuteRequest, Follower, MAX_METADATA_BYTES, MAX_METADATA_PAIRS,
    MAX_PROGRESS_MESSAGE_BYTES, MAX_STATUS_MESSAGE_CHARS, Metadata, Progress,
};
pub use grant::ActionPattern;
pub use instances::{Executor, MAX_WAITING_CALLS};
pub use lifecycle::{Desired, State};
pub use logs::{Level, LogLine, LogTail, Stream};
pub use name::PluginName;
pub use plugin::{ApproveFailure, Offered, OperateError, Plugin};
pub use registry::{IfDown, MAX_PLUGINS, Outcome, RegisterError, Registry, ReplaceError, Replaced};
pub use service::{Home, Link, Service, ServiceSpec, ServiceStatus};
pub use settings::{LogLimits, Settings, SetupError, default_start_concurrency};
pub use snapshot::{InstanceSnapshot, Snapshot};
pub use spec::{MAX_INSTANCES, PluginSpec};
pub use state_sockets::{Attached, StateSockets};
pub use usage::{InstanceReading, Reading};
