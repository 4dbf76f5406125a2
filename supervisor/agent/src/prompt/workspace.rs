//! The files of a person's workspace: the assistant's identity (`IDENTITY.md`) and behaviour (`SOUL.md`), the
//! user (`USER.md`), and notes by day.
//!
//! They are the person's own words, and are only read. This module gets their contents; [`crate::workspace`]
//! reads the files.

/// How much of a file is used: 16 KiB, more than a prompt has room for.
const MAX_FILE_BYTES: usize = 16 * 1024;
/// The longest name that is taken for one.
const MAX_NAME_CHARS: usize = 64;
/// The days of notes that are shown: today and yesterday.
const MAX_DAYS: usize = 2;

/// The text if `IDENTITY.md` is missing or empty.
const IDENTITY: &str = "You are Talon, an assistant that gets things done with tools. Every tool runs in a jail and behind a guard, so \
call them when they help, several at once where they do not depend on each other.";
/// The text if `SOUL.md` is missing or empty.
const SOUL: &str = "Be brief, exact and honest. Say what you did and what you do not know; do not guess what a tool can tell. Do what was \
asked and no more, and ask before you destroy something.";

/// Contents of the files; `None` for one that is not there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files<'f> {
    /// `IDENTITY.md`
    pub identity: Option<&'f str>,
    /// `SOUL.md`
    pub soul: Option<&'f str>,
    /// `USER.md`
    pub user: Option<&'f str>,
    /// Notes, newest day first, each with its date as `2026-11-22`.
    pub daily: &'f [(&'f str, &'f str)],
}

/// The texts of the files, bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Who the assistant is.
    pub identity: String,
    /// How it behaves.
    pub soul: String,
    /// The user; empty if unknown.
    pub user: String,
    /// The person's name, if `USER.md` says it.
    pub name: Option<String>,
    /// Notes, newest first.
    pub daily: Vec<Daily>,
    /// The files that have more than is used of one.
    pub cut: Vec<&'static str>,
}

/// Notes of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daily {
    /// As `2026-11-22`.
    pub date: String,
    /// What they say.
    pub text: String,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new(Files::default())
    }
}

impl Workspace {
    /// Reads the contents of files. A built-in text replaces a missing or empty one.
    #[must_use]
    pub fn new(files: Files<'_>) -> Self {
        let user = visible_text(files.user).unwrap_or_default();
        let daily = files.daily.iter().filter_map(|(date, text)| {
            visible_text(Some(text))
                .map(|text| Daily { date: date.chars().take(MAX_NAME_CHARS).collect(), text })
        });
        Self {
            identity: visible_text(files.identity).unwrap_or_else(|| IDENTITY.to_owned()),
            soul: visible_text(files.soul).unwrap_or_else(|| SOUL.to_owned()),
            name: name(&user),
            user: if user.is_empty() { user } else { format!("About the user:\n{user}") },
            daily: daily.take(MAX_DAYS).collect(),
            cut: [("IDENTITY.md", files.identity), ("SOUL.md", files.soul), ("USER.md", files.user)]
                .into_iter()
                .filter(|(_, text)| text.is_some_and(is_too_long))
                .map(|(name, _)| name)
                .collect(),
        }
    }
}

/// Whether a file has more than is used of it.
fn is_too_long(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim().len() > MAX_FILE_BYTES
}

/// A file's text, truncated. `None` if it has only headings and comments, as an untouched template.
fn visible_text(text: Option<&str>) -> Option<String> {
    let text = text?.trim_start_matches('\u{feff}').trim();
    let says = |line: &str| {
        let line = line.trim();
        !(line.is_empty() || line.starts_with('#') || (line.starts_with("<!--") && line.ends_with("-->")))
    };
    let shown = &text[..text.floor_char_boundary(MAX_FILE_BYTES)];
    if !shown.lines().any(says) {
        return None;
    }
    if shown.len() == text.len() {
        return Some(shown.to_owned());
    }
    Some(format!(
        "{}\n[truncated: the file is over its limit, {} bytes left out]",
        shown.trim_end(),
        text.len() - shown.len()
    ))
}

/// The name in a line like `Name: Ada`, `- **Name:** Ada` or `My name is Ada.`.
fn name(user: &str) -> Option<String> {
    user.lines().find_map(|line| {
        let plain: String = line.chars().filter(|c| !matches!(c, '*' | '`')).collect();
        let plain = plain.trim_start_matches(['-', '#', ' ', '\t']).trim();
        let (key, value) = match plain.split_once(':') {
            Some((key, value)) => (key.trim(), value),
            None => {
                ("name", plain.strip_prefix("My name is ").or_else(|| plain.strip_prefix("my name is "))?)
            }
        };
        if !["name", "full name", "user name", "username"].contains(&key.to_lowercase().as_str()) {
            return None;
        }
        let value = value.trim().trim_end_matches('.');
        // The placeholder for a name in a template.
        let is_name = value.chars().any(char::is_alphabetic)
            && value.chars().count() <= MAX_NAME_CHARS
            && !value.chars().any(char::is_control)
            && !value.starts_with(['(', '[', '<', '{'])
            && !["unknown", "tbd", "todo", "your name"].contains(&value.to_lowercase().as_str());
        is_name.then(|| value.to_owned())
    })
}
