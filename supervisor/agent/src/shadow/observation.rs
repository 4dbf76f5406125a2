//! What a watcher sends, within its bounds.

use sha2::{Digest as _, Sha256};
use talon_proto::agent::Observation;

/// The most observations of one request.
pub(super) const MAX_OBSERVATIONS: usize = 64;
const MAX_ID_BYTES: usize = 64;
pub(super) const MAX_TRIGGER_BYTES: usize = 64;
const MAX_PATH_BYTES: usize = 4096;
pub(super) const MAX_LINE_BYTES: usize = 256;
/// 2 KiB: some forty lines, which show what is wrong, and no file.
pub(super) const MAX_EXCERPT_BYTES: usize = 2048;
pub(super) const MAX_LANGUAGE_BYTES: usize = 32;
/// The digits of a SHA-256.
const DIGEST_DIGITS: usize = 64;
/// How many of them a finding is known by: 64 bits, for some thousands of findings of one person.
const FINGERPRINT_DIGITS: usize = 16;

/// The kind of what an event source of a plugin says.
pub(super) const SOURCE: &str = "source";
const KINDS: [&str; 11] = [
    "file_added",
    "file_changed",
    "file_removed",
    "command",
    "commit",
    "push",
    "merge_conflict",
    "rebase_failed",
    "stage",
    "boundary",
    SOURCE,
];
const BOUNDARIES: [&str; 5] = ["", "commit", "test_end", "prompt", "idle"];

/// The kind as the metrics name it: one of ours.
pub(super) fn known_kind(kind: &str) -> &'static str {
    KINDS.iter().find(|known| **known == kind).copied().unwrap_or("(other)")
}

/// Why an observation is not taken: what is wrong, for the watcher's log.
pub(super) fn problem(observation: &Observation) -> Option<String> {
    beyond_bounds(observation).or_else(|| secret_in_a_name(observation))
}

/// What an observation and its place are known by is never rewritten, since it would no longer be the same; the other texts are
/// redacted, are words of ours, or are digests.
fn secret_in_a_name(observation: &Observation) -> Option<String> {
    let Observation { id, trigger, directory, repository, .. } = observation;
    let names = [("id", id), ("trigger", trigger), ("directory", directory), ("repository", repository)];
    let (field, _) = names.into_iter().find(|(_, text)| !talon_redact::secrets(text).is_empty())?;
    Some(format!("{field}: a part of it looks like a secret; rename it to have it observed"))
}

/// Which field is beyond its bounds.
pub(super) fn beyond_bounds(observation: &Observation) -> Option<String> {
    let Observation {
        id,
        kind,
        trigger,
        directory,
        repository,
        path_hash,
        subject,
        finding,
        excerpt,
        excerpt_left_out_bytes: _,
        language,
        occurred_unix_ms: _,
        boundary,
        exit_code: _,
        duration_ms: _,
        fingerprint,
        redactions: _,
    } = observation;
    let is_word = |text: &str| text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let is_digest = |text: &str| {
        text.is_empty()
            || text.len() == DIGEST_DIGITS && text.bytes().all(|b| matches!(b, b'a'..=b'f' | b'0'..=b'9'))
    };
    let is_path = |text: &str| {
        text.is_empty() || text.starts_with('/') && text.len() <= MAX_PATH_BYTES && !text.contains('\0')
    };
    let is_line = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
    let checks = [
        (!id.is_empty() && id.len() <= MAX_ID_BYTES && is_name(id), "id: 1 to 64 of A-Z, a-z, 0-9, - and _"),
        (KINDS.contains(&kind.as_str()), "kind: none that is known; is the watcher of another release?"),
        (trigger.len() <= MAX_TRIGGER_BYTES && is_word(trigger), "trigger: at most 64 of a-z, 0-9 and _"),
        (is_path(directory), "directory: an absolute path of at most 4096 bytes"),
        (is_path(repository), "repository: an absolute path of at most 4096 bytes"),
        (is_digest(path_hash), "path_hash: a SHA-256 in lower-case hex"),
        (is_digest(fingerprint), "fingerprint: a SHA-256 in lower-case hex"),
        (is_line(subject, MAX_LINE_BYTES), "subject: one line of at most 256 bytes"),
        (is_line(finding, MAX_LINE_BYTES), "finding: one line of at most 256 bytes"),
        (excerpt.len() <= MAX_EXCERPT_BYTES, "excerpt: at most 2048 bytes"),
        (is_line(language, MAX_LANGUAGE_BYTES), "language: one line of at most 32 bytes"),
        (BOUNDARIES.contains(&boundary.as_str()), "boundary: commit, test_end, prompt, idle, or empty"),
    ];
    checks.iter().find(|(holds, _)| !holds).map(|(_, why)| (*why).to_owned())
}

