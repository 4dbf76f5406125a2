//! The workspace's files, as they are now.
//!
//! [`Watched`] reads `IDENTITY.md`, `SOUL.md`, `USER.md` and the days below `memory/`, and reads a file again when it has changed. It looks
//! when it is asked, by device, inode, size and times: that is six calls of the kernel a turn, which takes seconds. To be told by
//! the kernel (inotify, through the crate `notify`) would save these, and would need a thread, a watch for a directory that may not be
//! there yet and one for each that comes to be below it, and would still see nothing on a file system that others write to over a
//! network; and to look is what it would have to do after each overflow anyway.
//!
//! The files are a person's and are read alone, never written. A name leads where it leads below the directory: a link that leads out of
//! it is refused, by an absolute path and by `..` alike, one that stays below is followed, and what is no regular file is not waited for.

mod file;
mod watched;

pub(crate) use watched::LOOK_WAIT;
pub use watched::Watched;

#[cfg(test)]
mod tests;
