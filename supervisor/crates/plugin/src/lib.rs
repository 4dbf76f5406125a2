//! Finds, launches, watches and calls plugin processes.
//!
//! ```text
//! Registry ── Plugin (handle) ──┬─ driver task ── machine (pure)      one of each for every instance
//!    by name      │             └─ …    │ performs its actions
//!                 │                     ▼
//!                 └─ Executor ──► the live client of the least loaded ready instance
//! ```
//!
//! Services ([`service`]) run beside the plugins: programs that belong to Talon, started and jailed by the
//! same launcher. The launcher also passes them what no plugin may have, such as the sockets through which
//! plugins reach their key-value store ([`state_sockets`]).

mod approvals;
mod declared_names;
mod driver;
mod environment;
pub mod events;
mod execute;
pub mod handover;
mod identity;
mod instances;
mod jail_report;
mod launch;
mod launcher;
mod lifecycle;
mod lists_throttle;
mod live_process;
pub mod logs;
mod model_sockets;
mod notices;
mod overdue_call;
mod plugin;
mod plugin_context;
pub mod probe;
mod progress_throttle;
mod registry;
mod resources_throttle;
mod rundir;
mod safe_display;
mod script_throttle;
mod scripts;
pub mod service;
mod service_spec;
mod settings;
mod snapshot;
mod source_events;
pub mod state_sockets;
mod stdio;
mod traits;
mod usage;
mod view;

pub use events::{Event, EventKind, Events, NewEvent};
pub use execute::{
    CallProgress, ExecuteRequest, MAX_METADATA_BYTES, MAX_METADATA_PAIRS, MAX_PROGRESS_MESSAGE_BYTES,
    Metadata, OutputObserver, ProgressObserver,
};
pub use instances::{Executor, MAX_WAITING_CALLS};
pub use lifecycle::{Desired, State};
pub use logs::{Level, LogLine, LogTail, Stream};
pub use model_sockets::ModelSockets;
pub use plugin::{ApproveFailure, OperateError, Plugin, ReviewedCapability};
pub use registry::{
    DownPolicy, MAX_PLUGINS, RegisterError, Registry, ReplaceError, ReplaceOutcome, Replacement,
};
pub use scripts::Script;
pub use service::{Home, Service, ServiceHooks, ServiceSpec, ServiceStatus};
pub use settings::{LogLimits, Settings, SetupError, default_start_concurrency};
pub use snapshot::{InstanceSnapshot, Snapshot};
pub use source_events::{
    EventCounters, EventError, EventLimits, EventSeverity, EventSink, RecordedEvents, SourceEvent,
};
pub use state_sockets::{AttachedSocket, StateSockets};
pub use usage::{InstanceReading, Reading};
