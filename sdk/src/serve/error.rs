//! Why a plugin could not be served.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::handshake::{FD_ENV, SOCKET_DIR_ENV};
use crate::plugin::Defects;

/// Why a plugin could not be served, or stopped being served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// No host started this process.
    #[error(
        "this is a Talon plugin, not a program to run by hand.\n\
         Call one of its actions with:  talon exec {program} ACTION [key=value …]\n\
         Its actions: {actions}\n\
         Or put it into a supervisor's plugin directory; `talon serve` starts it."
    )]
    NotAPlugin {
        /// How this process was called.
        program: String,
        /// The names of the plugin's actions.
        actions: String,
    },
    /// The plugin's author made a mistake.
    #[error("this plugin cannot be served: {0}")]
    Defects(#[from] Defects),
    /// The socket cannot be made.
    #[error("cannot listen on {}: {source}", path.display())]
    Listen {
        /// Where the socket would be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory for the socket is too deep: a socket path has at most 107 bytes.
    #[error(
        "the socket path {} has {} bytes, and the system takes at most {max}: set {SOCKET_DIR_ENV} to a shorter directory",
        path.display(), path.as_os_str().len()
    )]
    PathTooLong {
        /// Where the socket would be.
        path: PathBuf,
        /// How many bytes fit.
        max: usize,
    },
    /// The descriptor that the host passed is not a listening unix socket.
    #[error("{}={value:?}: {reason}", FD_ENV)]
    BadDescriptor {
        /// What the variable says.
        value: OsString,
        /// What is wrong with it.
        reason: DescriptorError,
    },
    /// The handshake line could not be written.
    #[error("cannot write the handshake line to stdout")]
    Handshake(#[source] io::Error),
    /// The runtime or the signal handlers could not be set up.
    #[error("cannot set up the runtime")]
    Runtime(#[source] io::Error),
}

/// Why the descriptor that the host passed cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptorError {
    /// The variable holds no number.
    #[error("it must be the number of a descriptor, such as 0")]
    NotANumber,
    /// It cannot be duplicated.
    #[error("cannot take descriptor {number}: {source}")]
    NotOpen {
        /// Its number.
        number: i32,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a socket.
    #[error("descriptor {0} is no socket; pass one that listens")]
    NotASocket(i32),
    /// It is a socket that does not listen.
    #[error("the socket at descriptor {0} does not listen; call listen() before passing it")]
    NotListening(i32),
    /// It is a socket of another family.
    #[error("descriptor {number} is no unix socket: {source}")]
    NotUnix {
        /// Its number.
        number: i32,
        /// What the system said.
        source: io::Error,
    },
    /// It is a unix socket without a path.
    #[error("the socket at descriptor {0} has no path; bind it to one")]
    NoPath(i32),
    /// It cannot be made non-blocking.
    #[error("cannot set up descriptor {number}: {source}")]
    SetUp {
        /// Its number.
        number: i32,
        /// What the system said.
        source: io::Error,
    },
}
