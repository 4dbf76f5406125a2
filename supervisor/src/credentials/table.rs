//! All credentials in memory, so that a check costs no request; every change is stored before it holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tonic::Status;

use super::grant::TokenGrant;
use super::links::{LINK_LIFETIME, Link, Links};
use super::record::{CredentialKind, CredentialRecord, NewRecord};
use super::secret::{Digest, NewSecret};
use super::store::StateStore;
use crate::to_wire::unix_ms;

/// How long a browser's session holds.
const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How exactly the last use is kept: a write for each request would cost more than the request.
const USE_RESOLUTION_MS: u64 = 60_000;
/// Revocations that a reader may lag behind; then it is told that all may have changed.
const REVOCATIONS: usize = 256;

/// Why something was not done with a credential.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    #[error(
        "there are {0} tokens and browser sessions, which is the most: revoke some (`talon token list`), or raise gateway.limits.credentials"
    )]
    Full(usize),
    #[error("there is no token {0}: see `talon token list`")]
    Unknown(String),
    #[error("the credential does not hold")]
    Invalid,
    #[error("the kernel gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
    #[error("the tokens cannot be read or stored now: {}", .0.message())]
    Store(Status),
}

/// The credentials. Cheap to clone.
#[derive(Clone)]
pub struct Credentials(Arc<Inner>);

struct Inner {
    store: StateStore,
    /// The most credentials.
    most: usize,
    /// Held while a change is stored, so that changes are stored in their order. A check does not wait for it.
    writes: tokio::sync::Mutex<()>,
    /// `None` until they were read.
    table: Mutex<Option<BTreeMap<String, CredentialRecord>>>,
    links: Links,
    revoked: broadcast::Sender<String>,
}

impl Credentials {
    /// At most so many. Nothing is read yet: that is done when they are first needed.
    #[must_use]
    pub fn new(store: StateStore, most: usize) -> Self {
        let (revoked, _) = broadcast::channel(REVOCATIONS);
        let (writes, table, links) = Default::default();
        Self(Arc::new(Inner { store, most, writes, table, links, revoked }))
    }

    /// Issues a token. Returns its secret, which is stored nowhere, and what is known of it.
    pub(crate) async fn issue(
        &self,
        grant: TokenGrant,
    ) -> Result<(String, CredentialRecord), CredentialError> {
        let (secret, lifetime) = (NewSecret::generate()?, grant.lifetime);
        let record = grant.record(&secret.id);
        self.add(secret, record, lifetime).await
    }

    /// Makes a link. Returns its code.
    pub(crate) fn link(
        &self,
        subject: String,
        scopes: Vec<String>,
    ) -> Result<(String, u64), CredentialError> {
        let secret = NewSecret::generate()?;
        let until = Instant::now() + LINK_LIFETIME;
        self.0.links.insert(secret.id, Link { subject, scopes, digest: secret.digest, until });
        Ok((secret.text, later(LINK_LIFETIME)))
    }

    /// Opens the session of a link. Returns its secret.
    pub(crate) async fn redeem(
        &self,
        id: &str,
        digest: Digest,
    ) -> Result<(String, CredentialRecord), CredentialError> {
        let link = self.0.links.redeem(id, digest).ok_or(CredentialError::Invalid)?;
        let record = NewRecord {
            kind: CredentialKind::Session,
            name: "browser".to_owned(),
            subject: link.subject,
            scopes: link.scopes,
            channel: "web".to_owned(),
            session_id: None,
        };
        self.add(NewSecret::generate()?, record, Some(SESSION_LIFETIME)).await
    }

    /// Whom a secret stands for.
    pub(crate) async fn check(&self, id: &str, digest: Digest) -> Result<CredentialRecord, CredentialError> {
        self.load().await?;
        let now = unix_ms(SystemTime::now());
        let (record, used) = self
            .with(|table| {
                let record = table.get_mut(id).filter(|record| record.matches(digest))?;
                let used = now.saturating_sub(record.last_used_unix_ms) >= USE_RESOLUTION_MS;
                if used {
                    record.last_used_unix_ms = now;
                }
                Some((record.clone(), used)).filter(|(record, _)| !record.has_expired(now))
            })
            .ok_or(CredentialError::Invalid)?;
        if used {
            self.store_use(record.clone());
        }
        Ok(record)
    }

