//! Credentials, as the supervisor knows them.

use std::time::Duration;

use async_trait::async_trait;
use talon_child::SharedRequests;
use talon_proto::host::{self, CheckCredentialRequest, CredentialChange, WatchCredentialsRequest};
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::backends::Backends;
use crate::identity::{
    Authenticate, AuthenticateError, Caller, Credential, Revocations, Scope, Scopes, Subject, Via,
};

/// The wait before the supervisor is asked again for revocations: it is being replaced, or has no state.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The longest time for one check, since those that come meanwhile wait for its end. A check takes milliseconds, and seconds while the
/// supervisor is being replaced. Past it those who wait get 504, and the next check is made.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the supervisor about the credential of each request after it came: one that was revoked a moment ago holds no more. Requests that
/// come while it is asked about theirs share the next question.
pub(crate) struct HostCredentials {
    backends: Backends,
    /// By id and digest.
    checks: SharedRequests<(String, [u8; 32]), Result<Caller, AuthenticateError>>,
}

impl HostCredentials {
    pub(crate) fn new(backends: Backends) -> Self {
        Self { backends, checks: SharedRequests::default() }
    }
}

#[async_trait]
impl Authenticate for HostCredentials {
    async fn caller(&self, credential: &Credential) -> Result<Caller, AuthenticateError> {
        let (id, digest) = (credential.id().to_owned(), *credential.digest());
        self.checks.ask((id.clone(), digest), || check(self.backends.clone(), id, digest)).await
    }
}

async fn check(backends: Backends, id: String, digest: [u8; 32]) -> Result<Caller, AuthenticateError> {
    let request = CheckCredentialRequest { id, digest: digest.to_vec() };
    let mut host = backends.host(&Caller::gateway());
    let checked = timeout(CHECK_TIMEOUT, host.check_credential(request)).await;
    let checked = checked.unwrap_or_else(|_| {
        let seconds = CHECK_TIMEOUT.as_secs();
        Err(Status::deadline_exceeded(format!(
            "the supervisor did not say within {seconds} s whether the credential holds: try again, and see `talon status`"
        )))
    });
    match checked {
        Ok(answer) => caller(answer.into_inner().credential.unwrap_or_default()),
        Err(status) if status.code() == Code::Unauthenticated => Err(AuthenticateError::Invalid),
        Err(status) => Err(AuthenticateError::Backend(status)),
    }
}

/// Tells of revocations for as long as it is polled. While nobody can be asked, what is open is closed: its clients show their
/// credentials anew.
pub(crate) async fn follow_revocations(backends: Backends, revocations: Revocations) {
    loop {
        let watched = backends.host(&Caller::gateway()).watch_credentials(WatchCredentialsRequest {}).await;
        if let Ok(changes) = watched {
            let mut changes = changes.into_inner();
            while let Ok(Some(CredentialChange { revoked_id })) = changes.message().await {
                revocations.revoke(&revoked_id);
            }
        }
        revocations.revoke_all();
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

fn caller(known: host::Credential) -> Result<Caller, AuthenticateError> {
    let scope = |name: &String| {
        Scope::parse(name).ok_or_else(|| AuthenticateError::Answer(format!("the scope {name:?}")))
    };
    let via = match known.kind.as_str() {
        "token" => Via::Token(known.id.as_str().into()),
        "session" => Via::BrowserSession(known.id.as_str().into()),
        kind => return Err(AuthenticateError::Answer(format!("the kind {kind:?}"))),
    };
    Ok(Caller {
        subject: Subject::parse(&known.subject)
            .map_err(|error| AuthenticateError::Answer(error.to_string()))?,
        scopes: known.scopes.iter().map(scope).collect::<Result<Scopes, _>>()?,
        channel: known.channel.as_str().into(),
        session: Some(known.session_id.as_str()).filter(|id| !id.is_empty()).map(Into::into),
        via,
    })
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
