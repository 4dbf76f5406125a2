//! Reads a patch as git prints it: which lines were added to which file.

use crate::event::Added;

/// How many lines of a patch are kept, and how many bytes of a line: detectors look for patterns in source
/// text, and not in generated one.
const LINES: usize = 50_000;
const LINE_BYTES: usize = 4096;

/// The added lines of a patch with `--unified=0` and `--no-prefix`. What is no patch is passed over.
pub(super) fn added(patch: &str) -> Vec<Added> {
    let mut files: Vec<Added> = Vec::new();
    let mut next = 0;
    // How many lines of the hunk are still to come: within it, `+++ x` is a line of a file.
    let (mut removed_left, mut added_left) = (0, 0);
    let mut kept = 0;
    for line in patch.lines() {
        if added_left > 0 || removed_left > 0 {
            if let Some(text) = line.strip_prefix('+').filter(|_| added_left > 0) {
                added_left -= 1;
                if let Some(file) = files.last_mut().filter(|_| kept < LINES) {
                    file.lines.push((next, talon_sanitize::truncate(text, LINE_BYTES, "…").into_owned()));
                    kept += 1;
                }
                next += 1;
                continue;
            }
            if line.starts_with('-') && removed_left > 0 {
                removed_left -= 1;
                continue;
            }
            if line.starts_with('\\') {
                continue;
            }
            (removed_left, added_left) = (0, 0);
        }
        if let Some(path) = line.strip_prefix("+++ ") {
            files.push(Added { path: unquoted(path), lines: Vec::new() });
        } else if let Some((removed, start, added)) = line.strip_prefix("@@ ").and_then(hunk) {
            (removed_left, next, added_left) = (removed, start, added);
        }
    }
    files.retain(|file| !file.lines.is_empty());
    files
}

/// `-1,2 +3,4 @@`: the removed lines, the first added one, and how many.
fn hunk(text: &str) -> Option<(usize, usize, usize)> {
    let mut parts = text.split(' ');
    let (old, new) = (parts.next()?.strip_prefix('-')?, parts.next()?.strip_prefix('+')?);
    let count = |range: &str| range.split_once(',').map_or(Some(1), |(_, count)| count.parse().ok());
    let start = new.split(',').next()?.parse().ok()?;
    Some((count(old)?, start, count(new)?))
}

/// git quotes names with control characters as C does; they are shown as they stand, without the quotes.
fn unquoted(path: &str) -> String {
    let path = path.strip_suffix('\t').unwrap_or(path);
    path.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-72
    #[test]
    fn added_lines_are_read_with_their_numbers() {
        let patch = "diff --git a.rs a.rs\nindex 1..2 100644\n--- a.rs\n+++ a.rs\n@@ -1 +1,2 @@\n-old\n+new\n+++ not a \
                     file\n@@ -9,0 +11 @@ fn x() {\n+last\n\\ No newline at end of file\ndiff --git b b\n--- b\n+++ /dev/null\n@@ \
                     -1,2 +0,0 @@\n-a\n-b\n";
        let expected = Added {
            path: "a.rs".into(),
            lines: vec![(1, "new".into()), (2, "++ not a file".into()), (11, "last".into())],
        };
        assert_eq!(added(patch), [expected]);
    }

    proptest! {
        #[test]
        fn any_patch_is_taken(text in "([-+@ \\\\]{0,4}[ -~]{0,20}\n){0,40}") {
            let total: usize = added(&text).iter().map(|file| file.lines.len()).sum();
            prop_assert!(total <= text.lines().count());
        }
    }
}
