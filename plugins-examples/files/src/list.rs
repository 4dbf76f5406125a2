//! `list`: the entries of one directory.

use std::fmt::Write as _;

use serde::Serialize;
use talon_sdk::{Context, Output, ToolError};

use crate::root::{Root, refusal};

/// The most entries that are listed, in the order of their names.
pub(crate) const MAX_ENTRIES: usize = 1000;

#[talon_sdk::args]
pub(crate) struct List {
    /// A directory below the root.
    #[serde(default = "here")]
    path: String,
}

fn here() -> String {
    ".".to_owned()
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Entry {
    name: String,
    kind: &'static str,
    bytes: u64,
}

/// Lists a directory: names, kinds and sizes.
#[talon_sdk::tool(read_only)]
pub(crate) async fn list(args: List, cx: Context) -> Result<Output, ToolError> {
    let root = cx.shared::<Root>()?;
    let call = cx.clone();
    let entries = cx.blocking(move || entries(&root, &args.path, &call)).await?;
    let mut text = String::new();
    for Entry { name, kind, bytes } in entries.iter().take(MAX_ENTRIES) {
        // Writing to a string cannot fail.
        let _ = match *kind {
            "file" => writeln!(text, "{name}\t{bytes} bytes"),
            "directory" => writeln!(text, "{name}/"),
            kind => writeln!(text, "{name}\t{kind}"),
        };
    }
    match entries.len() {
        0 => text.push_str("(it is empty)"),
        count if count > MAX_ENTRIES => {
            let _ = write!(text, "(and {} more)", count - MAX_ENTRIES);
        }
        _ => {}
    }
    let shown = &entries[..entries.len().min(MAX_ENTRIES)];
    Output::text(text).structured(Listing { entries: shown, count: entries.len() })
}

#[derive(Serialize)]
struct Listing<'e> {
    entries: &'e [Entry],
    /// How many entries there are, listed or not.
    count: usize,
}

fn entries(root: &Root, path: &str, cx: &Context) -> Result<Vec<Entry>, ToolError> {
    let relative = root.relative(path)?;
    let read = root.dir.read_dir(&relative).map_err(|error| refusal(&relative, error))?;
    let mut entries = Vec::new();
    for entry in read {
        if cx.is_cancelled() {
            return Err(ToolError::new("the listing was cancelled"));
        }
        // Entries that were removed meanwhile are skipped.
        let Ok(entry) = entry else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        let kind = match metadata.file_type() {
            kind if kind.is_file() => "file",
            kind if kind.is_dir() => "directory",
            kind if kind.is_symlink() => "symbolic link",
            _ => "special file",
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(Entry { name, kind, bytes: metadata.len() });
    }
    entries.sort_unstable();
    Ok(entries)
}
