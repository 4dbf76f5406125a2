//! The loop as a pure machine.
//!
//! [`TRANSITIONS`] is all of it: a list of where from, on which event, under which guard, to where, and what is to be done then.
//! [`step`] looks a transition up in it, the diagram in `docs/agent-loop.md` is written from it ([`diagram()`]), and the
//! property tests walk it. An event that a state does not take, or whose guard says no, is a [`NotTaken`], never a panic, and
//! changes nothing.
//!
//! Events carry nothing. What happened is in the [`LoopContext`], where guards look for it, so that no event can claim what the
//! facts do not bear out: `budget_ok` is refused while a budget is exceeded, whoever sends it. [`Turn`] puts both together: it
//! takes a [`Fact`], writes it into the context, and sends the events that follow from it.

mod diagram;
mod effect;
mod guard;
mod phase;
mod record;
mod state;
mod table;
mod turn;

pub use diagram::diagram;
pub use effect::{Deed, Effect};
pub use guard::Guard;
pub use phase::{Activity, Phase};
pub use record::{BudgetUse, Record};
pub use state::{Event, State};
pub use table::{TRANSITIONS, Transition};
pub use turn::{Advance, Fact, Turn};

use crate::loop_context::LoopContext;

/// Why an event changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// The table has no such transition.
    #[error("{state} does not take {event}")]
    NoTransition {
        /// Where the loop is.
        state: State,
        /// What was sent.
        event: Event,
    },
    /// The table has it, and the facts do not bear it out.
    #[error("{state} takes {event} only if {guard}")]
    Guarded {
        /// Where the loop is.
        state: State,
        /// What was sent.
        event: Event,
        /// What does not hold.
        guard: Guard,
    },
    /// The turn is over.
    #[error("the turn has ended in {state} and takes no {event}")]
    Ended {
        /// Where it ended.
        state: State,
        /// What was sent.
        event: Event,
    },
    /// The name is kept for later: there is nobody to ask in the middle of a turn yet.
    #[error("{event} is reserved and not taken by any state yet")]
    Reserved {
        /// What was sent.
        event: Event,
    },
}

/// One step: where it leads and what is to be done, in this order.
///
/// # Errors
/// [`NotTaken`]; the loop stays where it is.
pub fn step(state: State, event: Event, context: &LoopContext) -> Result<(State, Vec<Effect>), NotTaken> {
    if event.is_reserved() {
        return Err(NotTaken::Reserved { event });
    }
    if state.is_terminal() {
        return Err(NotTaken::Ended { state, event });
    }
    let transition = table::find(state, event).ok_or(NotTaken::NoTransition { state, event })?;
    if !transition.guard.holds(context) {
        return Err(NotTaken::Guarded { state, event, guard: transition.guard });
    }
    Ok((transition.to, transition.deeds.iter().filter_map(|deed| deed.of(context)).collect()))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
