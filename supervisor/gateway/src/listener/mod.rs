//! Connections: accepted within limits, with TLS if set, each served as HTTP/1.1.
//!
//! | module | contents |
//! |---|---|
//! | `accept` | the accept loop |
//! | `connection` | one connection |
//! | `server` | what serves connections: the router, certificates and limits |
//! | `limiter` | how many connections there are, in all and of one address |
//! | `stream` | a connection's socket, which holds its place until it is closed |
//! | `tls` | the certificate, replaced while connections come |
//! | `socket` | the listening socket: bound, or handed in |
//! | `traffic` | what is counted |
//!
//! HTTP/2 is not spoken: its streams would need a second set of limits beside those of connections.

mod accept;
mod connection;
mod limiter;
mod server;
mod socket;
mod stream;
mod tls;
mod traffic;

pub use accept::serve;
pub use server::Server;
pub use socket::{ListenError, bind, handed_in};
pub use tls::{Certificates, TlsError};
pub use traffic::Traffic;