/// By what a finding is known. What a watcher says of it is not taken as it is, so that all are equally long.
pub(super) fn fingerprint(observation: &Observation) -> String {
    let Observation { trigger, repository, path_hash, finding, excerpt, fingerprint, .. } = observation;
    let mut digest = Sha256::new();
    let parts: [&str; 5] = match fingerprint.as_str() {
        "" => [trigger, repository, path_hash, finding, excerpt],
        said => [trigger, said, "", "", ""],
    };
    for part in parts {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    let mut hex = hex::encode(digest.finalize());
    hex.truncate(FINGERPRINT_DIGITS);
    hex
}

/// What caused a ghost, for people: "test_failed: parser.rs".
pub(super) fn trigger_line(observation: &Observation) -> String {
    let Observation { trigger, subject, .. } = observation;
    if subject.is_empty() { trigger.clone() } else { format!("{trigger}: {subject}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation() -> Observation {
        Observation {
            id: "o1".to_owned(),
            kind: "file_changed".to_owned(),
            trigger: "conflict_markers".to_owned(),
            repository: "/code".to_owned(),
            ..Observation::default()
        }
    }

    // Promises: SHADOW-8
    #[test]
    fn what_is_beyond_its_bounds_is_said_by_its_field() {
        assert_eq!(problem(&observation()), None);
        let wrong = [
            ("id", Observation { id: "a b".to_owned(), ..observation() }),
            ("id", Observation { id: String::new(), ..observation() }),
            ("kind", Observation { kind: "smell".to_owned(), ..observation() }),
            ("trigger", Observation { trigger: "Do this".to_owned(), ..observation() }),
            ("directory", Observation { directory: "code".to_owned(), ..observation() }),
            ("repository", Observation { repository: format!("/{}", "a".repeat(4096)), ..observation() }),
            ("path_hash", Observation { path_hash: "AB".to_owned(), ..observation() }),
            ("subject", Observation { subject: "a\nb".to_owned(), ..observation() }),
            ("finding", Observation { finding: "é".repeat(129), ..observation() }),
            ("excerpt", Observation { excerpt: "a".repeat(2049), ..observation() }),
            ("boundary", Observation { boundary: "lunch".to_owned(), ..observation() }),
        ];
        for (field, observation) in wrong {
            let why = problem(&observation).expect("a problem");
            assert!(why.starts_with(&format!("{field}:")), "{field}: {why}");
        }
    }

    #[test]
    fn a_finding_is_the_same_by_what_was_found_or_by_what_its_watcher_says() {
        let one = fingerprint(&observation());
        assert_eq!(one.len(), FINGERPRINT_DIGITS);
        assert_eq!(fingerprint(&Observation { id: "o2".to_owned(), ..observation() }), one);
        assert_ne!(fingerprint(&Observation { excerpt: "x".to_owned(), ..observation() }), one);
        let said = Observation { fingerprint: "a".repeat(64), ..observation() };
        let other = Observation { excerpt: "x".to_owned(), ..said.clone() };
        assert_eq!(fingerprint(&said), fingerprint(&other));
    }
}
