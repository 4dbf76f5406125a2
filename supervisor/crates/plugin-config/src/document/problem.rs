//! Problems in a text, each with its position and what to do.

use std::fmt;

use super::origin::{KeyPath, Source};

/// How many problems are printed. A file with more is probably the wrong file; the rest is counted.
const MAX_PRINTED: usize = 50;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The position.
    pub at: Source,
    /// The key.
    pub key: KeyPath,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem without help.
    #[must_use]
    pub fn new(at: Source, key: KeyPath, message: impl Into<String>) -> Self {
        Self { at, key, message: message.into(), help: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at != Source::Default {
            write!(f, "{}: ", self.at)?;
        }
        if self.key != KeyPath::top() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// All problems of one or more texts, in the order of the file. Prints one problem per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    problems: Vec<Problem>,
}

impl Problems {
    /// The sorted problems without duplicates; `None` if there are none.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|a, b| (&a.at, &a.key).cmp(&(&b.at, &b.key)));
        problems.dedup();
        (!problems.is_empty()).then_some(Self { problems })
    }

    /// A single problem.
    #[must_use]
    pub fn single(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }

    /// The problems.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().take(MAX_PRINTED).enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match self.problems.len().checked_sub(MAX_PRINTED) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, "\n… and {more} more"),
        }
    }
}

impl std::error::Error for Problems {}
