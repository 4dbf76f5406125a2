//! Calls whose deadline has passed: what becomes of their streams.
//!
//! Their callers have been told `timed_out`, and nothing that still comes reaches anybody. Without
//! `kill_overdue_after` the stream is reset there and then, which tells the plugin that nobody waits. With it the
//! stream is kept a while longer, to see whether the plugin ends the call by itself: it was told the deadline when
//! the call was sent. The driver, which owns the process, does the watching.

use futures_util::future::BoxFuture;
use talon_proto::plugin::ToolCallRequest;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many overdue calls of one instance are watched at once; further ones are reset, and not judged. As many as run
/// at once by default, so that one that is heeded late does not hide one that is ignored. Each holds a stream and at
/// most a window's worth of unread answer. A single one that is ignored is enough to end the instance.
pub(crate) const MAX_WATCHED: usize = 16;

/// A call whose deadline has passed. Dropping it resets its stream.
pub(crate) struct Overdue {
    /// Of the process that has it.
    pub(crate) generation: u64,
    pub(crate) call_id: String,
    pub(crate) action: String,
    /// From here on the plugin's time to end it counts.
    pub(crate) since: Instant,
    /// Resolves when the plugin has ended the call.
    pub(crate) rest: BoxFuture<'static, ()>,
}

/// Holds the stream of a call in flight. If the call is given up because its deadline passed, the stream goes to the
/// driver, if it was told one; if it is given up for any other reason, it is reset.
pub(crate) struct Watched<'a> {
    message: &'a ToolCallRequest,
    rest: Option<BoxFuture<'static, ()>>,
    driver: Option<Driver<'a>>,
}

#[derive(Clone, Copy)]
struct Driver<'a> {
    to: &'a mpsc::Sender<Box<Overdue>>,
    generation: u64,
    deadline: Instant,
    since: Instant,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(message: &'a ToolCallRequest, rest: BoxFuture<'static, ()>) -> Self {
        Self { message, rest: Some(rest), driver: None }
    }

    /// To whom it goes at its deadline, and since when it counts then.
    pub(crate) fn hand_over(
        &mut self,
        to: &'a mpsc::Sender<Box<Overdue>>,
        generation: u64,
        deadline: Instant,
        since: Instant,
    ) {
        self.driver = Some(Driver { to, generation, deadline, since });
    }

    /// The call is over, whatever the time is.
    pub(crate) fn let_go(mut self) {
        self.rest = None;
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let (Some(rest), Some(driver)) = (self.rest.take(), self.driver) else { return };
        // Before its deadline a call is given up only because its caller went away, which is nothing to a plugin.
        if Instant::now() < driver.deadline {
            return;
        }
        // A channel holds room for 32 of its items from the beginning, in every plugin, and nearly never has one.
        let overdue = Box::new(Overdue {
            generation: driver.generation,
            call_id: self.message.id.clone(),
            action: self.message.action.clone(),
            since: driver.since,
            rest,
        });
        // One for which there is no room is dropped, and reset by that.
        let _ = driver.to.try_send(overdue);
    }
}
