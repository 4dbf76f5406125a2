//! What is wrong with a text: everything at once, each with its place and what to do.

use std::fmt;

use super::origin::{KeyPath, Source};

/// How many problems are printed. A file with more is not meant for us; the rest is counted.
const MAX_PRINTED: usize = 50;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was said.
    pub at: Source,
    /// The key it is about.
    pub key: KeyPath,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// Something that is wrong, without help yet.
    #[must_use]
    pub fn new(at: Source, key: KeyPath, message: impl Into<String>) -> Self {
        Self { at, key, message: message.into(), help: None }
    }

    /// Says what to do about it.
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

/// Everything that is wrong with a text or with several together, in the order of the file. Prints one problem a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    problems: Vec<Problem>,
}

impl Problems {
    /// In order, without repetitions; `None` if nothing is wrong.
    #[must_use]
    pub fn new(mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by(|a, b| (&a.at, &a.key).cmp(&(&b.at, &b.key)));
        problems.dedup();
        (!problems.is_empty()).then_some(Self { problems })
    }

    /// Just this one.
    #[must_use]
    pub fn one(problem: Problem) -> Self {
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
