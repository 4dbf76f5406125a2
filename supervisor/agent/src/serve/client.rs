//! The client of a connection, as the supervisor describes it, and its permissions.

use std::sync::Arc;

use talon_listen::delegation::{DelegatedOrigin, DelegatedRole, Delegation};
use talon_proto::agent::AttachClient;
use talon_store::Session;
use talon_store::limits::MAX_NAME_BYTES;
use tonic::metadata::MetadataMap;
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
    /// Whether the connection makes requests for others: each says for whom, and `role` is the most that it may have.
    pub(crate) delegates: bool,
    /// The channel that a request made for somebody else comes from; `None` on other connections.
    pub(crate) channel: Option<Arc<str>>,
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
        let AttachClient { uid, gid, pid, sender, role, origin, delegates } = attach;
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
        Ok(Self { uid, gid, pid, sender: sender.into(), role, origin, delegates, channel: None })
    }
}

/// Whose limits a request counts against.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Principal {
    /// A user of this machine.
    Uid(u32),
    /// Somebody for whom the gateway asks.
    Subject(Arc<str>),
}

impl Client {
    /// The client of a request of this connection: on a delegating one the one that the metadata names.
    ///
    /// # Errors
    /// UNAUTHENTICATED if a delegating connection does not say for whom it asks.
    pub(super) fn of_request(&self, metadata: &MetadataMap) -> Result<Self, Status> {
        if !self.delegates {
            return Ok(self.clone());
        }
        let ceiling = match self.role {
            Role::Call => DelegatedRole::Call,
            Role::Operate => DelegatedRole::Operate,
            Role::Admin => DelegatedRole::Admin,
        };
        let Delegation { subject, channel, role, origin } = Delegation::of(metadata, ceiling)?;
        let role = match role {
            DelegatedRole::Call => Role::Call,
            DelegatedRole::Operate => Role::Operate,
            DelegatedRole::Admin => Role::Admin,
        };
        let origin = match origin {
            DelegatedOrigin::Person => Origin::Person,
            DelegatedOrigin::Model => Origin::Model,
            DelegatedOrigin::Program => Origin::Program,
        };
        Ok(Self { sender: subject, role, origin, channel: Some(channel), ..self.clone() })
    }

    /// Whose limits its requests count against.
    pub(super) fn principal(&self) -> Principal {
        if self.delegates { Principal::Subject(Arc::clone(&self.sender)) } else { Principal::Uid(self.uid) }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn client(delegates: bool) -> Client {
        let attach = AttachClient {
            uid: 7,
            sender: "gw:talon/gateway".to_owned(),
            role: "operate".to_owned(),
            origin: "program".to_owned(),
            delegates,
            ..AttachClient::default()
        };
        Client::try_from(attach).unwrap()
    }

    fn metadata(role: &'static str) -> MetadataMap {
        let mut metadata = MetadataMap::new();
        metadata.insert("talon-subject", "gw:telegram/42".parse().unwrap());
        metadata.insert("talon-channel", "telegram".parse().unwrap());
        metadata.insert("talon-role", role.parse().unwrap());
        metadata.insert("talon-origin", "person".parse().unwrap());
        metadata
    }

    // Promises: GW-11, GW-12, GW-13
    #[test]
    fn a_delegating_connection_says_for_whom_each_request_is_and_no_other_is_believed() {
        let asked = client(true).of_request(&metadata("admin")).unwrap();
        assert_eq!(
            (&*asked.sender, asked.role, asked.origin),
            ("gw:telegram/42", Role::Operate, Origin::Person)
        );
        assert_eq!(asked.channel.as_deref(), Some("telegram"));
        assert_eq!(asked.principal(), Principal::Subject("gw:telegram/42".into()));
        let nobody = client(true).of_request(&MetadataMap::new()).unwrap_err();
        assert_eq!(nobody.code(), tonic::Code::Unauthenticated);
        assert!(nobody.message().contains("talon-subject"), "{}", nobody.message());
        let own = client(false).of_request(&metadata("admin")).unwrap();
        assert_eq!((own.clone(), own.principal()), (client(false), Principal::Uid(7)));
    }
}
