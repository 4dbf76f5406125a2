//! All of what is kept, out and in: `talon export` and `import` as YAML, `backup` and `restore` as databases.
//!
//! The plugins' state comes from the supervisor that has it, or from a `talon-state` of our own; sessions and memory always
//! from one of our own (`cli/state/reach.rs`). What comes from either is checked before it becomes a file.

mod archive;
mod backup;
mod export;
mod import;
mod layout;
mod progress;
mod report;
mod restore;
mod tree;
mod walk;

pub(super) use backup::BackupArgs;
pub(super) use export::ExportArgs;
pub(super) use import::ImportArgs;
pub(super) use restore::RestoreArgs;

/// Bytes of one message of a stream, as the other side sends them: far below the 4 MiB that gRPC takes, and enough that
/// messages cost nothing beside what is in them.
const CHUNK_BYTES: usize = 64 << 10;
/// Messages on their way to the service, which is slower than a disk at times.
const MAX_STREAMED: usize = 4;
