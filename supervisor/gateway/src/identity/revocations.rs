//! Credentials that were revoked while something of theirs is still open, such as a WebSocket.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::caller::{Caller, Via};

/// How many credentials with something open are kept before those are forgotten that have nothing open any more.
const SWEEP_AT: usize = 1024;

/// What is told of revocations. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Revocations(Arc<Mutex<HashMap<Arc<str>, WatchedCredential>>>);

/// Cancelled together: all that is open of one credential.
#[derive(Debug)]
struct WatchedCredential {
    token: CancellationToken,
    /// Whether anything is open is known by its count.
    open: std::sync::Weak<()>,
}

/// While it exists, the credential is watched.
#[derive(Debug)]
pub struct CredentialWatch {
    token: CancellationToken,
    /// When a credential of an auth provider has to be shown anew.
    until: Option<Instant>,
    _open: Arc<()>,
}

impl CredentialWatch {
    /// Resolves when the credential was revoked, or when nobody can say any more that it was not.
    pub async fn revoked(&self) {
        match self.until {
            None => self.token.cancelled().await,
            Some(until) => {
                tokio::select! {
                    () = self.token.cancelled() => {}
                    () = tokio::time::sleep_until(until) => {}
                }
            }
        }
    }
}

impl Revocations {
    /// Watches the credential of a caller. One of an auth provider's is never revoked here, and ends by itself.
    #[must_use]
    pub fn watch(&self, caller: &Caller) -> CredentialWatch {
        let Some(id) = caller.via.credential_id() else {
            let until = match caller.via {
                Via::Provider { until, .. } => Some(until),
                Via::Token(_) | Via::BrowserSession(_) | Via::Gateway => None,
            };
            return CredentialWatch { token: CancellationToken::new(), until, _open: Arc::new(()) };
        };
        let mut watched = self.0.lock();
        if watched.len() >= SWEEP_AT {
            watched.retain(|_, one| one.open.strong_count() > 0);
        }
        let one = watched.get(id).and_then(|one| Some((one.token.clone(), one.open.upgrade()?)));
        let (token, open) = one.unwrap_or_else(|| {
            let (token, open) = (CancellationToken::new(), Arc::new(()));
            watched
                .insert(id.into(), WatchedCredential { token: token.clone(), open: Arc::downgrade(&open) });
            (token, open)
        });
        CredentialWatch { token, until: None, _open: open }
    }

    /// This one holds no more.
    pub(crate) fn revoke(&self, id: &str) {
        if let Some(one) = self.0.lock().remove(id) {
            one.token.cancel();
        }
    }

    /// Revocations were missed: whatever is open is closed, and its clients show their credentials anew.
    pub(crate) fn revoke_all(&self) {
        for (_, one) in self.0.lock().drain() {
            one.token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::identity::{Scopes, Subject};

    fn caller(id: &str) -> Caller {
        Caller {
            subject: Subject::of("token", id).unwrap(),
            scopes: Scopes::default(),
            channel: "api".into(),
            session: None,
            via: Via::Token(id.into()),
        }
    }

    // Promises: GW-22
    #[test]
    fn what_is_open_of_a_revoked_credential_ends_and_nothing_else() {
        let revocations = Revocations::default();
        let (one, same, other) = (caller("a"), caller("a"), caller("b"));
        let watches = [&one, &same, &other].map(|caller| revocations.watch(caller));
        revocations.revoke("a");
        assert_eq!(
            watches.each_ref().map(|watch| watch.revoked().now_or_never().is_some()),
            [true, true, false]
        );
        revocations.revoke_all();
        assert!(watches[2].revoked().now_or_never().is_some());
        assert!(
            revocations.watch(&one).revoked().now_or_never().is_none(),
            "another credential by that id is another"
        );
    }

    // Promises: GW-145
    #[tokio::test(start_paused = true)]
    async fn what_is_open_of_a_providers_subject_ends_in_time() {
        let until = Instant::now() + std::time::Duration::from_secs(60);
        let via = Via::Provider { name: "corp".into(), until };
        let watch = Revocations::default().watch(&Caller { via, ..caller("a") });
        assert!(watch.revoked().now_or_never().is_none());
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        watch.revoked().await;
    }

    #[test]
    fn what_is_closed_is_forgotten() {
        let revocations = Revocations::default();
        for id in 0..SWEEP_AT * 2 {
            drop(revocations.watch(&caller(&id.to_string())));
        }
        assert!(revocations.0.lock().len() <= SWEEP_AT);
    }
}
