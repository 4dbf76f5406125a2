//! Who is at the other end of a connection, as the supervisor says, and what that one may do.

use std::sync::Arc;

use talon_proto::agent::AttachClient;
use talon_store::Session;
use talon_store::limits::MAX_NAME_BYTES;
use tonic::{Request, Status};

/// What somebody may do. A higher role includes the lower ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Work in their own sessions.
    Call,
    /// See and do everything with everybody's.
    Operate,
    /// The same.
    Admin,
}

/// As what their wishes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A person's.
    Person,
    /// A model's.
    Model,
    /// A program's.
    Program,
}

/// Whoever is at the other end, for as long as the connection lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) uid: u32,
    /// For the log only.
    pub(crate) pid: u32,
    /// Whose sessions they see.
    pub(crate) sender: Arc<str>,
    pub(crate) role: Role,
    pub(crate) origin: Origin,
}

/// What was said of a client has no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadClient {
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
    type Error = BadClient;

    fn try_from(attach: AttachClient) -> Result<Self, BadClient> {
        let AttachClient { uid, pid, sender, role, origin, .. } = attach;
        let role = match role.as_str() {
            "call" => Role::Call,
            "operate" => Role::Operate,
            "admin" => Role::Admin,
            _ => return Err(BadClient::Role(role)),
        };
        let origin = match origin.as_str() {
            "person" => Origin::Person,
            "model" => Origin::Model,
            "program" => Origin::Program,
            _ => return Err(BadClient::Origin(origin)),
        };
        if sender.is_empty() || sender.len() > MAX_NAME_BYTES || sender.chars().any(char::is_control) {
            return Err(BadClient::Sender);
        }
        Ok(Self { uid, pid, sender: sender.into(), role, origin })
    }
}

impl Client {
    /// Who asks.
    ///
    /// # Errors
    /// INTERNAL: every connection carries its client.
    pub(super) fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        let client = request.extensions().get::<Self>();
        client.cloned().ok_or_else(|| Status::internal("a request without a client"))
    }

    /// Whether they see everybody's.
    pub(super) fn operates(&self) -> bool {
        self.role >= Role::Operate
    }

    /// Refuses who does not.
    ///
    /// # Errors
    /// PERMISSION_DENIED
    pub(super) fn has_to_operate(&self, what: &str) -> Result<(), Status> {
        if self.operates() {
            return Ok(());
        }
        Err(Status::permission_denied(format!(
            "{what} needs the role operate; {} has the role call: ask the operator for an entry under host.peers",
            self.sender
        )))
    }

    /// Whether they may see a session.
    pub(super) fn sees(&self, session: &Session) -> bool {
        self.operates() || *session.sender == *self.sender
    }
}
