//! Whom a secret stands for.

use async_trait::async_trait;
use tonic::Status;

use super::caller::Caller;
use super::credential::Credential;
use crate::problem::{Problem, ProblemKind};

/// Says whom a credential stands for. Asked for every request, so that a revoked one holds no more.
#[async_trait]
pub trait Authenticate: Send + Sync + 'static {
    /// The caller of a bearer token or a browser's session.
    ///
    /// # Errors
    /// [`AuthenticateError`]
    async fn caller(&self, credential: &Credential) -> Result<Caller, AuthenticateError>;
}

/// Why a credential stands for nobody.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuthenticateError {
    /// It is unknown, expired or revoked: which of these is not said.
    #[error("the credential does not hold: it is unknown, expired or revoked")]
    Invalid,
    /// The supervisor cannot be asked.
    #[error("the supervisor cannot be asked: {0}")]
    Backend(#[from] Status),
    /// No provider accepts it, and at least one cannot be asked: it may be a good one.
    #[error("an auth provider cannot be asked")]
    NoProvider,
    /// What the supervisor answered is of another version.
    #[error("the supervisor gave an answer that is not understood: {0}")]
    Answer(String),
}

impl From<AuthenticateError> for Problem {
    fn from(error: AuthenticateError) -> Self {
        match error {
            AuthenticateError::Invalid => Self::new(
                ProblemKind::Unauthenticated,
                "the credential is unknown, expired or revoked: get another (`talon token create`, `talon gateway open`)",
            ),
            AuthenticateError::Backend(status) => status.into(),
            AuthenticateError::NoProvider => {
                Self::new(ProblemKind::Unavailable, "the auth provider cannot be asked now: try again")
            }
            AuthenticateError::Answer(_) => Self::defect(&error),
        }
    }
}
