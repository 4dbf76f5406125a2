//! Where the files of a repository are: plain, as a worktree of another one, or as a submodule.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest file of this kind that is read: they hold one path or one hash.
const FILE_BYTES: u64 = 64 * 1024;

/// A repository's places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Where files are worked on.
    pub(super) work_tree: PathBuf,
    /// HEAD, the index, and what is in progress.
    pub(super) git_dir: PathBuf,
    /// Refs and their logs: the same, but for worktrees, which share them.
    pub(super) common_dir: PathBuf,
}

impl Layout {
    /// The repository with this work tree. None if there is none, or not one as git makes them.
    pub(super) fn of(work_tree: &Path) -> Option<Self> {
        let dot_git = work_tree.join(".git");
        let kind = dot_git.symlink_metadata().ok()?;
        let git_dir = if kind.is_dir() {
            dot_git
        } else {
            // A worktree's or a submodule's: `gitdir: PATH`, which may be relative.
            let text = read_small(&dot_git)?;
            work_tree.join(text.trim_end().strip_prefix("gitdir:")?.trim_start()).canonicalize().ok()?
        };
        let common_dir = match read_small(&git_dir.join("commondir")) {
            Some(text) => git_dir.join(text.trim_end()).canonicalize().ok()?,
            None => git_dir.clone(),
        };
        git_dir.join("HEAD").symlink_metadata().ok()?;
        Some(Self { work_tree: work_tree.to_owned(), git_dir, common_dir })
    }
}

/// The text of a small regular file; none if it is not there, is no file, or is too large.
pub(super) fn read_small(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    let is_small_file = metadata.is_file() && metadata.len() <= FILE_BYTES;
    if !is_small_file {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-71
    #[test]
    fn worktrees_and_submodules_are_found_where_git_puts_them() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let make = |path: &str, text: &str| {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        make("main/.git/HEAD", "ref: refs/heads/main\n");
        make("main/.git/worktrees/topic/HEAD", "ref: refs/heads/topic\n");
        make("main/.git/worktrees/topic/commondir", "../..\n");
        make("topic/.git", &format!("gitdir: {}\n", base.join("main/.git/worktrees/topic").display()));
        make("main/.git/modules/sub/HEAD", "ref: refs/heads/main\n");
        make("main/sub/.git", "gitdir: ../.git/modules/sub\n");
        make("broken/.git", "nonsense");
        fs::create_dir_all(base.join("empty/.git")).unwrap();
        let git = base.join("main/.git");
        let plain = Layout::of(&base.join("main")).unwrap();
        assert_eq!((&plain.git_dir, &plain.common_dir), (&git, &git));
        let worktree = Layout::of(&base.join("topic")).unwrap();
        assert_eq!((worktree.git_dir, worktree.common_dir), (git.join("worktrees/topic"), git.clone()));
        let submodule = Layout::of(&base.join("main/sub")).unwrap();
        assert_eq!(submodule.common_dir, git.join("modules/sub"));
        for name in ["broken", "empty", "missing"] {
            assert_eq!(Layout::of(&base.join(name)), None, "{name}");
        }
    }
}
