//! `docs/troubleshooting.md` is found by the text that somebody sees. So every text that it quotes has to
//! occur in the sources as it stands there, every entry has to say why and what to do, and of the places
//! where most goes wrong no text may be missing.
//!
//! Where the sources fill something in, the page has `…`, and the end of a text may be left out.

use std::path::{Path, PathBuf};

use talon_tests::repository;

/// What an error text is filled with, here and on the page.
const FILLED: &str = "…";
/// Shorter ones would be found anywhere.
const SHORTEST: usize = 12;
/// Fewer entries mean that this reader has lost the page.
const FEWEST_ENTRIES: usize = 50;

/// Where all of a plugin's start is judged: whatever is said there has an entry.
const COMPLETE: [&str; 9] = [
    "supervisor/crates/plugin-client/src/handshake.rs",
    "supervisor/crates/plugin/src/launch/error.rs",
    "supervisor/crates/plugin-client/src/connect/error.rs",
    "supervisor/crates/plugin-config/src/discover/check.rs",
    "supervisor/crates/bridge/src/program.rs",
    "supervisor/framed-bridge/src/exchange.rs",
    "supervisor/framed-bridge/src/frame.rs",
    "supervisor/framed-bridge/src/handshake.rs",
    "supervisor/framed-bridge/src/tools.rs",
];

/// Texts of those places that mean nothing alone, or that no user sees.
const NOT_FOR_THE_PAGE: [&str; 8] = [
    // Kept to itself: the next line may be one.
    "not a handshake line: …",
    // The setting's own words.
    "…: …",
    // Another's own words.
    "…",
    "its start was cancelled",
    "the supervisor is stopping",
    // What the machine lacks, in the words of the system. What to do about descriptors is on the page.
    "its private directory cannot be made: …; …",
    "the supervisor cannot watch it: …; …",
    // Arguments are always texts.
    "the call cannot be written as JSON: …",
];

struct Entry {
    line: usize,
    texts: Vec<String>,
    body: String,
}

fn page() -> Vec<Entry> {
    let text =
        std::fs::read_to_string(repository().join("docs/troubleshooting.md")).expect("the page is there");
    let mut entries: Vec<Entry> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("### ") {
            let texts = heading.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            entries.push(Entry { line: index + 1, texts, body: String::new() });
            open = true;
        } else if line.starts_with('#') {
            open = false;
        } else if open && let Some(entry) = entries.last_mut() {
            entry.body.push_str(line);
            entry.body.push('\n');
        }
    }
    entries
}

/// The sources that have texts for people, without their tests.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = ["supervisor", "sdk/src"].map(|below| repository().join(below)).into();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).expect("the sources can be listed") {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["tests", "target", "fuzz", "benches"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The literals of a source, as they are shown: on one line, with `…` for what is filled in.
fn literals(path: &Path) -> Vec<String> {
    let source = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut literals = Vec::new();
    let mut rest = source.as_str();
    while let Some(start) = rest.find('"') {
        // A character, as '"' is.
        if rest[..start].ends_with('\'') && rest[start + 1..].starts_with('\'') {
            rest = &rest[start + 1..];
            continue;
        }
        let (literal, after) = literal(&rest[start + 1..]);
        literals.push(shown(&literal));
        rest = after;
    }
    literals
}

/// A literal without its marks of escape, and what comes after it.
fn literal(text: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (literal, &text[at + 1..]),
            '\\' => match chars.next() {
                // A line that continues, with the white space that follows.
                Some((at, '\n')) => {
                    let rest = text[at + 1..].trim_start();
                    let (more, after) = self::literal(rest);
                    return (literal + &more, after);
                }
                Some((_, 'n')) => literal.push('\n'),
                Some((_, other)) => literal.push(other),
                None => break,
            },
            other => literal.push(other),
        }
    }
    (literal, "")
}

