//! Exports and imports all state: `talon export` and `import` as YAML, `backup` and `restore` as databases.
//!
//! The plugins' state comes from the running supervisor, or from a private `talon-state` process; sessions
//! and memory always from a private one (`cli/state/access.rs`). Data from either is validated before it is
//! written to a file.

mod archive;
mod backup;
mod export;
mod import;
mod layout;
mod progress;
mod report;
mod restore;
mod storage;
mod tree;
mod walk;

pub(crate) use backup::BackupArgs;
pub(crate) use export::ExportArgs;
pub(crate) use import::ImportArgs;
pub(crate) use restore::RestoreArgs;

/// Bytes per message of a stream, the same as the service uses: far below gRPC's limit of 4 MiB, and large
/// enough that the overhead per message does not matter.
const CHUNK_BYTES: usize = 64 << 10;
/// Buffered messages to the service, which can be slower than the disk.
const MAX_STREAMED: usize = 4;
