//! `list_files`: lists the files below the root.

use std::path::PathBuf;

use serde::Serialize;
use talon_sdk::{Context, Output, ToolError};

use crate::walk::files;
use crate::workspace::Workspace;

/// Files unless `max` says otherwise.
const DEFAULT_FILES: usize = 200;
/// The most files that can be asked for.
const MAX_FILES: usize = 2000;
/// How much text is kept. Together with the same text in the structured content it stays below the host's 64
/// KiB.
const MAX_TEXT_BYTES: usize = 24 << 10;

#[talon_sdk::args]
pub(crate) struct ListFiles {
    /// A directory below the root; the whole root unless given.
    path: Option<String>,
    /// Only files like this, for example *.rs, or !*.md for all others.
    glob: Option<String>,
    /// How many files at most: 200 unless given, up to 2000.
    max: Option<u32>,
}

#[derive(Debug, Default, Serialize)]
struct Listed {
    files: Vec<PathBuf>,
    /// Whether there are more files than these.
    truncated: bool,
}

/// Lists files below the root. Skips hidden files and what .gitignore names.
#[talon_sdk::tool(read_only)]
pub(crate) async fn list_files(args: ListFiles, cx: Context) -> Result<Output, ToolError> {
    let workspace = cx.shared::<Workspace>()?;
    let call = cx.clone();
    let listed = cx.blocking(move || list(&workspace, &args, &call)).await?;
    let mut text: String = listed.files.iter().map(|path| format!("{}\n", path.display())).collect();
    text.push_str(&match (listed.files.len(), listed.truncated) {
        (0, _) => "no files".to_owned(),
        (count, false) => format!("{count} files"),
        (count, true) => format!("stopped after {count} files; narrow the path or glob to see others"),
    });
    Output::text(text).structured(listed)
}

fn list(workspace: &Workspace, args: &ListFiles, cx: &Context) -> Result<Listed, ToolError> {
    let max = args.max.map_or(DEFAULT_FILES, |max| max as usize).clamp(1, MAX_FILES);
    let mut listed = Listed::default();
    let mut room = MAX_TEXT_BYTES;
    for path in files(workspace, args.path.as_deref(), args.glob.as_deref(), cx.clone())? {
        let cost = path.as_os_str().len() + 1;
        if listed.files.len() == max || cost > room {
            listed.truncated = true;
            break;
        }
        room -= cost;
        listed.files.push(path);
    }
    if cx.is_cancelled() {
        return Err(ToolError::new("the listing was cancelled; narrow the path or glob to make it faster"));
    }
    Ok(listed)
}
