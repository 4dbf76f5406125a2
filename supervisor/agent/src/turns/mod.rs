//! The running turns.
//!
//! There is one turn per session and a bounded number in total; each is a detached task. Its [`Hub`]
//! distributes its chunks to its followers. A turn that is interrupted because the agent ends is resumed
//! later: its journal has no end.

mod chunk_filter;
mod hub;
mod message_queue;
mod registry;

pub(crate) use chunk_filter::ChunkFilter;
pub(crate) use hub::{Hub, Subscription};
pub(crate) use message_queue::{MessageQueues, QueueOutcome};
pub(crate) use registry::{RunningTurn, RunningTurns, TurnSlot};
