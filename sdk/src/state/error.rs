//! Why an operation on the state failed, classified by what a plugin can do about it.

use std::error::Error as _;
use std::fmt;

use talon_proto::state::QuotaExceeded;
use tonic::{Code, Status};

use super::{MAX_KEYS, MAX_UPDATES, SOCKET_ENV};

/// Why an operation on the state failed. A failed operation changed nothing, except where
/// [`StateError::Unavailable`] says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The host provides no state for this plugin.
    #[error("this host serves no state: {SOCKET_ENV} is not set")]
    NotServed,
    /// The plugin has reached its quota. It can still delete, and write smaller values.
    #[error("the quota is used up: {used} of {limit} {resource}, and {wanted} are wanted")]
    QuotaExceeded {
        /// Which quota.
        resource: StateResource,
        /// How much there is.
        used: u64,
        /// How much there may be.
        limit: u64,
        /// How much there would be.
        wanted: u64,
    },
    /// The host's state is not available now: try later. Reads may simply be repeated; whether a change was
    /// made is unknown, so check first, or make it with
    /// [`State::compare_and_set`](crate::State::compare_and_set).
    #[error("the host's state is not available for now: {message}")]
    Unavailable {
        /// The text of the host or the connection.
        message: String,
    },
    /// The request is invalid: an empty key, a key of more than 512 bytes, or a value of more than 1 MiB.
    #[error("the host's state refused: {message}")]
    Invalid {
        /// What the host said.
        message: String,
    },
    /// The host failed, or refused for a reason without a variant here.
    #[error("the host's state answered {code:?}: {message}")]
    Refused {
        /// The gRPC status.
        code: Code,
        /// What the host said.
        message: String,
    },
    /// Each attempt to update found that another writer had changed the key.
    #[error("`{key}` was changed by somebody else {MAX_UPDATES} times in a row")]
    Contended {
        /// Which key.
        key: String,
    },
    /// A value could not be read from or written as JSON.
    #[error("the value of `{key}` does not fit its type")]
    TypeMismatch {
        /// Which key.
        key: String,
        /// What did not fit.
        source: serde_json::Error,
    },
    /// A listing has too many keys.
    #[error("more than {MAX_KEYS} keys start with `{prefix}`: ask for a longer prefix")]
    TooManyKeys {
        /// The prefix asked for.
        prefix: String,
    },
}

/// What a quota counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateResource {
    /// Bytes of keys and values together.
    Bytes,
    /// Keys.
    Keys,
}

impl fmt::Display for StateResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Keys => "keys",
        })
    }
}

impl From<Status> for StateError {
    fn from(status: Status) -> Self {
        if let Some(error) = QuotaExceeded::of(&status).and_then(quota) {
            return error;
        }
        let message = status.message().to_owned();
        // A status with a source was made on this side, for a connection that could not be made or broke.
        if status.source().is_some() {
            return Self::Unavailable { message };
        }
        match status.code() {
            Code::InvalidArgument | Code::OutOfRange => Self::Invalid { message },
            // Without a quota's numbers it is the machine that is out of space, or too many requests at once;
            // a timeout on this side appears as "cancelled".
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::ResourceExhausted => {
                Self::Unavailable { message }
            }
            code => Self::Refused { code, message },
        }
    }
}

fn quota(numbers: QuotaExceeded) -> Option<StateError> {
    let QuotaExceeded { resource, used, limit, wanted } = numbers;
    let resource = match resource.as_str() {
        "bytes" => StateResource::Bytes,
        "keys" => StateResource::Keys,
        _ => return None,
    };
    Some(StateError::QuotaExceeded { resource, used, limit, wanted })
}
