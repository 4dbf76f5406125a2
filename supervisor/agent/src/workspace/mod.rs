//! The workspace's current files.
//!
//! [`WorkspaceFiles`] reads `IDENTITY.md`, `SOUL.md`, `USER.md` and the days below `memory/`, and reads a
//! changed file again. It checks on demand, by device, inode, size and times: six system calls per turn,
//! which takes seconds anyway. Notifications from the kernel (inotify, through the crate `notify`) would save
//! these calls, but need a thread and watches for directories that may not exist yet, miss changes on network
//! file systems, and require the same check after each overflow.
//!
//! The files belong to the person and are only read. A link is followed if it stays below the directory; one
//! that leads out of it is refused, by an absolute path and by `..` alike. A file that is not regular is not
//! waited for.

mod directory;
mod file;

pub(crate) use directory::REFRESH_TIMEOUT;
pub use directory::WorkspaceFiles;

#[cfg(test)]
mod tests;
