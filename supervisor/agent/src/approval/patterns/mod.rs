//! Destructive commands that can be recognized by their text: `rm -rf` and the like.
//!
//! Each pattern is an expression of the `regex` crate, so matching is linear in the text, and has examples,
//! which a test checks. `[^;&|\n]*` stays within one command. Flags may come in any order, combined or
//! separate, before or after their operands; commands in any case, since some file systems ignore it.

/// Where a command may start: `alarm -r` is no `rm`, but `/bin/rm` is one.
macro_rules! command {
    ($names:literal) => {
        concat!(r"(?:^|[^\w.-])(?i:", $names, r")")
    };
}
/// Words of a command before the one that matters: options, operands, a subcommand.
macro_rules! words {
    () => {
        r"\s(?:[^;&|\n]*\s)?"
    };
}
/// The end of a word.
macro_rules! end {
    () => {
        r"(?:\s|$|[;&|)])"
    };
}

mod built_in_pattern;
mod cluster;
mod database;
mod disk;
mod files;
mod git;
mod shell;

use std::sync::LazyLock;

use regex::Regex;
use talon_agent_settings::{CompiledPattern, confirm_pattern};

use built_in_pattern::BuiltInPattern;

/// All of them; the first that finds something gives its name.
const BUILT_IN: [&[BuiltInPattern]; 6] =
    [files::PATTERNS, disk::PATTERNS, shell::PATTERNS, git::PATTERNS, database::PATTERNS, cluster::PATTERNS];

/// Targets after `>` that destroy nothing.
const HARMLESS: &str = r">\|?\s*/dev/(?:null|stdout|stderr|tty|full|zero|fd/\d+)\b";

static COMPILED: LazyLock<Vec<CompiledPattern>> = LazyLock::new(|| {
    let each = BUILT_IN.into_iter().flatten().map(|pattern| {
        pattern.to_pattern().compile().expect("a test compiles each of the built-in patterns")
    });
    each.collect()
});
static HARMLESS_COMPILED: LazyLock<Regex> =
    LazyLock::new(|| confirm_pattern(HARMLESS).expect("a test compiles it"));

/// Returns the name of the first built-in pattern that matches a text.
pub(super) fn match_built_in(text: &str) -> Option<&'static str> {
    let text = HARMLESS_COMPILED.replace_all(text, " ");
    COMPILED.iter().find(|pattern| pattern.finds(&text)).map(CompiledPattern::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-31
    #[test]
    fn each_holds_to_its_examples() {
        let all = || BUILT_IN.into_iter().flatten();
        assert!(all().all(|pattern| !pattern.leaves.is_empty()), "each shows what it leaves alone");
        let wrong = |pattern: &BuiltInPattern| {
            pattern.to_pattern().compile().err().map(|error| format!("{}: {error}", pattern.name))
        };
        assert_eq!(all().filter_map(wrong).collect::<Vec<_>>(), Vec::<String>::new());
    }
}
