//! The JSON document that accompanies the descriptors of a handover.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use serde::{Deserialize, Serialize};
use talon_control::fd_bundle::{self, FdIndex, MissingFdError, OpenError, Packer, SealError};
use talon_plugin::handover::{HandoverDocument, HandoverError, ReceivedHandover};
use talon_plugin_config::PluginName;

use crate::socket::FileIdentity;

/// A different number means an incompatible document, which is refused. A field with a default can be added
/// without a new number.
const VERSION: u32 = 1;

/// The document.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Document {
    version: u32,
    /// The pid of the old supervisor.
    pid: u32,
    /// The version of its program, for the log.
    talon: String,
    host: SocketRecord,
    /// `agent.sock`, if there is an agent.
    #[serde(default)]
    agent: Option<SocketRecord>,
    /// The gateway's listener, if there is one.
    #[serde(default)]
    gateway: Option<FdIndex>,
    /// Quarantined plugins, each with its amount of neutralized syntax.
    #[serde(default)]
    quarantined: Vec<(String, u32)>,
    processes: HandoverDocument,
}

/// A listening socket, such as `host.sock`.
#[derive(Debug, Serialize, Deserialize)]
struct SocketRecord {
    listener: FdIndex,
    /// The file, if the supervisor created it.
    file: Option<FileIdentity>,
}

/// Everything that a supervisor hands over.
pub(super) struct HandoverContents {
    pub(super) host: OwnedFd,
    pub(super) file: Option<FileIdentity>,
    pub(super) agent: Option<(OwnedFd, Option<FileIdentity>)>,
    pub(super) gateway: Option<OwnedFd>,
    pub(super) quarantined: Vec<(PluginName, u32)>,
    pub(super) processes: HandoverDocument,
}

/// Everything that a supervisor receives.
#[derive(Debug)]
pub(super) struct SupervisorHandover {
    /// The pid of the old supervisor.
    pub(super) pid: u32,
    /// The version of its program.
    pub(super) talon: String,
    pub(super) host: UnixListener,
    pub(super) file: Option<FileIdentity>,
    pub(super) agent: Option<(UnixListener, Option<FileIdentity>)>,
    pub(super) gateway: Option<OwnedFd>,
    pub(super) quarantined: Vec<(String, u32)>,
    pub(super) processes: ReceivedHandover,
}

/// Why the state could not be packed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackError {
    #[error(transparent)]
    Processes(#[from] HandoverError),
    #[error("host.sock cannot be duplicated: {0}")]
    Host(#[source] std::io::Error),
    #[error("agent.sock cannot be duplicated: {0}")]
    Agent(#[source] std::io::Error),
    #[error("the gateway's listener cannot be duplicated: {0}")]
    Gateway(#[source] std::io::Error),
    #[error("what is handed over cannot be written down: {0}")]
    Write(#[from] serde_json::Error),
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Why the state could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("what was handed over cannot be read: {0}")]
    Read(#[from] serde_json::Error),
    #[error("what was handed over is of version {0}, and this program reads version {VERSION}")]
    Version(u32),
    #[error(transparent)]
    MissingFd(#[from] MissingFdError),
    #[error("host.sock cannot be used: {0}")]
    Host(#[source] std::io::Error),
    #[error("agent.sock cannot be used: {0}")]
    Agent(#[source] std::io::Error),
}

/// Only the version, which is read first: the rest depends on it.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl HandoverContents {
    /// Seals everything into one descriptor, with what the packer holds already.
    pub(super) fn seal(self, mut packer: Packer) -> Result<OwnedFd, PackError> {
        let host = SocketRecord { listener: packer.add(self.host), file: self.file };
        let agent = self.agent.map(|(listener, file)| SocketRecord { listener: packer.add(listener), file });
        let quarantined = self.quarantined.into_iter().map(|(name, count)| (name.to_string(), count));
        let document = Document {
            version: VERSION,
            pid: std::process::id(),
            talon: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            agent,
            gateway: self.gateway.map(|listener| packer.add(listener)),
            quarantined: quarantined.collect(),
            processes: self.processes,
        };
        Ok(fd_bundle::seal(&serde_json::to_vec(&document)?, packer)?)
    }
}

impl SupervisorHandover {
    /// Opens a bundle, which remains unchanged.
    pub(super) fn open(bundle: impl AsFd) -> Result<Self, UnpackError> {
        let (document, mut unpacker) = fd_bundle::open(bundle.as_fd())?;
        let Versioned { version } = serde_json::from_slice(&document)?;
        if version != VERSION {
            return Err(UnpackError::Version(version));
        }
        let Document { pid, talon, host, agent, gateway, quarantined, processes, .. } =
            serde_json::from_slice(&document)?;
        let listener = UnixListener::from(unpacker.take(host.listener)?);
        listener.set_nonblocking(true).map_err(UnpackError::Host)?;
        let agent = match agent {
            Some(SocketRecord { listener, file }) => {
                let listener = UnixListener::from(unpacker.take(listener)?);
                listener.set_nonblocking(true).map_err(UnpackError::Agent)?;
                Some((listener, file))
            }
            None => None,
        };
        let gateway = gateway.map(|listener| unpacker.take(listener)).transpose()?;
        let processes = ReceivedHandover { document: processes, unpacker };
        Ok(Self { pid, talon, host: listener, file: host.file, agent, gateway, quarantined, processes })
    }
}
