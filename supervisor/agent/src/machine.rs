//! The loop as a pure state machine.
//!
//! [`TRANSITIONS`] is the whole machine: a list of state, event, guard, next state and effects. [`step`]
//! looks a transition up in it, the diagram in `docs/agent-loop.md` is generated from it ([`diagram()`]), and
//! the property tests walk it. An event that a state does not accept, or whose guard fails, is a
//! [`TransitionError`], never a panic, and changes nothing.
//!
//! Events carry no data. What happened is in the [`LoopContext`], where guards check it, so that no event can
//! contradict the facts: `budget_ok` is rejected while a budget is exceeded, whatever sends it. [`Turn`]
//! combines both: it writes a [`Fact`] into the context, and sends the events that follow from it.

mod diagram;
mod effect;
mod guard;
mod phase;
mod record;
mod state;
mod table;
mod turn;

pub use diagram::diagram;
pub use effect::{Effect, EffectKind};
pub use guard::Guard;
pub use phase::{Activity, Phase};
pub use record::TransitionRecord;
pub use state::{Event, State};
pub use table::{TRANSITIONS, Transition};
pub use turn::{Advance, Fact, Turn};

use crate::loop_context::LoopContext;

/// Why an event was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    /// The table has no such transition.
    #[error("{state} does not take {event}")]
    NoTransition {
        /// The state.
        state: State,
        /// The event.
        event: Event,
    },
    /// There is such a transition, but its guard fails.
    #[error("{state} takes {event} only if {guard}")]
    GuardFailed {
        /// The state.
        state: State,
        /// The event.
        event: Event,
        /// The guard that fails.
        guard: Guard,
    },
    /// The turn is over.
    #[error("the turn has ended in {state} and takes no {event}")]
    Ended {
        /// The terminal state.
        state: State,
        /// The event.
        event: Event,
    },
}

/// Applies an event: returns the next state and its effects, in order.
///
/// # Errors
/// [`TransitionError`]; the state stays the same.
pub fn step(
    state: State,
    event: Event,
    context: &LoopContext,
) -> Result<(State, Vec<Effect>), TransitionError> {
    if state.is_terminal() {
        return Err(TransitionError::Ended { state, event });
    }
    let transition = table::find(state, event).ok_or(TransitionError::NoTransition { state, event })?;
    if !transition.guard.holds(context) {
        return Err(TransitionError::GuardFailed { state, event, guard: transition.guard });
    }
    Ok((transition.to, transition.effects.iter().filter_map(|deed| deed.of(context)).collect()))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
