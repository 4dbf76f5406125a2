//! Why a view is refused.

use std::path::{Path, PathBuf};

/// Why a view cannot be built, or a host path cannot be shown. The text ends with what to do where there is a
/// choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// A path is longer than the kernel accepts.
    #[error("a path has {bytes} bytes, the most is {limit}")]
    PathTooLong {
        /// Its length.
        bytes: usize,
        /// The longest one.
        limit: usize,
    },
    /// A path is not absolute, not normalized, has a NUL byte, or is `/`.
    #[error(
        "{0:?} cannot be in a view: a path there is absolute, has no `.`, `..` or `//` in it, and is not `/`"
    )]
    NotNormalized(PathBuf),
    /// A path inside lies in a directory that is made anew for each program.
    #[error("{} lies in {reserved}, which is made anew", at.display())]
    Reserved {
        /// The path.
        at: PathBuf,
        /// The directory.
        reserved: &'static str,
    },
    /// A host path lies in a directory of which nothing is ever shown.
    #[error("{} cannot be shown: nothing of the host's {reserved} is", from.display())]
    NeverShown {
        /// The path.
        from: PathBuf,
        /// The directory.
        reserved: &'static str,
    },
    /// A host path is, or contains, a directory in which every process puts its sockets.
    #[error(
        "{} cannot be shown as a whole: {shared} has sockets and files of everything that runs (name what is \
         needed below it)",
        from.display()
    )]
    SharedByAll {
        /// The path.
        from: PathBuf,
        /// The shared directory.
        shared: &'static str,
    },
    /// Two entries have one path.
    #[error("{} is in the view twice", .0.display())]
    Duplicate(PathBuf),
    /// An entry lies below another one that cannot contain it.
    #[error("{} lies below {}, {why}", at.display(), above.display())]
    Nested {
        /// The lower path.
        at: PathBuf,
        /// The upper path.
        above: PathBuf,
        /// What the upper one is.
        why: &'static str,
    },
    /// A symbolic link has no usable target.
    #[error("the link {} leads nowhere", .0.display())]
    DanglingLink(PathBuf),
    /// There are too many entries of one kind.
    #[error("the view has {count} {what}, the most is {limit}")]
    TooManyEntries {
        /// The kind.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The generated files are too large together.
    #[error("the view's made files have {bytes} bytes, the most is {limit}")]
    FilesTooLarge {
        /// How large they are.
        bytes: usize,
        /// How large they may be.
        limit: usize,
    },
    /// The private directory has no limit on its size.
    #[error("the private directory has no room (give it a number of bytes and of inodes)")]
    NoRoom,
    /// A private directory has a name that no directory can have.
    #[error("{0:?} cannot be a directory's name")]
    DirectoryName(String),
    /// Two private directories have one name.
    #[error("the private directory has {name:?} twice ({taken:?} is taken)")]
    DuplicateDirectory {
        /// The name.
        name: String,
        /// The name of the directory that always exists.
        taken: &'static str,
    },
    /// The directory that is to be `/tmp` is not in the list.
    #[error("{name:?}, which is to be {tmp}, is none of the private directories")]
    NoTmp {
        /// The name.
        name: String,
        /// Where it would be.
        tmp: &'static str,
    },
    /// The host path is no socket, but was granted to be connected to.
    #[error("{} is not a socket, so no program can connect to it", .0.display())]
    NotSocket(PathBuf),
    /// The host path is a socket, but was granted for reading or executing only.
    #[error(
        "{} is a socket, and no mount keeps a program that sees it from connecting to it (grant it to be \
         written to, or not at all)",
        .0.display()
    )]
    Socket(PathBuf),
    /// A link on the path could have been made by another user.
    #[error(
        "the link {} in it belongs to uid {owner}, or lies where others may write, who could point it anywhere \
         (grant the path that it leads to, or let root own it and the directories above it)",
        link.display()
    )]
    UntrustedLink {
        /// The link.
        link: PathBuf,
        /// The owner of the link, or of the directory in which others could have made it.
        owner: u32,
    },
    /// A required host path cannot be shown.
    #[error("cannot show {}: {reason}", from.display())]
    NotShareable {
        /// The path as it was granted.
        from: PathBuf,
        /// Why not.
        #[source]
        reason: Box<ViewError>,
    },
}

impl ViewError {
    /// The same error, for a host path by the name under which it was granted.
    pub(super) fn of_host_path(self, from: &Path) -> Self {
        Self::NotShareable { from: from.into(), reason: Box::new(self) }
    }
}
