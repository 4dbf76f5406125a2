//! Providers of identities, as `extensions.auth` names them: actions of plugins that say whose a credential is that no token of ours has.
//!
//! The providers of a credential's scheme are asked in the order of the list, until one accepts; one that fails has rejected. Who sent
//! the credential is not told why it was not accepted, and it stands in no log.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{AUTHORIZATION, USER_AGENT};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use talon_extensions::contract::{AuthError, AuthPeer, AuthReply, AuthRequest, AuthenticatedSubject};
use talon_extensions::{AuthEntry, Role, template};
use talon_proto::host::ExecuteRequest;
use tokio::time::{Instant, timeout};

use crate::backends::Backends;
use crate::identity::{AuthenticateError, Caller, Scope, Subject, Via};
use crate::role_answer::structured_answer;

/// The longest credential that is passed on, in bytes. Tokens of OpenID Connect have some kilobytes; a longer one stands for nobody.
const MAX_CREDENTIAL_BYTES: usize = 16 << 10;
/// How long an answer holds for further requests with the same credential: a plugin is not asked for each of them, and whoever is
/// locked out at the provider is locked out here within this time. An earlier expiry counts.
const ANSWER_HOLDS: Duration = Duration::from_secs(60);
/// How long something that is open, such as a WebSocket, lasts on one answer without an expiry: then its client shows the credential anew.
const OPEN_HOLDS: Duration = Duration::from_secs(60 * 60);
/// The most answers that are kept. Beyond it the oldest goes, and its credential is asked about again.
const MAX_ANSWERS: usize = 1024;
/// How long the supervisor may take beyond the deadline until it says that the plugin passed it. As in the agent.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);

/// A credential as it stands in the header `Authorization`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PresentedCredential {
    request: AuthRequest,
}

impl PresentedCredential {
    /// The credential of a request from `address`; `None` without one, with two, or with one that is too long.
    pub(crate) fn of_request(headers: &HeaderMap, address: IpAddr) -> Option<Self> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, credential) = value.to_str().ok()?.split_once(' ')?;
        let credential = credential.trim();
        if credential.is_empty() || credential.len() > MAX_CREDENTIAL_BYTES {
            return None;
        }
        let user_agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let peer = AuthPeer { address: address.to_string(), user_agent: user_agent.to_owned() };
        let (scheme, credential) = (scheme.to_ascii_lowercase(), credential.to_owned());
        Some(Self { request: AuthRequest { scheme, credential, peer } })
    }

    /// What an answer is kept under. The scheme has no space, so two different credentials never have one key.
    fn key(&self) -> [u8; 32] {
        let AuthRequest { scheme, credential, .. } = &self.request;
        Sha256::new().chain_update(scheme).chain_update(" ").chain_update(credential).finalize().into()
    }
}

impl fmt::Debug for PresentedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

/// The providers of a configuration, with their answers: another configuration begins without any. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AuthProviders(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<AuthEntry>,
    answers: Mutex<HashMap<[u8; 32], KeptAnswer>>,
}

#[derive(Debug)]
struct KeptAnswer {
    caller: Caller,
    until: Instant,
}

impl AuthProviders {
    /// These, in their order.
    #[must_use]
    pub fn new(entries: Vec<AuthEntry>) -> Self {
        Self(Arc::new(Inner { entries, answers: Mutex::default() }))
    }

    /// Whether one of them takes credentials of this scheme.
    pub(crate) fn take(&self, presented: &PresentedCredential) -> bool {
        self.of_scheme(presented).next().is_some()
    }

    /// Whose a credential is.
    ///
    /// # Errors
    /// [`AuthenticateError::Invalid`] if no provider accepts it.
    pub(crate) async fn caller(
        &self,
        backends: &Backends,
        presented: &PresentedCredential,
    ) -> Result<Caller, AuthenticateError> {
        let key = presented.key();
        if let Some(caller) = self.kept(&key) {
            return Ok(caller);
        }
        for entry in self.of_scheme(presented) {
            match ask(backends, entry, &presented.request).await {
                Ok(subject) => {
                    let Some(caller) = caller(entry, &subject) else {
                        tracing::warn!(
                            provider = entry.name(),
                            "an auth provider accepts a subject that is too long"
                        );
                        continue;
                    };
                    self.keep(key, &caller, remaining(&subject));
                    return Ok(caller);
                }
                Err(why) => tracing::info!(
                    provider = entry.name(),
                    why,
                    "an auth provider does not accept a credential"
                ),
            }
        }
        Err(AuthenticateError::Invalid)
    }

