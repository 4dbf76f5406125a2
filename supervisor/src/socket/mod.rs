//! The supervisor's unix sockets: `host.sock`, `agent.sock` and `admin.sock` are bound and accepted alike.
//!
//! | module | contents |
//! |---|---|
//! | `bind` | a socket file with its owner, group and mode |
//! | `access` | the users and groups that may connect |
//! | `accept` | the accept loop: peers and connection limits |

mod accept;
mod access;
mod bind;

pub use accept::PeerClassifier;
pub(crate) use accept::{ACCEPT_PAUSE, Acceptor};
pub use access::{ConnectGrants, grant_peers, set_grants};
pub use bind::{BindError, FileIdentity, HOST_SOCKET_NAME, HostSocket, SocketFile, bind_host, set_group};
pub(crate) use bind::{LiveSocket, bind_named};
