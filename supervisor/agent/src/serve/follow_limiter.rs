//! How many streams follow something, in all and of one sender: nobody can take the places of others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_agent_settings::LimitKeys;
use tonic::Status;

/// Counts streams of one kind.
#[derive(Debug)]
pub(super) struct FollowLimiter {
    /// What they follow, for the text of an error.
    what: &'static str,
    open: Arc<Mutex<OpenFollows>>,
}

#[derive(Debug, Default)]
struct OpenFollows {
    all: usize,
    by_sender: HashMap<Arc<str>, usize>,
}

/// The place of a stream, until it is dropped.
#[derive(Debug)]
pub(super) struct FollowPlace {
    open: Arc<Mutex<OpenFollows>>,
    sender: Arc<str>,
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
        let what = self.what;
        let mut open = self.open.lock();
        if open.all >= most(limits.follows) {
            return Err(Status::resource_exhausted(format!(
                "{} streams follow {what} already: end one of them, or raise agent.limits.follows",
                limits.follows
            )));
        }
        let own = open.by_sender.get(sender).copied().unwrap_or(0);
        if own >= most(limits.follows_per_sender) {
            return Err(Status::resource_exhausted(format!(
                "{} streams of {sender} follow {what} already: end one of them, or raise agent.limits.follows_per_sender",
                limits.follows_per_sender
            )));
        }
        open.by_sender.insert(Arc::clone(sender), own + 1);
        open.all += 1;
        Ok(FollowPlace { open: Arc::clone(&self.open), sender: Arc::clone(sender) })
    }
}

impl Drop for FollowPlace {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        open.all -= 1;
        if let Some(own) = open.by_sender.get_mut(&self.sender) {
            *own -= 1;
            if *own == 0 {
                open.by_sender.remove(&self.sender);
            }
        }
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
        assert!(limiter.open.lock().by_sender.is_empty(), "a free place is forgotten");
        assert!(enter("eve").is_ok());
    }
}
