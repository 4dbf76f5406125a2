//! The diagram of the table.

use std::fmt::Write as _;

use super::{State, TRANSITIONS};

/// The table as a Mermaid state diagram: each transition with its event, and its guard in brackets.
#[must_use]
pub fn diagram() -> String {
    let mut out = "stateDiagram-v2\n    [*] --> init\n".to_owned();
    for t in TRANSITIONS {
        // Writing to a String does not fail.
        let _ = writeln!(out, "    {} --> {}: {} [{}]", t.from, t.to, t.event, t.guard);
    }
    for state in State::ALL.iter().filter(|state| state.is_terminal()) {
        let _ = writeln!(out, "    {state} --> [*]");
    }
    out
}