    /// All that hold, the oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<CredentialRecord>, CredentialError> {
        self.load().await?;
        let now = unix_ms(SystemTime::now());
        let mut records = self.with(|table| {
            table.values().filter(|record| !record.has_expired(now)).cloned().collect::<Vec<_>>()
        });
        records.sort_by_key(|record| record.created_unix_ms);
        Ok(records)
    }

    /// Revokes one: it holds no more when this returns. What is begun is finished also when nobody waits for it any more; otherwise
    /// it might hold again after a restart, and nobody would know.
    pub(crate) async fn revoke(&self, id: &str) -> Result<(), CredentialError> {
        let (this, id) = (self.clone(), id.to_owned());
        let done = tokio::spawn(async move { this.remove(&id).await }).await;
        done.unwrap_or_else(|error| Err(CredentialError::Store(Status::internal(error.to_string()))))
    }

    async fn remove(&self, id: &str) -> Result<(), CredentialError> {
        self.load().await?;
        let _ordered = self.0.writes.lock().await;
        let Some(record) = self.with(|table| table.remove(id)) else {
            return Err(CredentialError::Unknown(
                talon_sanitize::Raw::from(id).line_within(64).into_string(),
            ));
        };
        // An error means that nobody watches.
        let _ = self.0.revoked.send(id.to_owned());
        self.0.store.delete(id).await.map_err(|status| {
            // It would hold again after a restart, so whoever revoked it has to try again.
            self.with(|table| table.insert(record.id.clone(), record));
            CredentialError::Store(status)
        })
    }

    /// The ids of credentials that are revoked from now on.
    pub(crate) fn revocations(&self) -> broadcast::Receiver<String> {
        self.0.revoked.subscribe()
    }

    async fn add(
        &self,
        secret: NewSecret,
        new: NewRecord,
        lifetime: Option<Duration>,
    ) -> Result<(String, CredentialRecord), CredentialError> {
        self.load().await?;
        let _ordered = self.0.writes.lock().await;
        let now = unix_ms(SystemTime::now());
        let count = || self.with(|table| table.len());
        let most = self.0.most;
        if count() >= most {
            self.forget_expired(now).await;
        }
        if count() >= most {
            return Err(CredentialError::Full(most));
        }
        let record = CredentialRecord::new(new, secret.id, secret.digest, now, lifetime.map(later));
        self.0.store.put(&record).await.map_err(CredentialError::Store)?;
        self.with(|table| table.insert(record.id.clone(), record.clone()));
        Ok((secret.text, record))
    }

    async fn forget_expired(&self, now: u64) {
        let expired: Vec<String> = self.with(|table| {
            table.values().filter(|record| record.has_expired(now)).map(|record| record.id.clone()).collect()
        });
        for id in expired {
            if let Err(status) = self.0.store.delete(&id).await {
                tracing::warn!(id, problem = status.message(), "an expired token cannot be deleted");
                return;
            }
            self.with(|table| table.remove(&id));
        }
    }

    /// Reads them from the store, if that was not done yet.
    async fn load(&self) -> Result<(), CredentialError> {
        if self.0.table.lock().is_some() {
            return Ok(());
        }
        let _ordered = self.0.writes.lock().await;
        if self.0.table.lock().is_none() {
            let records = self.0.store.load().await.map_err(CredentialError::Store)?;
            *self.0.table.lock() =
                Some(records.into_iter().map(|record| (record.id.clone(), record)).collect());
        }
        Ok(())
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, CredentialRecord>) -> T) -> T {
        act(self.0.table.lock().get_or_insert_default())
    }

    /// Stores the time of a use, beside the request that it is part of.
    fn store_use(&self, record: CredentialRecord) {
        let this = self.clone();
        tokio::spawn(async move {
            let _ordered = this.0.writes.lock().await;
            // One that was revoked meanwhile is not written again.
            if !this.with(|table| table.contains_key(&record.id)) {
                return;
            }
            if let Err(status) = this.0.store.put(&record).await {
                tracing::warn!(
                    id = record.id,
                    problem = status.message(),
                    "the last use of a token is not stored"
                );
            }
        });
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// The time of day after this duration.
fn later(after: Duration) -> u64 {
    unix_ms(SystemTime::now()).saturating_add(u64::try_from(after.as_millis()).unwrap_or(u64::MAX))
}
