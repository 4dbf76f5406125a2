//! The running turns.
//!
//! There is one turn per session and a bounded number in total; each is a detached task. Its [`Hub`] distributes its
//! chunks to its followers. A turn that is interrupted because the agent ends is resumed later: its journal has no end.

mod hub;
mod patterns;
mod registry;
mod spec;
mod start;

pub(crate) use hub::{Hub, Subscription};
pub(crate) use patterns::{MAX_PATTERNS, is_pattern};
pub(crate) use registry::{RunningTurn, RunningTurns};
pub(crate) use spec::{TurnRequest, sections, thinking};
pub(crate) use start::{OPEN_TURN, TITLE, TOOLS, tools_of};
