//! Where a person types while a turn runs: the row, while there is one, and what was typed.

use super::input_area::InputArea;
use super::typed_line::TypedAhead;

/// The row for typing, opened where a line begins and nothing is asked.
pub(super) struct TypingRow {
    /// Whether the person is to have it, and the terminal can show it.
    is_wanted: bool,
    area: Option<InputArea>,
    typed: TypedAhead,
}

impl TypingRow {
    pub(super) fn new(is_wanted: bool, typed: TypedAhead) -> Self {
        Self { is_wanted, area: None, typed }
    }

    /// Draws it, as the window may have another size; or opens it where it may be.
    pub(super) fn update(&mut self, may_open: bool) {
        match &mut self.area {
            Some(area) => area.draw(),
            None if self.is_wanted && may_open => {
                self.area = InputArea::start(&self.typed);
                // It is tried where a line begins, and not in the middle of an answer.
                self.is_wanted = self.area.is_some();
            }
            None => {}
        }
    }

    /// Closes it; what was typed is kept, and answers no question.
    pub(super) fn close(&mut self) {
        if let Some(area) = self.area.take() {
            self.typed = area.finish();
        }
    }

    /// The next keys; pends for ever while it is closed. Cancel safe.
    pub(super) async fn keys(&mut self) -> Vec<u8> {
        match &mut self.area {
            Some(area) => area.keys().await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn push(&mut self, keys: &[u8]) {
        if let Some(area) = &mut self.area {
            area.push(keys);
        }
    }

    /// Ends it; returns what was typed.
    pub(super) fn into_typed(mut self) -> TypedAhead {
        self.close();
        self.typed
    }
}
