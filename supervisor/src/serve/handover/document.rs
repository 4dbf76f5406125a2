//! What one supervisor tells the next, beside the descriptors.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use serde::{Deserialize, Serialize};
use talon_control::parcel::{self, NotThere, OpenError, Packer, SealError, Ticket};
use talon_plugin::PluginName;
use talon_plugin::handover::{HandOverError, Handed, Inherited};

use crate::host::FileIdentity;

/// Another number is another meaning of what stands here, and is not read. A field may be added without: it needs a default.
const VERSION: u32 = 1;

/// All of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document {
    version: u32,
    /// Who hands over.
    pid: u32,
    /// The version of its program, for the log.
    talon: String,
    host: Socket,
    /// `agent.sock`, if there is an agent.
    #[serde(default)]
    agent: Option<Socket>,
    /// Plugins that are set apart, and for how much neutralised syntax.
    #[serde(default)]
    quarantined: Vec<(String, u32)>,
    processes: Handed,
}

/// `host.sock`, say.
#[derive(Debug, Serialize, Deserialize)]
struct Socket {
    listener: Ticket,
    /// The file, if the supervisor made it.
    file: Option<FileIdentity>,
}

/// What a supervisor hands over, whole.
pub(super) struct Contents {
    pub(super) host: OwnedFd,
    pub(super) file: Option<FileIdentity>,
    pub(super) agent: Option<(OwnedFd, Option<FileIdentity>)>,
    pub(super) quarantined: Vec<(PluginName, u32)>,
    pub(super) processes: Handed,
}

/// What a supervisor gets.
#[derive(Debug)]
pub(super) struct Received {
    /// Who handed over.
    pub(super) pid: u32,
    /// The version of its program.
    pub(super) talon: String,
    pub(super) host: UnixListener,
    pub(super) file: Option<FileIdentity>,
    pub(super) agent: Option<(UnixListener, Option<FileIdentity>)>,
    pub(super) quarantined: Vec<(String, u32)>,
    pub(super) processes: Inherited,
}

/// Why there is nothing to hand over.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackError {
    #[error(transparent)]
    Processes(#[from] HandOverError),
    #[error("host.sock cannot be duplicated: {0}")]
    Host(#[source] std::io::Error),
    #[error("agent.sock cannot be duplicated: {0}")]
    Agent(#[source] std::io::Error),
    #[error("what is handed over cannot be written down: {0}")]
    Write(#[from] serde_json::Error),
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Why nothing is taken over.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("what was handed over cannot be read: {0}")]
    Read(#[from] serde_json::Error),
    #[error("what was handed over is of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    #[error(transparent)]
    NotThere(#[from] NotThere),
    #[error("host.sock cannot be used: {0}")]
    Host(#[source] std::io::Error),
    #[error("agent.sock cannot be used: {0}")]
    Agent(#[source] std::io::Error),
}

/// The version alone, read first: what follows may be anything.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl Contents {
    /// In one descriptor, with what is in the packer already.
    pub(super) fn seal(self, mut packer: Packer) -> Result<OwnedFd, PackError> {
        let host = Socket { listener: packer.add(self.host), file: self.file };
        let agent = self.agent.map(|(listener, file)| Socket { listener: packer.add(listener), file });
        let quarantined = self.quarantined.into_iter().map(|(name, count)| (name.to_string(), count));
        let document = Document {
            version: VERSION,
            pid: std::process::id(),
            talon: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            agent,
            quarantined: quarantined.collect(),
            processes: self.processes,
        };
        Ok(parcel::seal(&serde_json::to_vec(&document)?, packer)?)
    }
}

impl Received {
    /// From a parcel, which stays as it is.
    pub(super) fn open(parcel: impl AsFd) -> Result<Self, UnpackError> {
        let (document, mut unpacker) = parcel::open(parcel.as_fd())?;
        let Versioned { version } = serde_json::from_slice(&document)?;
        if version != VERSION {
            return Err(UnpackError::Version(version));
        }
        let Document { pid, talon, host, agent, quarantined, processes, .. } =
            serde_json::from_slice(&document)?;
        let listener = UnixListener::from(unpacker.take(host.listener)?);
        listener.set_nonblocking(true).map_err(UnpackError::Host)?;
        let agent = match agent {
            Some(Socket { listener, file }) => {
                let listener = UnixListener::from(unpacker.take(listener)?);
                listener.set_nonblocking(true).map_err(UnpackError::Agent)?;
                Some((listener, file))
            }
            None => None,
        };
        let processes = Inherited { handed: processes, unpacker };
        Ok(Self { pid, talon, host: listener, file: host.file, agent, quarantined, processes })
    }
}
