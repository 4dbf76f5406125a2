//! The document in which a supervisor describes the processes that it hands over. The next version of this
//! program reads it, so the document has its own version.
//!
//! A newer supervisor may add fields that have a default; readers that do not know them ignore them. Any
//! other change, such as a new meaning of a field, needs a new [`VERSION`]; then nothing is taken over, and
//! every plugin starts fresh.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de};
use talon_control::fd_bundle::FdIndex;
use talon_egress::ListenerPurpose;
use talon_jail::ProcessIdentity;

use talon_plugin_client::connect::IdentityRecord;
use talon_plugin_config::host_port::{HostPort, HostPortError};
use talon_plugin_config::spec::Dialect;

/// The version of the document that is written and accepted.
pub(crate) const VERSION: u32 = 1;

/// The most processes in one document: what [`MAX_PLUGINS`](crate::MAX_PLUGINS) with a few instances each
/// come to. A document with more is refused, and every plugin starts fresh.
pub(crate) const MAX_PROCESSES: usize = 4096;

/// Everything that a registry hands over. Its fields are private to this crate; it is written and read as one
/// value. It holds the keys of encrypted connections, so it must stay in private memory.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandoverDocument {
    pub(crate) version: Version,
    /// The runtime directory that contains the processes' directories.
    pub(crate) runtime_dir: PathBuf,
    /// The descriptor of its lock.
    pub(crate) lock: FdIndex,
    /// The lock of the directory of views.
    pub(crate) views_lock: FdIndex,
    #[serde(deserialize_with = "bounded")]
    pub(crate) processes: Vec<ProcessRecord>,
}

impl HandoverDocument {
    /// A document without processes.
    pub(crate) fn new(runtime_dir: &Path, lock: FdIndex, views_lock: FdIndex) -> Self {
        Self {
            version: Version,
            runtime_dir: runtime_dir.to_owned(),
            lock,
            views_lock,
            processes: Vec::new(),
        }
    }

    /// How many processes are handed over.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.len()
    }
}

/// Stands for [`VERSION`]; reading any other version is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version;

/// One process that was ready for calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    /// The plugin's configured name.
    pub(crate) plugin: String,
    pub(crate) instance: u32,
    /// The fingerprint of the spec that it was started from.
    pub(crate) fingerprint: String,
    /// The digest of the program, or of its directory.
    pub(crate) digest: String,
    /// The program's process.
    pub(crate) program: ProcessIdentity,
    pub(crate) monitor: MonitorRecord,
    pub(crate) stdout: FdIndex,
    pub(crate) stderr: FdIndex,
    pub(crate) dir: DirRecord,
    pub(crate) view: Option<ViewRecord>,
    /// The directory of its cgroup.
    pub(crate) group: Option<PathBuf>,
    /// The listening socket of its egress proxy.
    pub(crate) proxy: Option<FdIndex>,
    /// The proxy's listening sockets inside its network.
    #[serde(default)]
    pub(crate) inside: Vec<InnerSocketRecord>,
    /// The listening socket of its key-value store.
    pub(crate) state: Option<FdIndex>,
    /// The listening socket for completions of language models.
    #[serde(default)]
    pub(crate) model: Option<FdIndex>,
    /// The client certificate, if its connections are encrypted.
    pub(crate) identity: Option<IdentityRecord>,
    /// The dialect of its handshake.
    pub(crate) handshake: Dialect,
    /// The dialect it is called in.
    pub(crate) dialect: Dialect,
    pub(crate) address: AddressRecord,
    /// The certificate that its server presents, as in its handshake.
    pub(crate) server_cert: Option<String>,
    /// What its jail enforces.
    pub(crate) report: talon_jail::Report,
    /// How many processes were started for this instance.
    pub(crate) starts: u64,
    /// When it became ready, in milliseconds since 1970.
    pub(crate) ready_since_unix_ms: u64,
    /// How long its start took.
    pub(crate) start_to_ready_us: Option<u64>,
}

/// The monitor, an ancestor of all of a plugin's processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MonitorRecord {
    pub(crate) who: ProcessIdentity,
    pub(crate) control: FdIndex,
    pub(crate) pidfd: FdIndex,
    /// The program's pidfd.
    pub(crate) program: FdIndex,
}

/// A listening socket of the proxy's inside a plugin's network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InnerSocketRecord {
    pub(crate) socket: FdIndex,
    /// The `host:port` that connections to it are for; `None`: they carry requests that name it.
    pub(crate) target: Option<String>,
}

impl InnerSocketRecord {
    pub(crate) fn new(socket: FdIndex, purpose: &ListenerPurpose) -> Self {
        let target = match purpose {
            ListenerPurpose::Requests => None,
            ListenerPurpose::Tunnel(place) => Some(place.to_string()),
        };
        Self { socket, target }
    }

    pub(crate) fn purpose(&self) -> Result<ListenerPurpose, HostPortError> {
        self.target.as_ref().map_or(Ok(ListenerPurpose::Requests), |target| {
            HostPort::parse(target).map(ListenerPurpose::Tunnel)
        })
    }
}

/// A private directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirRecord {
    pub(crate) name: String,
    /// The mount that the plugin sees at this path.
    pub(crate) inside: Option<FdIndex>,
    /// The listening socket that was passed to the plugin.
    pub(crate) listening: Option<FdIndex>,
}

/// The view that a process runs from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewRecord {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) script: Option<String>,
    pub(crate) gid: Option<u32>,
}

/// Where a process listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AddressRecord {
    Unix(PathBuf),
    Tcp(std::net::SocketAddr),
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        VERSION.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            VERSION => Ok(Self),
            other => Err(de::Error::custom(format_args!(
                "what is handed over is of version {other}, and this supervisor reads version {VERSION}"
            ))),
        }
    }
}

/// Reads the processes and enforces [`MAX_PROCESSES`].
fn bounded<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<ProcessRecord>, D::Error> {
    let processes = Vec::deserialize(deserializer)?;
    if processes.len() > MAX_PROCESSES {
        return Err(de::Error::custom(format_args!("more than {MAX_PROCESSES} processes are handed over")));
    }
    Ok(processes)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
