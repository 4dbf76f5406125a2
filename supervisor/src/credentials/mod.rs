//! Access to the gateway: tokens, sessions of browsers, and the links that open these.
//!
//! ```text
//! talon token create ─ host.sock ─► issue ─► store (talon-state: digests alone) ── the secret goes to its caller alone
//! client ─ HTTP ─► talon-gateway: SHA-256 ─ its connection ─► check: the table in memory ─► whom it stands for
//! ```
//!
//! The gateway, which anybody on the network may reach, neither issues nor stores credentials: it asks for each request, by digest.
//!
//! | module | contents |
//! |---|---|
//! | `secret` | random secrets and their digests |
//! | `record` | what is known of a credential |
//! | `grant` | what a token may be issued for |
//! | `store` | where records survive a restart |
//! | `table` | all records in memory, and what can be done with them |
//! | `links` | links for one use |

mod grant;
mod links;
mod record;
mod secret;
mod store;
mod table;

pub(crate) use grant::TokenGrant;
pub(crate) use secret::Digest;
pub use store::StateStore;
pub(crate) use table::CredentialError;
pub use table::Credentials;
