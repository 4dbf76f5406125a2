//! Calls whose deadline has passed: what happens to their streams.
//!
//! Their callers have already received `timed_out`, and later data is discarded. Without `kill_overdue_after`
//! the stream is reset at the deadline, which tells the plugin that the answer is no longer awaited. With it
//! the stream stays open a while longer, to see whether the plugin ends the call without being asked: it
//! received the deadline with the call. The driver, which owns the process, watches these streams.

use futures_util::future::BoxFuture;
use talon_proto::plugin::ToolCallRequest;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many overdue calls of one instance are watched at once; further ones are reset and not judged. As many
/// as run at once by default, so that a call that ends late does not hide one that is ignored. Each holds a
/// stream and at most a window's worth of unread answer. A single ignored call is enough to end the instance.
pub(crate) const MAX_WATCHED: usize = 16;

/// A call whose deadline has passed. Dropping it resets its stream.
pub(crate) struct OverdueCall {
    /// The generation of the process that runs the call.
    pub(crate) generation: u64,
    pub(crate) call_id: String,
    pub(crate) action: String,
    /// When the plugin's time to end the call begins.
    pub(crate) since: Instant,
    /// Resolves when the plugin has ended the call.
    pub(crate) stream_end: BoxFuture<'static, ()>,
}

/// Holds the stream of a call in flight. If the call is dropped after its deadline, the stream goes to the
/// driver, if one was set; if it is dropped for any other reason, the stream is reset.
pub(crate) struct StreamGuard<'a> {
    message: &'a ToolCallRequest,
    stream_end: Option<BoxFuture<'static, ()>>,
    on_overdue: Option<OverdueSink<'a>>,
}

#[derive(Clone, Copy)]
struct OverdueSink<'a> {
    sender: &'a mpsc::Sender<Box<OverdueCall>>,
    generation: u64,
    deadline: Instant,
    since: Instant,
}

impl<'a> StreamGuard<'a> {
    pub(crate) fn new(message: &'a ToolCallRequest, rest: BoxFuture<'static, ()>) -> Self {
        Self { message, stream_end: Some(rest), on_overdue: None }
    }

    /// Sets where the stream goes at the deadline, and from when the plugin's time counts then.
    pub(crate) fn watch_after_deadline(
        &mut self,
        to: &'a mpsc::Sender<Box<OverdueCall>>,
        generation: u64,
        deadline: Instant,
        since: Instant,
    ) {
        self.on_overdue = Some(OverdueSink { sender: to, generation, deadline, since });
    }

    /// The call is over: drops its stream, whether or not the deadline has passed.
    pub(crate) fn release(mut self) {
        self.stream_end = None;
    }
}

impl Drop for StreamGuard<'_> {
    fn drop(&mut self) {
        let (Some(rest), Some(driver)) = (self.stream_end.take(), self.on_overdue) else { return };
        // Before the deadline a call is dropped only because its caller left, which is not the plugin's
        // fault.
        if Instant::now() < driver.deadline {
            return;
        }
        // Boxed: a channel allocates room for 32 items at its creation, in every plugin, and is almost always
        // empty.
        let overdue = Box::new(OverdueCall {
            generation: driver.generation,
            call_id: self.message.id.clone(),
            action: self.message.action.clone(),
            since: driver.since,
            stream_end: rest,
        });
        // If the channel is full, the call is dropped, which resets its stream.
        let _ = driver.sender.try_send(overdue);
    }
}
