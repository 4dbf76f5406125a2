//! Which turns run.
//!
//! One a session at once, and a bounded number in all; each is a task that nobody waits for. What it tells goes over its [`Hub`] to
//! whoever follows. A turn that is left when the agent ends is gone on with after that: its journal has no end.

mod hub;
mod patterns;
mod places;
mod spec;
mod start;

pub(crate) use hub::{Following, Hub};
pub(crate) use patterns::{MAX_PATTERNS, is_pattern};
pub(crate) use places::{Running, Turns};
pub(crate) use spec::{Wish, sections, thinking};
pub(crate) use start::{OPEN_TURN, TITLE, TOOLS, tools_of};
