//! Which versions of Node a package is for (`engines` in its `package.json`).
//!
//! npm installs it all the same, so this is no reason to leave a server out; but when it does not start, one knows why.

use std::path::Path;
use std::process::Command;

use semver::{Version, VersionReq};

/// How much of what a package says is shown.
const MAX_SHOWN_CHARS: usize = 40;

/// What to say of a package that is for other versions than this one.
pub(super) fn note(wanted: &str, node: &Path) -> Option<String> {
    let output = Command::new(node).arg("--version").output().ok()?;
    let here = String::from_utf8(output.stdout).ok()?;
    let here = Version::parse(here.trim().trim_start_matches('v')).ok()?;
    if admits(wanted, &here)? {
        return None;
    }
    let wanted: String = wanted.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect();
    Some(format!(
        "is for Node {wanted}, and {} is {here}: if it does not start, install such a version and import again",
        node.display()
    ))
}

/// Whether a range of npm has a version; nothing if it is none that is understood.
fn admits(range: &str, version: &Version) -> Option<bool> {
    let alternatives: Option<Vec<VersionReq>> = range.split("||").map(requirement).collect();
    Some(alternatives?.iter().any(|one| one.matches(version)))
}

/// One alternative: comparators with spaces between them. A version without an operator is that one, and not what is
/// compatible with it.
fn requirement(alternative: &str) -> Option<VersionReq> {
    let mut comparators: Vec<String> = Vec::new();
    let mut operator = String::new();
    for word in alternative.split_whitespace() {
        let bare = word.trim_start_matches(['<', '>', '=', '~', '^']);
        operator.push_str(word.strip_suffix(bare)?);
        if bare.is_empty() {
            continue;
        }
        let bare = bare.trim_start_matches('v').replace(['x', 'X'], "*");
        let is_exact = operator.is_empty() && !bare.contains('*');
        comparators.push(format!("{}{bare}", if is_exact { "=" } else { &operator }));
        operator.clear();
    }
    if comparators.is_empty() {
        return Some(VersionReq::STAR);
    }
    VersionReq::parse(&comparators.join(",")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn ranges_of_npm_are_understood() {
        for (range, version, expected) in [
            (">=18", "20.19.2", Some(true)),
            (">= 22.0.0", "20.19.2", Some(false)),
            ("^20.17.0 || >=22.9.0", "20.19.2", Some(true)),
            ("^20.17.0 || >=22.9.0", "21.1.0", Some(false)),
            (">=18 <21", "20.0.0", Some(true)),
            (">=18.0.0 <20", "20.0.0", Some(false)),
            ("20.x", "20.5.0", Some(true)),
            ("20", "20.5.0", Some(true)),
            ("20.1.0", "20.5.0", Some(false)),
            ("v22", "20.5.0", Some(false)),
            ("*", "20.5.0", Some(true)),
            ("", "20.5.0", Some(true)),
            ("18 - 20", "20.5.0", None),
            ("lts", "20.5.0", None),
        ] {
            assert_eq!(admits(range, &Version::parse(version).unwrap()), expected, "{range} {version}");
        }
    }

    // Promises: MCP-38
    #[test]
    fn a_package_for_another_node_is_named_with_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let node = dir.path().join("node");
        fs::write(&node, "#!/bin/sh\necho v20.19.2\n").unwrap();
        fs::set_permissions(&node, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(note(">=18", &node), None);
        let said = note(">=22", &node).unwrap();
        assert!(said.contains(">=22") && said.contains("20.19.2"), "{said}");
        assert_eq!(note("whatever", &node), None);
        assert_eq!(note(">=22", &dir.path().join("none")), None);
    }
}