    fn of_scheme(&self, presented: &PresentedCredential) -> impl Iterator<Item = &AuthEntry> {
        let scheme = &presented.request.scheme;
        self.0.entries.iter().filter(move |entry| entry.scheme == *scheme)
    }

    fn kept(&self, key: &[u8; 32]) -> Option<Caller> {
        let answers = self.0.answers.lock();
        answers.get(key).filter(|answer| answer.until > Instant::now()).map(|answer| answer.caller.clone())
    }

    fn keep(&self, key: [u8; 32], caller: &Caller, remaining: Option<Duration>) {
        let now = Instant::now();
        let until = now + remaining.unwrap_or(ANSWER_HOLDS).min(ANSWER_HOLDS);
        let mut answers = self.0.answers.lock();
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, answer| answer.until > now);
        }
        if answers.len() >= MAX_ANSWERS {
            let oldest = answers.iter().min_by_key(|(_, answer)| answer.until).map(|(key, _)| *key);
            oldest.map(|key| answers.remove(&key));
        }
        answers.insert(key, KeptAnswer { caller: caller.clone(), until });
    }
}

/// How long a subject's credential holds, if its provider says so.
fn remaining(subject: &AuthenticatedSubject) -> Option<Duration> {
    let expires = u64::try_from(subject.expires_unix_ms?).ok()?;
    Some(Duration::from_millis(expires.saturating_sub(now_unix_ms())))
}

fn now_unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The caller that a subject is; `None` if its name is too long for one.
fn caller(entry: &AuthEntry, subject: &AuthenticatedSubject) -> Option<Caller> {
    let until = Instant::now() + remaining(subject).unwrap_or(OPEN_HOLDS).min(OPEN_HOLDS);
    Some(Caller {
        subject: Subject::of(entry.name(), &subject.subject).ok()?,
        // Both lists of scopes are one, in two crates.
        scopes: subject.scopes.iter().filter_map(|scope| Scope::parse(scope.as_str())).collect(),
        channel: "api".into(),
        session: None,
        via: Via::Provider { name: entry.name().into(), until },
    })
}

/// Asks one provider. The error is for the log: it has nothing of the credential.
async fn ask(
    backends: &Backends,
    entry: &AuthEntry,
    request: &AuthRequest,
) -> Result<AuthenticatedSubject, String> {
    // The type has string keys only.
    let asked = serde_json::to_value(request).unwrap_or_default();
    let arguments_json = match &entry.args {
        None => asked.to_string(),
        Some(args) => {
            let rendered = template::render(args, &asked);
            // What is wrong with a template may quote what it was rendered with.
            serde_json::Value::Object(
                rendered.map_err(|_| "its arguments cannot be made: see `args` of its entry")?,
            )
            .to_string()
        }
    };
    let (plugin, action) = entry.action.split_once('.').unwrap_or((&entry.action, ""));
    let call = ExecuteRequest {
        plugin: plugin.to_owned(),
        action: action.to_owned(),
        arguments_json,
        timeout_ms: u64::try_from(entry.deadline().as_millis()).unwrap_or(u64::MAX),
        role: Role::AuthProvider.as_str().to_owned(),
        extension: entry.name().to_owned(),
        ..ExecuteRequest::default()
    };
    let mut host = backends.host(&Caller::gateway());
    let answer = match timeout(entry.deadline() + DEADLINE_GRACE, host.execute(call)).await {
        Err(_) => return Err("it did not answer in time".to_owned()),
        Ok(Err(status)) => return Err(format!("the supervisor did not make its call ({:?})", status.code())),
        Ok(Ok(answer)) => answer.into_inner(),
    };
    let structured = structured_answer(&answer)?;
    let reply = AuthReply::parse(&structured).map_err(|error| for_log(&error, request))?;
    let now = i64::try_from(now_unix_ms()).unwrap_or(i64::MAX);
    reply.judge(entry, now).map_err(|error| for_log(&error, request))
}

/// An error without the credential, which an answer may repeat.
fn for_log(error: &AuthError, request: &AuthRequest) -> String {
    match error {
        // It quotes a part of the answer, in which a part of the credential may stand.
        AuthError::Shape(_) => {
            "its answer is none of an auth provider: see `talon extension test`".to_owned()
        }
        _ => error.to_string().replace(&request.credential, "[credential]"),
    }
}

#[cfg(test)]
#[path = "auth_providers_tests.rs"]
mod tests;
