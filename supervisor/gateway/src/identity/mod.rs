//! Who a request is for.
//!
//! | module | contents |
//! |---|---|
//! | `caller` | the [`Caller`] of a request, which routes take as an argument |
//! | `scope` | what a credential permits, and the role that goes with it |
//! | `subject` | for whom a request counts at host and agent |
//! | `credential` | a secret as a client shows it |
//! | `authenticate` | whom a secret stands for |
//! | `address` | the address of a client, also behind a proxy |
//! | `rates` | how many requests a client may send |
//! | `revocations` | credentials that are revoked while something of theirs is open |

mod address;
mod authenticate;
mod caller;
mod credential;
mod rates;
mod revocations;
mod scope;
mod subject;

pub use address::{ClientAddress, ConnectedFrom, sender};
pub use authenticate::{Authenticate, AuthenticateError};
pub use caller::{Caller, Via};
pub use credential::{Credential, MalformedCredentialError, SESSION_TOKEN, session_cookie};
pub use rates::Rates;
pub use revocations::{CredentialWatch, Revocations};
pub use scope::{Role, Scope, Scopes};
pub use subject::{Subject, SubjectError};
