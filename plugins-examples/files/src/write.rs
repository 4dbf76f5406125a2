//! `write`: writes a whole file atomically.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::OpenOptions;
use talon_sdk::{Context, ToolError};

use crate::root::{Root, refusal};

/// The longest text, in bytes: half of what a host takes as arguments by default, so that whether a text fits
/// does not depend on the other arguments of the call.
pub(crate) const MAX_TEXT_BYTES: usize = 512 << 10;

#[talon_sdk::args]
pub(crate) struct Write {
    /// A file below the root; directories on the way are made.
    path: String,
    /// The whole text, at most 512 KiB.
    text: String,
    /// Replace a file that is there.
    #[serde(default)]
    replace: bool,
}

/// Writes a whole text file.
#[talon_sdk::tool]
pub(crate) async fn write(args: Write, cx: Context) -> Result<String, ToolError> {
    if args.text.len() > MAX_TEXT_BYTES {
        return Err(ToolError::new(format!("a text has at most {MAX_TEXT_BYTES} bytes")));
    }
    let root = cx.shared::<Root>()?;
    let call_id = cx.call_id().to_owned();
    cx.blocking(move || {
        let relative = root.relative(&args.path)?;
        if relative.file_name().is_none() {
            return Err(ToolError::new(format!("`{}` is no file's name", relative.display())));
        }
        put(&root, &relative, &call_id, &args).map_err(|error| refusal(&relative, error))?;
        Ok(format!("{} bytes are in {}", args.text.len(), relative.display()))
    })
    .await
}

/// Writes a temporary file first, so that no reader sees half of it and the old file stays until the new one
/// is complete.
fn put(root: &Root, path: &Path, call_id: &str, args: &Write) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        match root.dir.open_dir(parent) {
            // Only on NotFound: for a link that leads outside, the error of creating it would only say that
            // it exists.
            Err(error) if error.kind() == io::ErrorKind::NotFound => root.dir.create_dir_all(parent)?,
            found => drop(found?),
        }
    }
    let beside = temporary_path(path, call_id);
    let written = (|| {
        let mut file = root.dir.open_with(&beside, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(args.text.as_bytes())?;
        file.sync_all()?;
        if args.replace {
            root.dir.rename(&beside, &root.dir, path)
        } else {
            // Unlike a rename, a hard link does not replace an existing file.
            root.dir.hard_link(&beside, &root.dir, path)
        }
    })();
    if written.is_err() || !args.replace {
        // If it does not exist, it was never created.
        let _ = root.dir.remove_file(&beside);
    }
    written
}

/// A temporary name in the same directory that no other call uses.
fn temporary_path(path: &Path, call_id: &str) -> PathBuf {
    let unique: String = call_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let tail = unique.len().saturating_sub(26);
    path.with_file_name(format!(".{}.tmp", &unique[tail..]))
}
