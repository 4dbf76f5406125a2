//! Where the work on an answer runs.
//!
//! A layer processes an answer in one go and occupies its thread meanwhile. With one worker thread on a
//! machine of two cores, every small call would wait behind an answer of several megabytes. So each layer
//! that reads all of an answer hands the work on a large one to the host's [`Executor`]. The layer knows the
//! size of what it works on: after a cut, the layers above have little to do.

/// Answers of at least this size go to the executor. Processing 256 KiB takes some hundred microseconds;
/// moving the other tasks of a thread to another one costs some tens.
pub const LARGE_ANSWER_BYTES: usize = 256 << 10;

/// Runs the work on large answers. The default runs it in place, as all work on small answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Executor {
    run_large: Option<fn(&mut dyn FnMut())>,
}

impl Executor {
    /// An executor that passes work on large answers to this function. It must call the work exactly once
    /// before it returns, on any thread that it likes to occupy.
    #[must_use]
    pub const fn new(run_large: fn(&mut dyn FnMut())) -> Self {
        Self { run_large: Some(run_large) }
    }

    /// Does the work on an answer of this size.
    #[inline]
    pub fn run<T>(self, bytes: usize, work: impl FnOnce() -> T) -> T {
        match self.run_large {
            Some(run_large) if bytes >= LARGE_ANSWER_BYTES => {
                let (mut work, mut result) = (Some(work), None);
                run_large(&mut || result = work.take().map(|work| work()));
                result.expect("an executor calls the work before it returns")
            }
            _ => work(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static RUNS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn only_large_answers_are_moved() {
        let counting = Executor::new(|work| {
            RUNS.set(RUNS.get() + 1);
            work();
        });
        let runs = |executor: Executor, bytes| {
            RUNS.set(0);
            assert_eq!(executor.run(bytes, || bytes), bytes);
            RUNS.get()
        };
        assert_eq!(runs(counting, LARGE_ANSWER_BYTES - 1), 0);
        assert_eq!(runs(counting, LARGE_ANSWER_BYTES), 1);
        assert_eq!(runs(Executor::default(), LARGE_ANSWER_BYTES), 0);
    }
}
