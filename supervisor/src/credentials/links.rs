//! Links that open a browser's session: for one use, and for a minute. In memory alone: who restarts the supervisor asks for another.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::secret::Digest;

/// How long a link holds: until somebody has copied it into a browser.
pub(super) const LINK_LIFETIME: Duration = Duration::from_secs(60);
/// Links that hold at once. Each is a person who opens a browser; the oldest one goes for one more.
const MAX_LINKS: usize = 64;

/// What a link opens.
pub(super) struct Link {
    pub(super) subject: String,
    pub(super) scopes: Vec<String>,
    pub(super) digest: Digest,
    pub(super) until: Instant,
}

/// The links that hold.
#[derive(Default)]
pub(super) struct Links(Mutex<HashMap<String, Link>>);

impl Links {
    pub(super) fn insert(&self, id: String, link: Link) {
        let mut links = self.0.lock();
        let now = Instant::now();
        links.retain(|_, link| link.until > now);
        if links.len() >= MAX_LINKS
            && let Some(oldest) = links.iter().min_by_key(|(_, link)| link.until).map(|(id, _)| id.clone())
        {
            links.remove(&oldest);
        }
        links.insert(id, link);
    }

    /// Takes a link, if it holds and the secret is its. A wrong secret does not use it up: the id is no secret.
    pub(super) fn redeem(&self, id: &str, digest: Digest) -> Option<Link> {
        let mut links = self.0.lock();
        let link = links.get(id)?;
        if !link.digest.matches(digest) {
            return None;
        }
        links.remove(id).filter(|link| link.until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::super::secret::NewSecret;
    use super::*;

    fn link(secret: &NewSecret) -> Link {
        let until = Instant::now() + LINK_LIFETIME;
        Link { subject: "gw:local/a".to_owned(), scopes: Vec::new(), digest: secret.digest, until }
    }

    // Promises: GW-30
    #[tokio::test(start_paused = true)]
    async fn a_link_opens_once_and_within_a_minute() {
        let links = Links::default();
        let (one, late) = (NewSecret::generate().unwrap(), NewSecret::generate().unwrap());
        links.insert(one.id.clone(), link(&one));
        links.insert(late.id.clone(), link(&late));
        assert!(links.redeem(&one.id, late.digest).is_none(), "another's secret");
        assert!(links.redeem(&one.id, one.digest).is_some());
        assert!(links.redeem(&one.id, one.digest).is_none(), "a second use");
        tokio::time::advance(LINK_LIFETIME).await;
        assert!(links.redeem(&late.id, late.digest).is_none(), "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_only_so_many() {
        let links = Links::default();
        let secrets: Vec<_> = (0..MAX_LINKS + 3).map(|_| NewSecret::generate().unwrap()).collect();
        for secret in &secrets {
            links.insert(secret.id.clone(), link(secret));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(links.0.lock().len(), MAX_LINKS);
        assert!(links.redeem(&secrets[0].id, secrets[0].digest).is_none());
        let last = &secrets[MAX_LINKS + 2];
        assert!(links.redeem(&last.id, last.digest).is_some());
    }
}
