//! What is sent to the agent: one typed, redacted observation.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use talon_proto::agent::Observation;

use crate::excerpt::{Excerpt, line};
use crate::limits::{LINE_BYTES, PATH_BYTES};

/// What happened, as the agent's protocol names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    FileAdded,
    FileChanged,
    Command,
    Commit,
    Push,
    MergeConflict,
    RebaseFailed,
    Stage,
    Boundary,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::FileAdded => "file_added",
            Self::FileChanged => "file_changed",
            Self::Command => "command",
            Self::Commit => "commit",
            Self::Push => "push",
            Self::MergeConflict => "merge_conflict",
            Self::RebaseFailed => "rebase_failed",
            Self::Stage => "stage",
            Self::Boundary => "boundary",
        }
    }
}

/// A piece of work ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    Commit,
    TestEnd,
    Prompt,
    Idle,
}

impl Boundary {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::TestEnd => "test_end",
            Self::Prompt => "prompt",
            Self::Idle => "idle",
        }
    }
}

/// An observation while it is put together. Its texts are redacted and cut when they are set.
#[derive(Debug, Clone)]
pub(crate) struct ObservationBuilder(Observation);

impl ObservationBuilder {
    /// One that happened now, in this directory.
    pub(crate) fn new(kind: Kind, directory: &Path) -> Self {
        Self(Observation {
            id: ulid::Ulid::generate().to_string(),
            kind: kind.as_str().to_owned(),
            directory: shown_path(directory),
            occurred_unix_ms: unix_ms(),
            ..Observation::default()
        })
    }

    /// The detector that found something.
    pub(crate) fn trigger(mut self, trigger: &'static str, finding: &str) -> Self {
        self.0.trigger = trigger.to_owned();
        let (text, redactions) = line(finding);
        self.0.finding = text;
        self.count(redactions)
    }

    pub(crate) fn repository(mut self, repository: Option<&Path>) -> Self {
        self.0.repository = repository.map(shown_path).unwrap_or_default();
        self
    }

    /// The file that it is about: its path leaves as a hash, its name as the subject.
    pub(crate) fn file(mut self, path: &Path) -> Self {
        self.0.path_hash = path_hash(path);
        self.0.language = language(path).to_owned();
        let name = path.file_name().unwrap_or(path.as_os_str());
        self.subject(&name.to_string_lossy())
    }

    pub(crate) fn subject(mut self, subject: &str) -> Self {
        let (text, redactions) = line(subject);
        self.0.subject = text;
        self.count(redactions)
    }

    pub(crate) fn excerpt(mut self, excerpt: Excerpt) -> Self {
        self.0.excerpt = excerpt.text;
        self.0.excerpt_left_out_bytes = excerpt.left_out;
        self.count(excerpt.redactions)
    }

    pub(crate) fn boundary(mut self, boundary: Boundary) -> Self {
        self.0.boundary = boundary.as_str().to_owned();
        self
    }

    pub(crate) fn command(mut self, exit_code: Option<i32>, duration_ms: Option<u64>) -> Self {
        self.0.exit_code = exit_code;
        self.0.duration_ms = duration_ms;
        self
    }

    /// What makes it the same finding as an earlier one, beside its trigger, repository and file: without it,
    /// the finding's text and the excerpt.
    pub(crate) fn same_as(mut self, parts: &[&str]) -> Self {
        let of = [self.0.trigger.as_str(), &self.0.repository, &self.0.path_hash];
        self.0.fingerprint = fingerprint(of.into_iter().chain(parts.iter().copied()));
        self
    }

    pub(crate) fn build(self) -> Observation {
        self.0
    }

    fn count(mut self, redactions: u32) -> Self {
        self.0.redactions = self.0.redactions.saturating_add(redactions);
        self
    }
}

/// Parts that are the same make the same text; each is preceded by its length, so that none runs into another.
fn fingerprint<'p>(parts: impl Iterator<Item = &'p str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

/// SHA-256 of a path's bytes, in lower-case hex.
pub(crate) fn path_hash(path: &Path) -> String {
    hex::encode(Sha256::digest(path.as_os_str().as_encoded_bytes()))
}

/// A path as the protocol takes it: text, without what acts on a terminal. Paths that are longer are not
/// observed, so that nothing is cut here.
fn shown_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let shown = talon_sanitize::Raw::from(&*text).terminal_line().into_string();
    if shown.len() > PATH_BYTES { String::new() } else { shown }
}

/// By the wall clock, which is what the protocol states; nothing here is reckoned with it.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The language of a file by its name; empty if it is unknown.
pub(crate) fn language(path: &Path) -> &'static str {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "ts" | "tsx" | "mts" => "typescript",
        "go" => "go",
        "java" => "java",
        "kt" | "kts" => "kotlin",
        "c" | "h" => "c",
        "cc" | "cpp" | "cxx" | "hpp" | "hh" => "cpp",
        "cs" => "csharp",
        "rb" => "ruby",
        "php" => "php",
        "swift" => "swift",
        "sh" | "bash" | "zsh" | "fish" => "shell",
        "lua" => "lua",
        "sql" => "sql",
        "html" | "htm" => "html",
        "css" | "scss" => "css",
        "md" => "markdown",
        "json" => "json",
        "yaml" | "yml" => "yaml",
        "toml" => "toml",
        _ => "",
    }
}

/// A command for people: redacted, on one line, at most 64 bytes.
pub(crate) fn first_words(command: &str) -> String {
    const BYTES: usize = 64;
    const _: () = assert!(BYTES < LINE_BYTES);
    let words: Vec<&str> = command.split_whitespace().collect();
    let redacted = talon_redact::redact(&words.join(" ")).text;
    talon_sanitize::truncate(&redacted, BYTES, "…").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-53
    #[test]
    fn a_path_leaves_as_a_hash_and_the_same_finding_has_the_same_fingerprint() {
        let at = |line: &str| {
            ObservationBuilder::new(Kind::FileChanged, Path::new("/w/p"))
                .repository(Some(Path::new("/w")))
                .file(Path::new("/w/p/a.rs"))
                .trigger("conflict_markers", line)
                .same_as(&["<<<<<<< HEAD"])
                .build()
        };
        let (one, two) = (at("conflict markers at line 3"), at("conflict markers at line 4"));
        assert_eq!(one.fingerprint, two.fingerprint);
        assert_ne!(one.id, two.id);
        assert_eq!((one.subject.as_str(), one.language.as_str()), ("a.rs", "rust"));
        assert_eq!(one.path_hash.len(), 64);
        assert!(!format!("{}{}{}", one.subject, one.finding, one.excerpt).contains("/w/p"));
    }

    // Promises: SHADOW-50
    #[test]
    fn subjects_and_findings_are_redacted() {
        let observation = ObservationBuilder::new(Kind::Command, Path::new("/w"))
            .subject("deploy --token abcd1234efgh")
            .trigger("repeated_failure", "export DB_PASSWORD=hunter2hunter2 failed")
            .build();
        assert_eq!(observation.redactions, 2);
        assert!(!observation.subject.contains("abcd1234") && !observation.finding.contains("hunter2"));
    }
}
