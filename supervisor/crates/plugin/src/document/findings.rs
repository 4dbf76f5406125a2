//! What no schema can say: values that each are sound and still cannot work.

use super::origin::{KeyPath, Origins};
use super::problem::Problem;
use crate::units::{ByteSize, Duration};

/// What checks of sound values found, each pointing to where the value stands.
#[derive(Debug)]
pub struct Findings<'a> {
    /// What must not be.
    pub problems: Vec<Problem>,
    /// What may be but is probably not meant.
    pub warnings: Vec<Problem>,
    origins: &'a Origins,
}

impl<'a> Findings<'a> {
    /// Nothing yet, about values that come from `origins`.
    #[must_use]
    pub fn new(origins: &'a Origins) -> Self {
        Self { problems: Vec::new(), warnings: Vec::new(), origins }
    }

    /// Something that must not be.
    pub fn problem(&mut self, key: &KeyPath, message: impl Into<String>, help: &str) {
        let problem = Problem::new(self.origins.nearest(key), key.clone(), message);
        self.problems.push(problem.help(help));
    }

    /// Something that is probably not meant.
    pub fn warning(&mut self, key: &KeyPath, message: impl Into<String>, help: &str) {
        let problem = Problem::new(self.origins.nearest(key), key.clone(), message);
        self.warnings.push(problem.help(help));
    }

    /// A time of nothing is a slip.
    pub fn time(&mut self, duration: Duration, key: &KeyPath) {
        if duration == Duration::ZERO {
            self.problem(key, "must be longer than nothing", "write a duration like \"30s\"");
        }
    }

    /// So is a size of nothing.
    pub fn size(&mut self, size: ByteSize, key: &KeyPath) {
        if size == ByteSize::bytes(0) {
            self.problem(key, "must be more than nothing", "write a size like 64KiB");
        }
    }
}
