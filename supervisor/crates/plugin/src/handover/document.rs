//! What a supervisor writes down about the processes that it hands over. It is read by the next version of this program, so that
//! it has a version of its own.
//!
//! A newer supervisor may add fields that have a default; whoever does not know them leaves them out. Anything else, such as a
//! field that means something else now, takes a new [`VERSION`], and then nothing is taken over: every plugin starts cold.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de};
use talon_control::parcel::Ticket;
use talon_jail::Who;

use crate::spec::Dialect;

/// The version of the document that is written, and the one that is read.
pub(crate) const VERSION: u32 = 1;

/// The most processes that a document may speak of: what [`MAX_PLUGINS`](crate::MAX_PLUGINS) with some instances each come to.
/// One that speaks of more is refused, and every plugin starts cold.
pub(crate) const MAX_PROCESSES: usize = 4096;

/// All that a registry hands over. What it is made of is this crate's own business; it is written and read as one value. It holds
/// the keys of connections that are encrypted, so it belongs into memory that nobody else reads, and nowhere else.
#[derive(Debug, Serialize, Deserialize)]
pub struct Handed {
    pub(crate) version: Version,
    /// The runtime directory that the processes have their directories in.
    pub(crate) runtime_dir: PathBuf,
    /// Its lock.
    pub(crate) lock: Ticket,
    /// The lock of the place for views.
    pub(crate) views_lock: Ticket,
    #[serde(deserialize_with = "bounded")]
    pub(crate) processes: Vec<HandedProcess>,
}

impl Handed {
    /// Nothing yet, but the directories.
    pub(crate) fn new(runtime_dir: &Path, lock: Ticket, views_lock: Ticket) -> Self {
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

/// [`VERSION`], and nothing else can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version;

/// One process that was ready for calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandedProcess {
    /// The plugin's configured name.
    pub(crate) plugin: String,
    pub(crate) instance: u32,
    /// Of the spec that it was started from.
    pub(crate) fingerprint: String,
    /// Of the program, or of its directory.
    pub(crate) digest: String,
    /// Who its program is.
    pub(crate) program: Who,
    pub(crate) monitor: HandedMonitor,
    pub(crate) stdout: Ticket,
    pub(crate) stderr: Ticket,
    pub(crate) dir: HandedDir,
    pub(crate) view: Option<HandedView>,
    /// The directory of its cgroup.
    pub(crate) group: Option<PathBuf>,
    /// The socket behind which its way out is.
    pub(crate) proxy: Option<Ticket>,
    /// The socket behind which its key-values are.
    pub(crate) state: Option<Ticket>,
    /// Who we are to it, where its connections are encrypted.
    pub(crate) identity: Option<HandedIdentity>,
    /// The dialect of its handshake.
    pub(crate) handshake: Dialect,
    /// How it is spoken to.
    pub(crate) dialect: Dialect,
    pub(crate) address: HandedAddress,
    /// The certificate that its server shows, as its handshake had it.
    pub(crate) server_cert: Option<String>,
    /// What its jail enforces.
    pub(crate) report: talon_jail::Report,
    /// How often a process was started for this instance.
    pub(crate) starts: u64,
    /// Since when it is ready, in milliseconds since 1970.
    pub(crate) ready_since_unix_ms: u64,
    /// How long its start took.
    pub(crate) start_to_ready_us: Option<u64>,
}

/// The process below which all of a plugin's are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedMonitor {
    pub(crate) who: Who,
    pub(crate) control: Ticket,
    pub(crate) pidfd: Ticket,
    /// Of the program.
    pub(crate) program: Ticket,
}

/// A private directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedDir {
    pub(crate) name: String,
    /// What the plugin finds at its path.
    pub(crate) inside: Option<Ticket>,
    /// The listening socket that the plugin was handed.
    pub(crate) listening: Option<Ticket>,
}

/// What a process runs from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedView {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) script: Option<String>,
    pub(crate) gid: Option<u32>,
}

/// A certificate and its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandedIdentity {
    /// DER, in hexadecimal digits.
    pub(crate) certificate: String,
    /// PKCS #8, in hexadecimal digits.
    pub(crate) key: String,
}

/// Where a process listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandedAddress {
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

/// As few as there may be.
fn bounded<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<HandedProcess>, D::Error> {
    let processes = Vec::deserialize(deserializer)?;
    if processes.len() > MAX_PROCESSES {
        return Err(de::Error::custom(format_args!("more than {MAX_PROCESSES} processes are handed over")));
    }
    Ok(processes)
}

/// The key stays out of every log.
impl std::fmt::Debug for HandedIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HandedIdentity")
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
