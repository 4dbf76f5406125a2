//! The supervisor's unix sockets: `host.sock`, `agent.sock` and `admin.sock` are bound and accepted alike.
//!
//! | module | contents |
//! |---|---|
//! | `bind` | a socket file with its owner, group and mode |
//! | `accept` | the accept loop: peers and connection limits |

mod accept;
mod bind;

pub use accept::PeerClassifier;
pub(crate) use accept::{ACCEPT_PAUSE, Acceptor};
pub use bind::{BindError, FileIdentity, HOST_SOCKET_NAME, HostSocket, SocketFile, bind_host, set_group};
pub(crate) use bind::{LiveSocket, bind_named};
