//! The peer of a connection, and what it may do.
//!
//! | module | contents |
//! |---|---|
//! | `credentials` | who it is, from kernel credentials |
//! | `rights` | the role that a request needs, and what the peer sees |

mod credentials;
mod rights;

pub use credentials::{OwnService, Peer, Principal};
pub(crate) use rights::{AuthorizedPeer, Visibility, authorize, require};
