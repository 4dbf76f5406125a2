//! The files that exist for a program: what is shown of the host's, and what is made for it.

mod check;
mod find;
mod grant;
mod interpreter;
mod resolve;
mod system;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::interpreter::missing_interpreter;
pub use self::resolve::real_path;

/// Where the directory [`Private::tmp`] appears besides its own place.
pub(crate) const TMP: &str = "/tmp";

/// The directory of [`Private`] that is `/dev/shm`; it is always there, so none of the named ones may be it.
pub(crate) const SHARED_MEMORY: &str = "m";
/// A file in the private root that Landlock lets nobody read: that it cannot be read is the proof that Landlock holds.
pub(crate) const PROOF: &str = "/.jail";

/// All that a program sees. Everything else does not exist for it. Paths are those inside, which are absolute,
/// free of `.` and `..`, and (unless it says otherwise) those outside as well.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct View {
    /// What is shown of the host's files.
    pub shown: Vec<Shown>,
    /// Small read-only files that are made for it: passwd, group, hosts.
    pub files: Vec<Made>,
    /// Symbolic links, by their path and what they say.
    pub links: Vec<Link>,
    /// Its own writable place.
    pub private: Private,
    /// Where the program that goes by descriptor appears, read-only and executable.
    #[serde(with = "crate::spec::optional_path_bytes")]
    pub program_at: Option<PathBuf>,
    /// Whether a directory of the host's was granted to be read or executed from ([`View::grant`]): there may be
    /// sockets in it, to which a program can connect before Landlock ABI 9, however it is mounted.
    pub may_hold_sockets: bool,
}

/// A file, directory or socket of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// Where it appears.
    #[serde(with = "crate::spec::path_bytes")]
    pub at: PathBuf,
    /// Where it is on the host. [`crate::spawn`] follows symlinks on it as [`View::resolve`] says; nobody does later.
    #[serde(with = "crate::spec::path_bytes")]
    pub from: PathBuf,
    /// What may be done with it.
    pub access: Access,
    /// Whether a jail without it is refused; otherwise a missing one is left out.
    pub needed: bool,
}

/// What may be done with a shown file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Read.
    Read,
    /// Read and execute.
    Execute,
    /// Read, write, make and remove; connect to a socket.
    Write,
    /// Connect to a socket, which is what is shown; nothing can be made there.
    Connect,
}

/// A file that is made for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Where it appears.
    #[serde(with = "crate::spec::path_bytes")]
    pub at: PathBuf,
    /// What is in it.
    pub text: String,
}

/// A symbolic link that is made for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where it appears.
    #[serde(with = "crate::spec::path_bytes")]
    pub at: PathBuf,
    /// What it says.
    #[serde(with = "crate::spec::path_bytes")]
    pub to: PathBuf,
}

/// A program's own writable place: one memory file system, bounded as a whole, gone when the program is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Private {
    /// Where it appears. The supervisor gets a descriptor of it ([`crate::Jailed::private`]).
    #[serde(with = "crate::spec::path_bytes")]
    pub at: PathBuf,
    /// Directories in it, made for the program with mode 0700. It can write in them alone, and can neither rename
    /// nor replace them. "m" is taken: it is `/dev/shm`.
    pub dirs: Vec<String>,
    /// Which of them is also `/tmp`.
    pub tmp: String,
    /// The most bytes in all files together, rounded up to whole pages; a write beyond fails with "no space left".
    /// `/dev/shm` counts too.
    pub bytes: u64,
    /// The most files and directories.
    pub inodes: u64,
    /// Whether what is written there may be executed.
    pub exec: bool,
}

impl Default for Private {
    fn default() -> Self {
        Self {
            at: "/run/plugin".into(),
            dirs: vec!["s".into(), "t".into(), "h".into()],
            tmp: "t".into(),
            bytes: 64 << 20,
            inodes: 16 << 10,
            exec: false,
        }
    }
}
