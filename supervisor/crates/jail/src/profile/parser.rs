//! Parses a profile's file, without the profile that it extends.

use serde::Deserialize;
use toml::Spanned;

use super::definition::Profile;
use super::error::{ProfileError, quoted};
use super::rule::{ArgumentTest, CallGroup, Condition, DefaultAction, GroupAction, NetworkKind};
use super::syscalls;

/// The largest file. The built-in ones have 15 KiB; a larger file is refused unread.
const FILE_MAX_BYTES: usize = 256 << 10;

/// The most groups, calls of a group, and values of a condition: each several times what the built-in
/// profiles have. More is refused here, before it becomes a filter that the kernel refuses (4,096
/// instructions).
const GROUPS_MAX: usize = 256;
const CALLS_MAX: usize = 256;
const VALUES_MAX: usize = 64;

/// The most combinations of values that one group's conditions may have: each is some ten instructions.
const ALTERNATIVES_MAX: usize = 128;

/// The highest Landlock version that a profile may request: far above the newest there is (9), so that typos
/// are found and kernels of the next years are supported.
const LANDLOCK_ABI_MAX: u32 = 64;

/// The supported names for `errno`.
const ERRNOS: &[(&str, i32)] = &[
    ("EPERM", libc::EPERM),
    ("EACCES", libc::EACCES),
    ("EINVAL", libc::EINVAL),
    ("ENOENT", libc::ENOENT),
    ("ENOTTY", libc::ENOTTY),
    ("ENOSYS", libc::ENOSYS),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("EAFNOSUPPORT", libc::EAFNOSUPPORT),
    ("EPROTONOSUPPORT", libc::EPROTONOSUPPORT),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    description: Spanned<String>,
    extends: Option<Spanned<String>>,
    default: Option<DefaultEntry>,
    landlock_abi: Option<Spanned<u32>>,
    #[serde(default)]
    allow: Vec<Spanned<GroupEntry>>,
    #[serde(default)]
    answer: Vec<Spanned<GroupEntry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DefaultEntry {
    Errno,
    Kill,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupEntry {
    why: Spanned<String>,
    calls: Vec<Spanned<String>>,
    errno: Option<Spanned<String>>,
    #[serde(default)]
    when: Vec<Spanned<ConditionEntry>>,
    #[serde(default)]
    network: Vec<NetworkKind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionEntry {
    arg: u8,
    mask: Option<u32>,
    is: Option<Vec<u32>>,
    is_not: Option<Vec<u32>>,
    any_bit: Option<u32>,
    #[serde(default)]
    wide: bool,
}

/// Parses one file, without the profile that it extends.
pub(super) fn parse_file(text: &str, origin: &str) -> Result<Profile, ProfileError> {
    if text.len() > FILE_MAX_BYTES {
        return Err(ProfileError::TooLarge {
            origin: quoted(origin),
            bytes: text.len(),
            limit: FILE_MAX_BYTES,
        });
    }
    let file: ProfileFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        line(
            text,
            origin,
            start,
            format!("{} (see the built-in profiles for the form)", quoted(error.message())),
        )
    })?;
    let at = |start, problem: String| line(text, origin, start, problem);
    let description = file.description.get_ref().trim();
    if description.is_empty() {
        return Err(at(file.description.span().start, "say in `description` what the profile is for".into()));
    }
    if let Some(abi) = &file.landlock_abi
        && !(1..=LANDLOCK_ABI_MAX).contains(abi.get_ref())
    {
        return Err(at(abi.span().start, format!("`landlock_abi` is a number from 1 to {LANDLOCK_ABI_MAX}")));
    }
    if file.allow.len() + file.answer.len() > GROUPS_MAX {
        return Err(ProfileError::invalid(
            origin,
            format!("more than {GROUPS_MAX} groups (put related calls into one)"),
        ));
    }
    let mut groups = Vec::new();
    for (entries, allow) in [(&file.allow, true), (&file.answer, false)] {
        for entry in entries {
            let group = group(entry.get_ref(), allow);
            groups.push(group.map_err(|EntryError { position, problem }| {
                at(position.unwrap_or(entry.span().start), problem)
            })?);
        }
    }
    Ok(Profile {
        name: name(origin),
        description: quoted(description),
        extends: file.extends.map(Spanned::into_inner),
        default: match file.default {
            Some(DefaultEntry::Kill) => DefaultAction::Kill,
            Some(DefaultEntry::Errno) | None => DefaultAction::Errno,
        },
        landlock_abi: file.landlock_abi.map_or(0, Spanned::into_inner),
        groups,
    })
}

/// Why an entry of the file is refused.
#[derive(Debug)]
struct EntryError {
    /// Where it is in the file, if it is not the group as a whole.
    position: Option<usize>,
    /// What is wrong and what to do about it.
    problem: String,
}

impl EntryError {
    fn at(position: usize, problem: impl Into<String>) -> Self {
        Self { position: Some(position), problem: problem.into() }
    }

    fn of_group(problem: impl Into<String>) -> Self {
        Self { position: None, problem: problem.into() }
    }
}

/// Why a condition is refused.
#[derive(Debug, thiserror::Error)]
enum ConditionError {
    #[error("`arg` counts from 0 to 5")]
    ArgumentIndex,
    #[error("{value:#x} has bits outside the mask {mask:#x}, so it would never fit")]
    OutsideMask { value: u32, mask: u32 },
    #[error("a condition has one of `is` (with or without `mask`), `is_not`, `any_bit`")]
    Test,
    #[error("`wide` is for pointers, and goes with `is` (without `mask`) and `is_not`")]
    Wide,
    #[error("a condition has from 1 to {VALUES_MAX} values")]
    ValueCount,
}

fn group(entry: &GroupEntry, allow: bool) -> Result<CallGroup, EntryError> {
    let why = entry.why.get_ref().trim();
    if why.is_empty() {
        return Err(EntryError::at(entry.why.span().start, "say in `why` what the calls are needed for"));
    }
    if entry.calls.is_empty() || entry.calls.len() > CALLS_MAX {
        return Err(EntryError::of_group(format!("a group has from 1 to {CALLS_MAX} calls")));
    }
    let calls = entry.calls.iter().map(call).collect::<Result<_, _>>()?;
    let verdict = match (allow, &entry.errno) {
        (true, None) => GroupAction::Allow,
        (true, Some(errno)) => {
            return Err(EntryError::at(errno.span().start, "`errno` belongs into an [[answer]]"));
        }
        (false, None) => GroupAction::Answer(None),
        (false, Some(errno)) => GroupAction::Answer(Some(number(errno)?)),
    };
    let mut alternatives = 1_usize;
    let mut when = Vec::new();
    for entry in &entry.when {
        let condition = condition(entry.get_ref())
            .map_err(|error| EntryError::at(entry.span().start, error.to_string()))?;
        alternatives = alternatives.saturating_mul(condition.alternative_count());
        when.push(condition);
    }
    if alternatives > ALTERNATIVES_MAX {
        let problem = format!(
            "the conditions have {alternatives} combinations, the most is {ALTERNATIVES_MAX} (use a mask, or fewer values)"
        );
        return Err(EntryError::of_group(problem));
    }
    Ok(CallGroup { why: why.to_owned(), calls, verdict, when, networks: entry.network.clone() })
}

fn call(name: &Spanned<String>) -> Result<&'static str, EntryError> {
    syscalls::known_name(name.get_ref()).ok_or_else(|| {
        let meant = match syscalls::nearest_name(name.get_ref()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "names are the kernel's, as `strace` shows them".into(),
        };
        let problem = format!("unknown system call `{}` ({meant})", quoted(name.get_ref()));
        EntryError::at(name.span().start, problem)
    })
}

