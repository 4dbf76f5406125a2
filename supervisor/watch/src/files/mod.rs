//! Files below the watched directories.
//!
//! The kernel's events say which directories to look at, and nothing else: what changed is told by comparing
//! a directory with what was remembered of it. So an editor's way of saving does not matter, an overflow of
//! the kernel's queue is a look at all directories, and no change is missed.
//!
//! ```text
//! inotify ── directory ──► Dirty ── rests for 300 ms ──► scan ──► Index::compare ──► FileEvent
//!              overflow ── all directories ──┘
//! ```

mod dirty;
mod editor_files;
mod file_system;
mod index;
mod kernel_watch;
mod read;
mod recent;
mod scan;
mod signals;
mod watcher;

pub(crate) use read::read_text;
pub(crate) use scan::{Rules, repository_of};
pub(crate) use signals::Signals;
pub(crate) use watcher::{FileSettings, FileSinks, start};
