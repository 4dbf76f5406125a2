//! The client of a connection, as the supervisor describes it, and its permissions.

use std::sync::Arc;

use talon_proto::agent::AttachClient;
use talon_store::Session;
use talon_store::limits::MAX_NAME_BYTES;
use tonic::{Request, Status};

/// A client's role. A higher role includes the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// May work in its own sessions.
    Call,
    /// May see and change all sessions.
    Operate,
    /// The same.
    Admin,
}

impl Role {
    /// The name, as the supervisor writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

/// The kind of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A person.
    Person,
    /// A model.
    Model,
    /// A program.
    Program,
}

impl Origin {
    /// The name, as the supervisor writes it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Model => "model",
            Self::Program => "program",
        }
    }
}

/// The client of a connection, for as long as the connection lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) uid: u32,
    /// For the audit log only.
    pub(crate) gid: u32,
    /// For the log only.
    pub(crate) pid: u32,
    /// The user whose sessions the client sees.
    pub(crate) sender: Arc<str>,
    pub(crate) role: Role,
    pub(crate) origin: Origin,
}

/// The supervisor's description of a client is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("its role is none: {0:?}")]
    Role(String),
    #[error("its origin is none: {0:?}")]
    Origin(String),
    #[error("its sender is no name")]
    Sender,
    #[error("there are too many connections")]
    TooMany,
}

impl TryFrom<AttachClient> for Client {
    type Error = ClientError;

    fn try_from(attach: AttachClient) -> Result<Self, ClientError> {
        let AttachClient { uid, gid, pid, sender, role, origin } = attach;
        let role = match role.as_str() {
            "call" => Role::Call,
            "operate" => Role::Operate,
            "admin" => Role::Admin,
            _ => return Err(ClientError::Role(role)),
        };
        let origin = match origin.as_str() {
            "person" => Origin::Person,
            "model" => Origin::Model,
            "program" => Origin::Program,
            _ => return Err(ClientError::Origin(origin)),
        };
        if sender.is_empty() || sender.len() > MAX_NAME_BYTES || sender.chars().any(char::is_control) {
            return Err(ClientError::Sender);
        }
        Ok(Self { uid, gid, pid, sender: sender.into(), role, origin })
    }
}

impl Client {
    /// Returns the client of a request.
    ///
    /// # Errors
    /// INTERNAL: every connection carries its client.
    pub(super) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let client = request.extensions().get::<Self>();
        client.cloned().ok_or_else(|| Status::internal("a request without a client"))
    }

    /// Whether the client sees all users' sessions.
    pub(super) fn is_operator(&self) -> bool {
        self.role >= Role::Operate
    }

    /// Rejects a client that does not see all users' sessions.
    ///
    /// # Errors
    /// PERMISSION_DENIED
    pub(super) fn require_operator(&self, what: &str) -> Result<(), Status> {
        if self.is_operator() {
            return Ok(());
        }
        Err(Status::permission_denied(format!(
            "{what} needs the role operate; {} has the role call: ask the operator for an entry under host.peers",
            self.sender
        )))
    }

    /// Whether the client may see a session.
    pub(super) fn can_see(&self, session: &Session) -> bool {
        self.is_operator() || *session.sender == *self.sender
    }
}
