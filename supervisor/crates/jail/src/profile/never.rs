//! What no profile can allow.

use std::sync::LazyLock;

use super::definition::Profile;
use super::parser::parse_file;
use super::rule::CallGroup;

/// What no profile can allow; checked before each profile.
pub(super) static NEVER: LazyLock<Profile> = LazyLock::new(|| {
    parse_file(include_str!("../../profiles/never.toml"), "never")
        .expect("the file is part of the program, and a test reads it")
});

/// The group of `never.toml` that forbids a call whatever its arguments are.
pub(super) fn forbidding_group(call: &str) -> Option<&'static CallGroup> {
    let closed = |group: &&CallGroup| group.when.is_empty() && group.networks.is_empty();
    NEVER.groups.iter().filter(closed).find(|group| group.calls.contains(&call))
}
