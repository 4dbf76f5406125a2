//! Problems that a schema cannot express: values that are valid one by one and still cannot work.

use super::origin::{KeyPath, Origins};
use super::problem::Problem;
use crate::units::{ByteSize, Duration};

/// Problems and warnings about valid values, each with the position of its value.
#[derive(Debug)]
pub struct Findings<'a> {
    /// What must be fixed.
    pub problems: Vec<Problem>,
    /// What is allowed but probably a mistake.
    pub warnings: Vec<Problem>,
    origins: &'a Origins,
}

impl<'a> Findings<'a> {
    /// Empty findings about values whose positions are in `origins`.
    #[must_use]
    pub fn new(origins: &'a Origins) -> Self {
        Self { problems: Vec::new(), warnings: Vec::new(), origins }
    }

    /// Adds a problem.
    pub fn problem(&mut self, key: &KeyPath, message: impl Into<String>, help: &str) {
        let problem = Problem::new(self.origins.nearest(key), key.clone(), message);
        self.problems.push(problem.help(help));
    }

    /// Adds a warning.
    pub fn warning(&mut self, key: &KeyPath, message: impl Into<String>, help: &str) {
        let problem = Problem::new(self.origins.nearest(key), key.clone(), message);
        self.warnings.push(problem.help(help));
    }

    /// Reports a duration of zero.
    pub fn check_nonzero_duration(&mut self, duration: Duration, key: &KeyPath) {
        if duration == Duration::ZERO {
            self.problem(key, "must be longer than nothing", "write a duration like \"30s\"");
        }
    }

    /// Reports a size of zero.
    pub fn check_nonzero_size(&mut self, size: ByteSize, key: &KeyPath) {
        if size == ByteSize::bytes(0) {
            self.problem(key, "must be more than nothing", "write a size like 64KiB");
        }
    }
}
