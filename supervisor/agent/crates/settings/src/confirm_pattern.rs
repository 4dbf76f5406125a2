//! Patterns of calls that need approval, with their examples.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::argument_texts;

/// The largest compiled expression. 1 MiB: the built-in ones take a tenth of it, and usual expressions take
/// some KiB; a larger one has nested counted repetitions, and is rejected.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// A text is no expression, or too large a one; in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ConfirmPatternError {
    problem: String,
}

/// Compiles an expression of [`ConfirmKeys::patterns`](crate::ConfirmKeys::patterns).
///
/// # Errors
/// [`ConfirmPatternError`]
pub fn confirm_pattern(expression: &str) -> Result<Regex, ConfirmPatternError> {
    let limited =
        RegexBuilder::new(expression).size_limit(MAX_PROGRAM_BYTES).dfa_size_limit(MAX_PROGRAM_BYTES).build();
    limited.map_err(|error| {
        let message = error.to_string();
        // The library prints the expression first and the problem last.
        let problem = message.lines().last().unwrap_or_default().trim_start_matches("error: ").trim();
        ConfirmPatternError { problem: problem.to_owned() }
    })
}

/// The largest file of patterns. 256 KiB: some thousand patterns; a larger file was named by mistake.
pub const MAX_PATTERN_FILE_BYTES: usize = 256 << 10;
/// The most patterns of a file. 500: each is tried on each call that may ask, in some microseconds.
const MAX_FILE_PATTERNS: usize = 500;
/// How much of an example an error repeats.
const MAX_SHOWN_CHARS: usize = 100;

/// A file of patterns: `agent.confirm.pattern_file`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfirmPatternFile {
    /// The patterns, at most 500.
    pub patterns: Vec<ConfirmPattern>,
}

/// A pattern with examples of what it has to find and of what it has to leave alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfirmPattern {
    /// Its name, which people are shown as the reason.
    pub name: String,
    /// The expression, in the syntax of Rust's `regex`.
    pub pattern: String,
    /// An expression that takes a match back: it is tried from the match to the next `;`, such as `(?i)\bwhere\b`.
    pub unless: Option<String>,
    /// Texts of arguments that it has to find.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// Texts of arguments that it must not find.
    pub no_match: Vec<String>,
}

/// A pattern that was compiled and holds to its examples.
#[derive(Debug, Clone)]
pub struct CompiledPattern {
    name: String,
    pattern: Regex,
    unless: Option<Regex>,
}

impl ConfirmPatternFile {
    /// Compiles all patterns and checks their examples.
    ///
    /// # Errors
    /// The first problem, with the number of its pattern from 1.
    pub fn compile(&self) -> Result<Vec<CompiledPattern>, ConfirmPatternError> {
        let problem = |problem: String| ConfirmPatternError { problem };
        if self.patterns.len() > MAX_FILE_PATTERNS {
            return Err(problem(format!("has more than {MAX_FILE_PATTERNS} patterns")));
        }
        let each = self.patterns.iter().enumerate().map(|(at, pattern)| {
            let place = |error| problem(format!("pattern {} ({}) {error}", at + 1, shown(&pattern.name)));
            pattern.compile().map_err(place)
        });
        each.collect()
    }
}

impl ConfirmPattern {
    /// Compiles the pattern and checks its examples.
    ///
    /// # Errors
    /// [`ConfirmPatternError`]
    pub fn compile(&self) -> Result<CompiledPattern, ConfirmPatternError> {
        let problem = |problem: String| ConfirmPatternError { problem };
        if self.name.trim().is_empty() || self.matches.is_empty() {
            return Err(problem("needs a name, and at least one example under match".to_owned()));
        }
        let compile = |expression: &str| {
            confirm_pattern(expression)
                .map_err(|error| problem(format!("has the expression {}: {error}", shown(expression))))
        };
        let compiled = CompiledPattern {
            name: self.name.clone(),
            pattern: compile(&self.pattern)?,
            unless: self.unless.as_deref().map(compile).transpose()?,
        };
        for (examples, wanted) in [(&self.matches, true), (&self.no_match, false)] {
            let wrong = examples.iter().find(|example| compiled.finds_in_argument(example) != wanted);
            if let Some(example) = wrong {
                let does = if wanted { "does not find" } else { "finds" };
                return Err(problem(format!("{does} its example {}", shown(example))));
            }
        }
        Ok(compiled)
    }
}

impl CompiledPattern {
    /// A pattern whose name is its expression.
    #[must_use]
    pub fn from_expression(pattern: Regex) -> Self {
        Self { name: pattern.as_str().to_owned(), pattern, unless: None }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it finds something in a text.
    #[must_use]
    pub fn finds(&self, text: &str) -> bool {
        let Some(unless) = &self.unless else { return self.pattern.is_match(text) };
        self.pattern.find_iter(text).any(|found| {
            let statement = &text[found.start()..];
            let end = statement[found.len()..].find(';').map_or(statement.len(), |end| found.len() + end);
            !unless.is_match(&statement[..end])
        })
    }

    /// Whether it finds something in a call with this one argument.
    fn finds_in_argument(&self, text: &str) -> bool {
        argument_texts([text]).iter().any(|text| self.finds(text))
    }
}

fn shown(text: &str) -> String {
    format!("{:?}", text.chars().take(MAX_SHOWN_CHARS).collect::<String>())
}

#[cfg(test)]
#[path = "confirm_pattern_tests.rs"]
mod tests;
