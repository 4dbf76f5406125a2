//! Fills the state of a turn that is not durable from its chunks.

use std::sync::Arc;

use talon_proto::agent::chunk::Kind as Chunk;
use talon_proto::agent::event::Kind;
use talon_store::SessionId;

use super::feed::{SessionChanges, SessionFeed};
use super::live_turn::LiveTurn;
use crate::driver::Listener;

/// Passes a turn's chunks on, and has its followers told what is not durable of them. The turn is live until this is
/// dropped.
pub(crate) struct LiveListener {
    inner: Arc<dyn Listener>,
    feed: SessionFeed,
    session: SessionId,
    sender: String,
    live: Arc<LiveTurn>,
}

impl LiveListener {
    /// Begins the turn of a sender's session.
    pub(crate) fn new(
        inner: Arc<dyn Listener>,
        feed: &SessionFeed,
        session: SessionId,
        sender: &str,
        turn: u64,
    ) -> Self {
        let live = LiveTurn::new(turn);
        feed.begin_turn(session, Arc::clone(&live));
        Self { inner, feed: feed.clone(), session, sender: sender.to_owned(), live }
    }

    fn keep(&self, chunk: &Chunk) -> bool {
        match chunk {
            // The whole answer is a durable event.
            Chunk::Text(text) if text.whole => return false,
            Chunk::Text(text) => self.live.add_text(&text.text),
            Chunk::Thinking(thinking) => self.live.add_thinking(&thinking.text),
            Chunk::Loop(at) => self.live.set_loop(at.clone()),
            Chunk::ToolProgress(progress) => self.live.add_recent(Kind::ToolProgress(progress.clone())),
            Chunk::ToolStream(output) => self.live.add_recent(Kind::ToolStream(output.clone())),
            Chunk::Plan(plan) => self.live.add_recent(Kind::Plan(plan.clone())),
            Chunk::Notice(notice) => {
                if notice.discard_text {
                    self.live.discard();
                }
                self.live.add_recent(Kind::LiveNotice(notice.clone()));
            }
            // These are in the journal.
            Chunk::Started(_)
            | Chunk::ToolCall(_)
            | Chunk::ToolResult(_)
            | Chunk::Approval(_)
            | Chunk::SubagentStart(_)
            | Chunk::SubagentResult(_)
            | Chunk::Done(_)
            | Chunk::Error(_) => return false,
        }
        true
    }
}

impl Listener for LiveListener {
    fn on_chunk(&self, chunk: Chunk) {
        if self.keep(&chunk) {
            self.feed.tell(self.session, Some(&self.sender), SessionChanges::default());
        }
        self.inner.on_chunk(chunk);
    }
}

impl Drop for LiveListener {
    fn drop(&mut self) {
        self.feed.end_turn(self.session, &self.live);
        self.feed.tell(self.session, Some(&self.sender), SessionChanges::default());
    }
}