fn number(errno: &Spanned<String>) -> Result<i32, EntryError> {
    let known = ERRNOS.iter().find(|(name, _)| name == errno.get_ref());
    known.map(|(_, number)| *number).ok_or_else(|| {
        let names: Vec<_> = ERRNOS.iter().map(|(name, _)| *name).collect();
        EntryError::at(errno.span().start, format!("`errno` is one of {}", names.join(", ")))
    })
}

fn condition(when: &ConditionEntry) -> Result<Condition, ConditionError> {
    if when.arg > 5 {
        return Err(ConditionError::ArgumentIndex);
    }
    let test = match (&when.is, &when.is_not, when.any_bit) {
        (Some(values), None, None) => {
            let mask = when.mask.unwrap_or(u32::MAX);
            if let Some(value) = values.iter().find(|value| **value & !mask != 0) {
                return Err(ConditionError::OutsideMask { value: *value, mask });
            }
            ArgumentTest::Is { mask, values: values.clone() }
        }
        (None, Some(values), None) if when.mask.is_none() => ArgumentTest::IsNot(values.clone()),
        (None, None, Some(bits)) if when.mask.is_none() && bits != 0 => ArgumentTest::AnyBit(bits),
        _ => return Err(ConditionError::Test),
    };
    if when.wide && (when.mask.is_some() || when.any_bit.is_some()) {
        return Err(ConditionError::Wide);
    }
    match &test {
        ArgumentTest::Is { values, .. } | ArgumentTest::IsNot(values)
            if values.is_empty() || values.len() > VALUES_MAX =>
        {
            Err(ConditionError::ValueCount)
        }
        _ => Ok(Condition { arg: when.arg, wide: when.wide, test }),
    }
}

/// The last component of a path, without the extension.
fn name(origin: &str) -> String {
    let stem = std::path::Path::new(origin).file_stem().unwrap_or_default();
    quoted(&stem.to_string_lossy())
}

pub(super) fn line(text: &str, origin: &str, start: usize, problem: String) -> ProfileError {
    let before = text.as_bytes().get(..start).unwrap_or_default();
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    ProfileError::Line { origin: quoted(origin), line, problem }
}
