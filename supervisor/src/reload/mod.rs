//! Changes at runtime: reloads of the configuration and of single plugins.
//!
//! ```text
//! SIGHUP · `talon reload` · a watched file · a change of the overlay
//!        │ load and check, as a whole: an invalid one changes nothing
//!        ▼
//! compare with the running one, key by key ─► keys that need a restart are only reported
//!        │
//!        ├─ dispatcher: limits, guard  new stacks where their limits differ
//!        ├─ host.sock: peers, group    for connections from now on
//!        ├─ log.level
//!        └─ plugins, concurrently      added, removed, replaced beside the old one, changed in place
//! ```
//!
//! One reload at a time: a further one waits, and then compares with the result of the first.

mod apply;
mod bounded_read;
mod outcome;
mod overlay_write;
mod patch;
mod plan;
mod plugin_change;
mod reloader;
mod report;
mod sighup;
mod trigger;

pub use outcome::ReplaceFailure;
pub(crate) use outcome::{PluginOutcome, ReloadOutcome};
pub(crate) use patch::{OverlayPatch, PatchError, PatchOutcome, PatchProblem};
pub use reloader::Reloader;
pub(crate) use reloader::ReloaderParts;
pub(crate) use sighup::ReloadSignals;
pub(crate) use trigger::ReloadTrigger;
