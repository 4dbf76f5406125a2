//! The price of a match.

use super::PatternError;

/// How many steps are made between two looks at the clock of a call. A step takes some nanoseconds, and a look about as long as ten
/// of them: so a look costs next to nothing, and comes at least every 0.1 ms, far below the 50 ms after which a worker that goes on
/// is ended.
const STEPS_PER_LOOK: usize = 4096;

/// Counts the steps of a match, and asks now and then whether it has to end.
pub(crate) struct Meter<'m> {
    left: usize,
    is_over: &'m dyn Fn() -> bool,
}

impl<'m> Meter<'m> {
    /// `is_over` says whether the time of the call is over.
    pub(crate) fn new(is_over: &'m dyn Fn() -> bool) -> Self {
        Self { left: STEPS_PER_LOOK, is_over }
    }

    /// So many steps are made.
    ///
    /// # Errors
    /// [`PatternError::Stopped`]: the time of the call is over.
    #[inline]
    pub(super) fn charge(&mut self, steps: usize) -> Result<(), PatternError> {
        if steps < self.left {
            self.left -= steps;
            return Ok(());
        }
        self.look()
    }

    #[cold]
    fn look(&mut self) -> Result<(), PatternError> {
        self.left = STEPS_PER_LOOK;
        if (self.is_over)() { Err(PatternError::Stopped) } else { Ok(()) }
    }
}