/// `{…}` is filled in, `{{` is a brace.
fn shown(literal: &str) -> String {
    let mut shown = String::new();
    let mut rest = literal;
    while let Some(start) = rest.find(['{', '}']) {
        shown.push_str(&rest[..start]);
        let (brace, after) = (&rest[start..=start], &rest[start + 1..]);
        if after.starts_with(brace) {
            shown.push_str(brace);
            rest = &after[1..];
        } else if brace == "{"
            && let Some(end) = after.find('}')
        {
            shown.push_str(FILLED);
            rest = &after[end + 1..];
        } else {
            rest = after;
        }
    }
    shown + rest
}

/// Whether a text of the page is this one of the sources. What the page fills in may be words of the sources,
/// too.
fn is_of(quoted: &str, literal: &str) -> bool {
    let mut rest = literal;
    let pieces: Vec<&str> = quoted.split(FILLED).collect();
    for (index, piece) in pieces.iter().enumerate() {
        match rest.find(piece) {
            Some(0) => rest = &rest[piece.len()..],
            // What comes before the first piece has to be of the page as well.
            Some(at) if index > 0 => rest = &rest[at + piece.len()..],
            _ => return false,
        }
    }
    true
}

// Promises: OTHER-14
#[test]
fn every_text_on_the_page_is_one_that_somebody_can_see() {
    let literals: Vec<String> = sources().iter().flat_map(|path| literals(path)).collect();
    let entries = page();
    assert!(entries.len() >= FEWEST_ENTRIES, "only {} entries were found", entries.len());
    let mut gone = Vec::new();
    for entry in &entries {
        assert!(!entry.texts.is_empty(), "docs/troubleshooting.md:{}: it quotes no text", entry.line);
        for text in &entry.texts {
            let words: usize = text.split(FILLED).map(str::len).sum();
            assert!(words >= SHORTEST, "docs/troubleshooting.md:{}: {text:?} is too short", entry.line);
            if !literals.iter().any(|literal| is_of(text, literal)) {
                gone.push(format!("line {}: {text:?}", entry.line));
            }
        }
    }
    let gone = gone.join("\n  ");
    assert!(gone.is_empty(), "docs/troubleshooting.md quotes what nothing says any more:\n  {gone}");
}

#[test]
fn every_entry_says_why_and_what_to_do() {
    for Entry { line, body, .. } in page() {
        for part in ["**Why.** ", "**Do.** "] {
            assert_eq!(
                body.matches(part).count(),
                1,
                "docs/troubleshooting.md:{line}: it says {part:?} once"
            );
        }
    }
}

// Promises: OTHER-14
#[test]
fn nothing_that_keeps_a_plugin_from_starting_is_missing() {
    let entries = page();
    let mut missing = Vec::new();
    for file in COMPLETE {
        let path = repository().join(file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for text in source.split("#[error(").skip(1) {
            let Some(text) = text.trim_start().strip_prefix('"') else { continue };
            let text = shown(&literal(text).0);
            let found = entries.iter().flat_map(|entry| &entry.texts).any(|quoted| is_of(quoted, &text));
            if !found && !NOT_FOR_THE_PAGE.contains(&text.as_str()) {
                missing.push(format!("{file}: {text:?}"));
            }
        }
    }
    let missing = missing.join("\n  ");
    assert!(missing.is_empty(), "docs/troubleshooting.md has no entry for:\n  {missing}");
}

#[test]
fn the_reader_reads_what_is_shown() {
    let (text, after) = literal("a {x:?}\\n\\\"b\\\" \\\n      c\" rest");
    assert_eq!((shown(&text).as_str(), after), ("a …\n\"b\" c", " rest"));
    assert_eq!(shown("{{ {a} }} {}"), "{ … } …");
    for (quoted, literal, is) in [
        ("no … at all", "no … at all", true),
        ("no … at", "no … at all", true),
        ("no … at all", "no x at all", true),
        ("… at all", "no … at all", true),
        ("no … at all", "yes, no … at all", false),
        ("no … here", "no … at all", false),
    ] {
        assert_eq!(is_of(quoted, literal), is, "{quoted:?} {literal:?}");
    }
}
