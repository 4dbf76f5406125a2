//! Tests that fail after somebody edited a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// How many directories are remembered as edited; all of them are forgotten when there are more, which costs
/// findings and nothing else.
const DIRECTORIES: usize = 1024;

/// Whether a command runs tests, by its words. Wrappers in front of it (`time`, `env A=b`, `sudo`) are passed
/// over.
pub(crate) fn is_test(command: &str) -> bool {
    let first = command.split(['|', ';', '\n']).next().unwrap_or_default();
    // Of `cd x && cargo test` the last part decides how it ends.
    let last = first.rsplit("&&").next().unwrap_or_default();
    let words = shlex::split(last).unwrap_or_else(|| last.split_whitespace().map(str::to_owned).collect());
    let mut words: &[String] = &words;
    while let [first, rest @ ..] = words {
        let is_wrapper = [
            "time", "env", "sudo", "nice", "command", "uv", "poetry", "run", "npx", "bundle", "exec", "pnpx",
        ]
        .contains(&first.as_str());
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if !is_wrapper && !is_assignment {
            break;
        }
        words = rest;
    }
    let [program, arguments @ ..] = words else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    let verb =
        arguments.iter().map(String::as_str).find(|word| !word.starts_with(['-', '+'])).unwrap_or_default();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match program {
        "cargo" => matches!(verb, "test" | "t" | "nextest"),
        "npm" | "pnpm" | "yarn" | "bun" | "deno" => {
            verb == "test" || verb == "t" || verb.starts_with("test:") || has("test")
        }
        "go" | "mix" | "dotnet" | "swift" | "zig" | "flutter" | "dart" | "rails" | "stack" | "cabal"
        | "bazel" | "sbt" => verb == "test",
        "make" | "just" | "ninja" | "meson" | "rake" => arguments.iter().any(|word| {
            word == "test" || word == "check" || word.starts_with("test-") || word.ends_with("-test")
        }),
        "mvn" | "mvnw" | "gradle" | "gradlew" | "ant" => arguments
            .iter()
            .any(|word| word == "test" || word == "verify" || word == "check" || word.ends_with(":test")),
        "pytest" | "py.test" | "tox" | "nox" | "jest" | "vitest" | "mocha" | "ava" | "rspec" | "phpunit"
        | "ctest" | "bats" | "nosetests" | "busted" | "playwright" => true,
        "python" | "python3" => has("pytest") || has("unittest"),
        _ => false,
    }
}

/// Remembers where files were edited since tests were last run.
#[derive(Default)]
pub(crate) struct FailedTests {
    /// The file that was edited last, by its directory.
    edited: HashMap<PathBuf, PathBuf>,
}

impl FailedTests {
    /// A file was saved.
    pub(crate) fn edited(&mut self, path: &Path) {
        let Some(directory) = path.parent() else { return };
        if self.edited.len() >= DIRECTORIES && !self.edited.contains_key(directory) {
            self.edited.clear();
        }
        self.edited.insert(directory.to_owned(), path.to_owned());
    }

    /// Tests ended for the work tree or directory `place`. Returns a file that was edited before, if they
    /// failed after an edit.
    pub(crate) fn ended(&mut self, place: &Path, failed: bool) -> Option<PathBuf> {
        let mut last = None;
        self.edited.retain(|directory, file| {
            let within = directory.starts_with(place);
            if within && last.as_ref().is_none_or(|last| *file < *last) {
                last = Some(file.clone());
            }
            !within
        });
        last.filter(|_| failed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-60
    #[test]
    fn commands_that_run_tests_are_told_from_others() {
        for command in [
            "cargo test",
            "cargo +nightly nextest run -p x",
            "RUST_LOG=debug cargo t",
            "cd x && cargo test",
            "npm test",
            "npm run test",
            "yarn test:unit",
            "go test ./...",
            "make check",
            "make -j4 test",
            "python3 -m pytest -q",
            "pytest",
            "./gradlew test",
            "uv run pytest tests",
            "npx jest --watch=false",
            "bundle exec rspec",
            "time ctest",
            "mix test",
            "cargo test | tail -5",
        ] {
            assert!(is_test(command), "{command}");
        }
        for command in [
            "cargo build",
            "git commit -m 'test'",
            "echo cargo test",
            "npm install",
            "make",
            "vim test.rs",
            "",
            "'",
        ] {
            assert!(!is_test(command), "{command}");
        }
    }

    // Promises: SHADOW-60
    #[test]
    fn a_failure_counts_after_an_edit_and_once() {
        let mut tests = FailedTests::default();
        assert_eq!(tests.ended(Path::new("/w"), true), None);
        tests.edited(Path::new("/w/src/a.rs"));
        tests.edited(Path::new("/other/b.rs"));
        assert_eq!(tests.ended(Path::new("/w"), true), Some("/w/src/a.rs".into()));
        assert_eq!(tests.ended(Path::new("/w"), true), None);
        tests.edited(Path::new("/w/a.rs"));
        assert_eq!(tests.ended(Path::new("/w"), false), None);
        assert_eq!(tests.ended(Path::new("/other"), true), Some("/other/b.rs".into()));
    }

    proptest! {
        // Promises: SHADOW-60
        #[test]
        fn a_failure_is_told_exactly_if_there_was_an_edit_since(steps in prop::collection::vec(0u8..3, 0..40)) {
            let (mut tests, mut is_edited) = (FailedTests::default(), false);
            for step in steps {
                match step {
                    0 => {
                        tests.edited(Path::new("/w/a.rs"));
                        is_edited = true;
                    }
                    step => {
                        let told = tests.ended(Path::new("/w"), step == 2);
                        prop_assert_eq!(told.is_some(), is_edited && step == 2);
                        is_edited = false;
                    }
                }
            }
        }

        #[test]
        fn any_command_is_taken_and_memory_is_bounded(command in "\\PC{0,80}", n in 0usize..3000) {
            is_test(&command);
            let mut tests = FailedTests::default();
            (0..n).for_each(|n| tests.edited(Path::new(&format!("/w/{n}/a"))));
            prop_assert!(tests.edited.len() <= DIRECTORIES);
        }
    }
}
