//! The files that exist for a program: host files that are shown, and generated files.

mod check;
mod error;
mod find;
mod grant;
mod interpreter;
mod resolve;
mod system;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::error::ViewError;
pub use self::interpreter::missing_interpreter;
pub use self::resolve::real_path;

/// Where the directory [`Private::tmp`] appears besides its own path.
pub(crate) const TMP: &str = "/tmp";

/// The directory of [`Private`] that is `/dev/shm`. It always exists, so no listed directory may have this
/// name.
pub(crate) const SHARED_MEMORY: &str = "m";
/// A file in the private root that Landlock makes unreadable: that reading it fails proves that Landlock is
/// in force.
pub(crate) const PROBE_FILE: &str = "/.jail";

/// All files that a program sees; nothing else exists for it. Unless noted otherwise, paths are those inside.
/// All paths are absolute and free of `.` and `..`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct View {
    /// Host files that are shown.
    pub shown: Vec<BindMount>,
    /// Small read-only files that are generated for it: passwd, group, hosts.
    pub files: Vec<GeneratedFile>,
    /// Symbolic links, by their path and target.
    pub links: Vec<Symlink>,
    /// Its private writable directory.
    pub private: PrivateTmpfs,
    /// Where a program passed by descriptor appears, read-only and executable.
    #[serde(with = "crate::path_bytes::optional")]
    pub program_at: Option<PathBuf>,
    /// Whether a host directory was granted for reading or executing ([`View::grant`]). It may contain
    /// sockets, to which a program can connect before Landlock ABI 9, however it is mounted.
    pub may_hold_sockets: bool,
}

/// A file, directory or socket of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindMount {
    /// Its path inside.
    #[serde(with = "crate::path_bytes")]
    pub at: PathBuf,
    /// Its path on the host. [`crate::spawn`] follows symlinks in it as [`View::resolve`] says; later none
    /// are followed.
    #[serde(with = "crate::path_bytes")]
    pub from: PathBuf,
    /// The allowed access.
    pub access: Access,
    /// Whether a jail without it is refused; otherwise a missing one is left out.
    pub needed: bool,
}

/// The allowed access to a shown file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// Read.
    Read,
    /// Read and execute.
    Execute,
    /// Read, write, create and remove; connect to a socket.
    Write,
    /// Connect to the shown socket; nothing can be created there.
    Connect,
}

/// A file that is generated for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratedFile {
    /// Its path.
    #[serde(with = "crate::path_bytes")]
    pub at: PathBuf,
    /// Its content.
    pub text: String,
}

/// A symbolic link that is made for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symlink {
    /// Its path.
    #[serde(with = "crate::path_bytes")]
    pub at: PathBuf,
    /// Its target.
    #[serde(with = "crate::path_bytes")]
    pub to: PathBuf,
}

/// A program's private writable directory: one tmpfs with a total size limit, removed with the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateTmpfs {
    /// Its path. The supervisor gets a descriptor of it ([`crate::JailedProgram::private`]).
    #[serde(with = "crate::path_bytes")]
    pub at: PathBuf,
    /// Directories in it, made for the program with mode 0700. It can write only in these, and can neither
    /// rename nor replace them. "m" is reserved for `/dev/shm`.
    pub dirs: Vec<String>,
    /// Which of them is also `/tmp`.
    pub tmp: String,
    /// The most bytes in all files together, rounded up to whole pages; writes beyond that fail with "no
    /// space left". `/dev/shm` counts too.
    pub bytes: u64,
    /// The most files and directories.
    pub inodes: u64,
    /// Whether files written there may be executed.
    pub exec: bool,
}

impl Default for PrivateTmpfs {
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
