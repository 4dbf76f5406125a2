//! Who counts what turns do.

use std::time::Duration;

use super::{Caller, TurnEnd};
use crate::loop_context::Ran;
use crate::machine::Record;

/// Sees what turns do, for metrics. Must not block. What it does not want to see it leaves out.
pub trait Observe: Send + Sync {
    /// A transition, and how long the turn was in the state that it left. Those of a turn that is rebuilt from its journal are not
    /// seen again.
    fn transition(&self, _caller: &Caller, _record: &Record, _in_state: Duration) {}

    /// A call was made, or refused by the offer, the policy or a person; then no time went by. `plugin` and `action` are empty for
    /// a tool that does not exist. Without the time for which a person was waited for.
    fn tool(&self, _caller: &Caller, _plugin: &str, _action: &str, _ran: Ran, _latency: Duration) {}

    /// A turn is over.
    fn ended(&self, _caller: &Caller, _end: &TurnEnd) {}
}

/// Looks away.
impl Observe for () {}
