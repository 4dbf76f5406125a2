//! Loads a profile: a built-in one, or the text of a file with the built-in profile that it extends.

use std::sync::OnceLock;

use super::definition::Profile;
use super::error::{ProfileError, quoted};
use super::never::forbidding_group;
use super::parser::{line, parse_file};
use super::rule::GroupAction;

/// The built-in files.
pub(super) const BUILT_IN: &[(&str, &str)] = &[
    ("strict", include_str!("../../profiles/strict.toml")),
    ("ports", include_str!("../../profiles/ports.toml")),
    ("wide", include_str!("../../profiles/wide.toml")),
];

/// The calls that the stage's child still makes behind the filter, up to and including the program's first
/// instruction.
pub(super) const REQUIRED_CALLS: &[&str] = &[
    "brk",
    "close",
    "execve",
    "execveat",
    "exit_group",
    "mmap",
    "mprotect",
    "munmap",
    "openat",
    "read",
    "rt_sigprocmask",
    "sendmsg",
    "write",
];

impl Profile {
    /// The built-in profile of this name: see [`Profile::names`].
    pub fn builtin(name: &str) -> Option<Self> {
        static PARSED: [OnceLock<Profile>; BUILT_IN.len()] = [const { OnceLock::new() }; BUILT_IN.len()];
        let at = BUILT_IN.iter().position(|(known, _)| *known == name)?;
        let (name, text) = BUILT_IN[at];
        // A profile that extends another initializes that other one meanwhile, hence a lock for each.
        let parsed = PARSED[at].get_or_init(|| {
            Self::parse(text, name).expect("the files are part of the program, and a test reads them")
        });
        Some(parsed.clone())
    }

    /// The file of a built-in profile, for operators who want to read it before writing one.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// The names of the built-in profiles, the default one first.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Parses a profile. `origin` is the path of its file, or its name: messages begin with it, and the
    /// profile's name is its last component without the extension. The result includes the profile that it
    /// extends.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let profile = parse_file(text, origin)?;
        let at = |start, problem| Err(line(text, origin, start, problem));
        for group in &profile.groups {
            if matches!(group.verdict, GroupAction::Answer(_)) && !group.when.is_empty() {
                let problem = format!(
                    "an [[answer]] is for what [[allow]] leaves of `{}`, so it has no `when`",
                    group.calls[0]
                );
                return at(position(text, &group.why), problem);
            }
            for call in &group.calls {
                if group.verdict == GroupAction::Allow
                    && let Some(never) = forbidding_group(call)
                {
                    let problem = format!("`{call}` is open to no profile: {} (remove it)", never.why);
                    return at(position(text, call), problem);
                }
            }
        }
        let profile = extend_base(profile, text, origin)?;
        for call in REQUIRED_CALLS {
            let mut open = profile.groups.iter().filter(|group| group.calls.contains(call));
            if !open.any(|group| {
                group.verdict == GroupAction::Allow && group.when.is_empty() && group.networks.is_empty()
            }) {
                let problem =
                    format!("no program can start without `{call}` (allow it, or add: extends = \"strict\")");
                return Err(ProfileError::invalid(origin, problem));
            }
        }
        Ok(profile)
    }
}

/// The first position of a word in the file; good enough to report the line.
fn position(text: &str, word: &str) -> usize {
    text.find(&format!("\"{word}\"")).unwrap_or(0)
}

fn extend_base(mut profile: Profile, text: &str, origin: &str) -> Result<Profile, ProfileError> {
    let Some(name) = profile.extends.clone() else { return Ok(profile) };
    let Some(base) = Profile::builtin(&name) else {
        let known: Vec<_> = Profile::names().collect();
        let problem =
            format!("`extends` names no built-in profile: `{}` (one of {})", quoted(&name), known.join(", "));
        return Err(line(text, origin, position(text, &name), problem));
    };
    if profile.landlock_abi == 0 {
        profile.landlock_abi = base.landlock_abi;
    }
    profile.groups.extend(base.groups);
    Ok(profile)
}
