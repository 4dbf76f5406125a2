//! The operator's patterns: each match is replaced by a fixed notice.

use std::borrow::Cow;
use std::fmt;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use crate::escape;
use crate::family_counts::{Family, FamilyCounts, FindingKind};

/// The replacement for a match.
pub const NOTICE: &str = "[removed]";

/// How many patterns an operator may set. Each one costs scanning time in every answer.
pub const MAX_PATTERNS: usize = 64;
/// How long one pattern may be, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// How large one compiled pattern may get, in bytes; counted repetitions (`x{1000}{1000}`) exceed it.
pub const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Why a pattern cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternProblem {
    /// It is longer than [`MAX_PATTERN_BYTES`].
    #[error("is {0} bytes long, and {MAX_PATTERN_BYTES} are allowed; split it")]
    TooLong(usize),
    /// It does not parse, or compiles to more than [`MAX_COMPILED_BYTES`].
    #[error(
        "is not a usable regular expression; correct it (no look-around, no back-references, small repetitions)"
    )]
    Invalid(#[source] Box<regex_automata::meta::BuildError>),
    /// It may match the empty string, so it would match between all characters.
    #[error("can match the empty string; make it match at least one character")]
    MatchesEmpty,
    /// It matches the notice that replaces matches.
    #[error("matches the notice {NOTICE:?} that replaces its matches; make it more specific")]
    MatchesNotice,
    /// It matches a mark or a note that sanitizing inserts.
    #[error("matches {0:?}, which sanitizing itself writes; make it more specific")]
    MatchesMark(String),
}

/// One pattern that cannot be used.
#[derive(Debug)]
pub struct BadPattern {
    /// Its position in [`crate::Settings::forbidden_patterns`], from 0.
    pub index: usize,
    /// The pattern as configured.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: PatternProblem,
}

/// All problems of the settings.
#[derive(Debug)]
pub struct SettingsError {
    /// The patterns that cannot be used, in their order.
    pub patterns: Vec<BadPattern>,
    /// How many patterns were given, if more than [`MAX_PATTERNS`].
    pub too_many: Option<usize>,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(count) = self.too_many {
            write!(
                f,
                "{count} forbidden patterns are set, and {MAX_PATTERNS} are allowed; join some with `|`"
            )?;
            separator = "\n";
        }
        for bad in &self.patterns {
            write!(f, "{separator}forbidden pattern {} ({:?}) {}", bad.index + 1, bad.pattern, bad.problem)?;
            if let PatternProblem::Invalid(source) = &bad.problem {
                write!(f, ": {}", innermost(source))?;
            }
            separator = "\n";
        }
        Ok(())
    }
}

impl std::error::Error for SettingsError {}

/// The cause, in one line: the parser's own report spans several.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let report = talon_error_chain::innermost(error).to_string();
    let last = report.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// All patterns as one automaton: one pass however many there are, in time linear in the text.
#[derive(Debug)]
pub(crate) struct Patterns {
    regex: Regex,
}

impl Patterns {
    /// `None` if there are no patterns.
    pub(crate) fn new(patterns: &[String]) -> Result<Option<Self>, SettingsError> {
        let bad: Vec<BadPattern> = patterns
            .iter()
            .enumerate()
            .filter_map(|(index, pattern)| {
                let problem = problem_of(pattern)?;
                Some(BadPattern { index, pattern: pattern.chars().take(200).collect(), problem })
            })
            .collect();
        let too_many = (patterns.len() > MAX_PATTERNS).then_some(patterns.len());
        if !bad.is_empty() || too_many.is_some() {
            return Err(SettingsError { patterns: bad, too_many });
        }
        if patterns.is_empty() {
            return Ok(None);
        }
        // Each compiles within its limit, so all together compile within the sum.
        match builder(MAX_COMPILED_BYTES * MAX_PATTERNS).build_many(patterns) {
            Ok(regex) => Ok(Some(Self { regex })),
            Err(error) => {
                let problem = PatternProblem::Invalid(Box::new(error));
                let all = BadPattern { index: 0, pattern: patterns[0].clone(), problem };
                Err(SettingsError { patterns: vec![all], too_many: None })
            }
        }
    }

    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        self.regex.find(text).map(|found| found.start())
    }

    pub(crate) fn replace<'t>(&self, text: &'t str, tally: &mut FamilyCounts) -> Cow<'t, str> {
        let mut out = String::new();
        let mut from = 0;
        for found in self.regex.find_iter(text) {
            out.push_str(&text[from..found.start()]);
            out.push_str(NOTICE);
            tally.add(Family::Pattern, FindingKind::Plain);
            from = found.end();
        }
        if from == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[from..]);
        Cow::Owned(out)
    }
}

fn builder(limit: usize) -> regex_automata::meta::Builder {
    let mut builder = Regex::builder();
    builder.configure(Regex::config().nfa_size_limit(Some(limit)).onepass_size_limit(Some(limit)));
    builder
}

fn problem_of(pattern: &str) -> Option<PatternProblem> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Some(PatternProblem::TooLong(pattern.len()));
    }
    let regex = match builder(MAX_COMPILED_BYTES).build(pattern) {
        Ok(regex) => regex,
        Err(error) => return Some(PatternProblem::Invalid(Box::new(error))),
    };
    // The parse succeeded above; its length also covers patterns that are empty only in some context (`\b`).
    let shortest = syntax::parse(pattern).ok().and_then(|parsed| parsed.properties().minimum_len());
    if shortest == Some(0) {
        return Some(PatternProblem::MatchesEmpty);
    }
    if regex.is_match(NOTICE) {
        return Some(PatternProblem::MatchesNotice);
    }
    escape::sanitizer_output()
        .into_iter()
        .find(|written| regex.is_match(written))
        .map(PatternProblem::MatchesMark)
}
