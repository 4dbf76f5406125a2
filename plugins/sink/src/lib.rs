//! What plugins that carry texts to a server share.
//!
//! | module | content |
//! |---|---|
//! | [`delivery`] | what a sink answers |
//! | [`connection`] | one connection to one host: through the supervisor's proxy if there is one |
//! | `endpoint` | endpoints, and why there is no connection to one |
//! | `proxy` | the proxy's side of that |
//! | [`target`], [`request`], [`answer`] | a URL; one HTTP request; what its answer means for a delivery |
//! | [`signature`] | the signature of a body, and whether one is genuine |
//! | [`channel_start`] | what every plugin of a chat service does when it starts |
//! | [`held_files`] | files that are asked for piece by piece, and downloaded whole |
//! | [`message_piece`] | texts within a service's limit for one message. Pure |
//! | [`edit_notices`] | when people are told that edits are not passed on. Pure |
//! | [`reconnect_wait`] | how long who listens waits until it tries again. Pure |
//! | [`trust`] | which certificates this machine trusts; TLS |
//! | [`text`] | a notification as text, in a given markup, within a limit |
//! | [`peer_text`] | what a server said, in a line that can be shown |

pub mod answer;
pub mod channel_start;
pub mod connection;
pub mod delivery;
pub mod edit_notices;
mod endpoint;
pub mod held_files;
pub mod message_piece;
pub mod peer_text;
mod proxy;
pub mod reconnect_wait;
pub mod request;
pub mod signature;
pub mod target;
pub mod text;
pub mod trust;
