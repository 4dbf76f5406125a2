//! How many streams follow something, in all and of one sender: nobody can take the places of others.

use std::sync::Arc;

use talon_agent_settings::LimitKeys;
use talon_listen::{PlaceLimitError, PlaceLimiter, PlaceLimits, PlacePermit};
use tonic::Status;

/// The place of a stream, until it is dropped.
pub(super) type FollowPlace = PlacePermit<Arc<str>>;

/// Counts streams of one kind.
#[derive(Debug)]
pub(super) struct FollowLimiter {
    /// What they follow, for the text of an error.
    what: &'static str,
    open: Arc<PlaceLimiter<Arc<str>>>,
}

impl FollowLimiter {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, open: Arc::default() }
    }

    /// A place for a stream of this sender. The limits are those of the moment; lower ones end nothing.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED
    pub(super) fn enter(&self, sender: &Arc<str>, limits: &LimitKeys) -> Result<FollowPlace, Status> {
        let most = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let limits = PlaceLimits { all: most(limits.follows), of_one: most(limits.follows_per_sender) };
        self.open.take(Arc::clone(sender), limits).map_err(|limit| {
            let what = self.what;
            Status::resource_exhausted(match limit {
                PlaceLimitError::All(most) => format!(
                    "{most} streams follow {what} already: end one of them, or raise agent.limits.follows"
                ),
                PlaceLimitError::OfOne(most) => format!(
                    "{most} streams of {sender} follow {what} already: end one of them, or raise agent.limits.follows_per_sender"
                ),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-143
    #[test]
    fn one_sender_cannot_take_all_places() {
        let limiter = FollowLimiter::new("ghosts");
        let limits = LimitKeys { follows: 5, follows_per_sender: 3, ..LimitKeys::default() };
        let enter = |sender: &str| limiter.enter(&sender.into(), &limits);
        let mut held: Vec<_> = std::iter::from_fn(|| enter("ada").ok()).collect();
        assert_eq!(held.len(), 3);
        let refused = enter("ada").unwrap_err();
        assert!(refused.message().contains("agent.limits.follows_per_sender"), "{refused}");
        held.extend(std::iter::from_fn(|| enter("bob").ok()));
        assert_eq!(held.len(), 5);
        let refused = enter("eve").unwrap_err();
        assert!(refused.message().ends_with("agent.limits.follows"), "{refused}");
        drop(held);
        assert!(enter("eve").is_ok());
    }
}
