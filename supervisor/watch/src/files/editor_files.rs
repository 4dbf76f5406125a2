//! Files that editors make while somebody edits or saves. They are nobody's work, and are not looked at.

/// Whether a file's name is one of an editor's own:
///
/// | editor | names |
/// |---|---|
/// | vim | `.a.rs.swp` (also `.swo`, `.swx`, …), `a.rs~`, `4913` (it tries whether it may write) |
/// | Emacs | `#a.rs#`, `.#a.rs`, `a.rs~` |
/// | JetBrains | `a.rs___jb_tmp___`, `a.rs___jb_old___` |
/// | Kate | `.a.rs.kate-swp` |
/// | GNOME and GLib | `.goutputstream-XXXXXX` |
/// | Sublime Text, and who replaces files in one step | `.a.rs.tmp`, `a.rs.tmp.1234` |
pub(crate) fn is_editors(name: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_swap = |extension: &str| {
        extension.len() == 3
            && extension.starts_with("sw")
            && extension.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let hidden = name.starts_with('.');
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let temporary = name.rsplit_once(".tmp").is_some_and(|(_, rest)| {
        rest.is_empty() && hidden || rest.strip_prefix(['.', '-']).is_some_and(is_digits)
    });
    name.ends_with('~')
        || name == "4913"
        || hidden && is_swap(extension)
        || name.starts_with('#') && name.ends_with('#')
        || name.starts_with(".#")
        || name.ends_with("___jb_tmp___")
        || name.ends_with("___jb_old___")
        || name.ends_with(".kate-swp")
        || name.starts_with(".goutputstream-")
        || temporary
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Promises: SHADOW-65
    #[test]
    fn editors_own_files_are_told_from_work() {
        for name in [
            ".a.rs.swp",
            ".a.rs.swo",
            ".a.rs.swx",
            "a.rs~",
            "4913",
            "#a.rs#",
            ".#a.rs",
            "a.rs___jb_tmp___",
            "a.rs___jb_old___",
            ".a.rs.kate-swp",
            ".goutputstream-X1Y2Z3",
            ".a.rs.tmp",
            "a.rs.tmp.123",
        ] {
            assert!(is_editors(name), "{name}");
        }
        for name in [
            "a.rs",
            ".gitignore",
            ".env",
            "swap.swp.rs",
            "4914",
            "tmp",
            "a.tmp",
            "a.swift",
            ".swift",
            "#a",
            "",
        ] {
            assert!(!is_editors(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_taken(name in "\\PC{0,30}") {
            is_editors(&name);
            let temporary = format!("{name}___jb_tmp___");
            prop_assert!(is_editors(&temporary));
        }
    }
}
