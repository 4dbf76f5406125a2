//! The files below the root, without hidden ones and without those that `.gitignore` or `.ignore` names.

use std::path::{Path, PathBuf};

use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder};
use talon_sdk::{Context, ToolError};

use crate::workspace::Workspace;

/// How deep directories are followed. Real trees are far shallower; a loop of mounts is not.
const MAX_DEPTH: usize = 64;
/// The longest glob, in bytes.
const MAX_GLOB_BYTES: usize = 1000;

/// Goes through the files below `path` in the order of their names. Symbolic links are not followed. The walk
/// works on names, so what it finds must still be opened through [`Workspace::file`].
///
/// A cancelled call ends the walk early; the caller checks the context to notice that.
pub(crate) fn files(
    workspace: &Workspace,
    path: Option<&str>,
    glob: Option<&str>,
    cx: Context,
) -> Result<impl Iterator<Item = PathBuf>, ToolError> {
    let start = workspace.root().join(workspace.resolve(path.unwrap_or("."))?);
    let root = workspace.root().to_owned();
    let mut builder = WalkBuilder::new(&root);
    builder
        .max_depth(Some(MAX_DEPTH))
        .follow_links(false)
        // Rules above the root or in a user's home are outside.
        .parents(false)
        .git_global(false)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| !cx.is_cancelled() && leads_to(&start, entry.path()));
    // Not the walker's own overrides: those would bring back what .gitignore names.
    let glob = glob.map(|glob| overrides(&root, glob)).transpose()?;
    let wanted = move |path: &Path| glob.as_ref().is_none_or(|glob| !glob.matched(path, false).is_ignore());
    Ok(builder.build().filter_map(move |entry| {
        // Entries that cannot be read are skipped.
        let entry = entry.ok().filter(is_file)?;
        let below = entry.path().strip_prefix(&root).ok()?;
        wanted(below).then(|| below.to_owned())
    }))
}

/// Whether a directory or file is the requested one, below it, or an ancestor of it.
fn leads_to(wanted: &Path, entry: &Path) -> bool {
    entry.starts_with(wanted) || wanted.starts_with(entry)
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

fn overrides(root: &Path, glob: &str) -> Result<ignore::overrides::Override, ToolError> {
    if glob.len() > MAX_GLOB_BYTES {
        return Err(ToolError::new(format!("a glob has at most {MAX_GLOB_BYTES} bytes")));
    }
    let mut builder = OverrideBuilder::new(root);
    let bad = |error: ignore::Error| ToolError::new(format!("glob: {error}"));
    builder.add(glob).map_err(bad)?;
    builder.build().map_err(bad)
}
