//! `write`: a whole file, at once or not at all.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::OpenOptions;
use talon_sdk::{Context, ToolError};

use crate::root::{Root, refusal};

/// The longest text, in bytes: half of what a host takes as arguments by default, so that a text of the last size that fits does not
/// depend on the rest of the call.
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

/// Under another name first, so that nobody ever reads half of it and what was there stays until the new text is whole.
fn put(root: &Root, path: &Path, call_id: &str, args: &Write) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        match root.dir.open_dir(parent) {
            // Only then: of a link that leads outside, making it would say no more than that it is there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => root.dir.create_dir_all(parent)?,
            found => drop(found?),
        }
    }
    let beside = beside(path, call_id);
    let written = (|| {
        let mut file = root.dir.open_with(&beside, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(args.text.as_bytes())?;
        file.sync_all()?;
        if args.replace {
            root.dir.rename(&beside, &root.dir, path)
        } else {
            // A link does not replace what is there, which a rename would.
            root.dir.hard_link(&beside, &root.dir, path)
        }
    })();
    if written.is_err() || !args.replace {
        // If it is not there, it was not made.
        let _ = root.dir.remove_file(&beside);
    }
    written
}

/// A name in the same directory that no other call has.
fn beside(path: &Path, call_id: &str) -> PathBuf {
    let unique: String = call_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let tail = unique.len().saturating_sub(26);
    path.with_file_name(format!(".{}.tmp", &unique[tail..]))
}
