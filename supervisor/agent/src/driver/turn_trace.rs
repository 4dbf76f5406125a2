//! The open spans of a turn.

use std::sync::Arc;

use crate::machine::{Event, State};
use crate::traces::{OpenSpan, SpanContext, Tracer};

/// The open spans of a turn.
pub(super) struct TurnTrace {
    pub(super) tracer: Arc<Tracer>,
    pub(super) turn: OpenSpan,
    pub(super) state: OpenSpan,
}

impl TurnTrace {
    pub(super) fn begin(tracer: Arc<Tracer>, position: SpanContext, state: State, event: Event) -> Self {
        let turn = OpenSpan::begin(position, String::new());
        let state = state_span(position, state, event);
        Self { tracer, turn, state }
    }
}

/// The span of a state, which an event led to.
pub(super) fn state_span(turn: SpanContext, state: State, event: Event) -> OpenSpan {
    OpenSpan::begin(turn.child(), format!("state {}", state.word()))
        .text("talon.state", state.word())
        .text("talon.event", event.word())
}
