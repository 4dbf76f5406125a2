//! `read`: a text file, a piece at a time.

use std::io::{Read as _, Seek as _, SeekFrom};

use cap_std::fs::{OpenOptions, OpenOptionsExt as _};
use serde::Serialize;
use talon_sdk::{Context, Output, ToolError};

use crate::root::{Root, refusal};

/// The most text at once, in bytes; stays below the host's 64 KiB.
pub(crate) const MAX_TEXT_BYTES: usize = 48 << 10;

#[talon_sdk::args]
pub(crate) struct Read {
    /// A text file below the root.
    path: String,
    /// From which byte on; an earlier answer says where to read on.
    #[serde(default)]
    offset: u64,
}

/// What was read, without the text.
#[derive(Debug, PartialEq, Serialize)]
struct Piece {
    /// Where to read on; nothing once the file has ended.
    next_offset: Option<u64>,
    /// How large the file is.
    bytes: u64,
}

/// Reads a text file.
#[talon_sdk::tool(read_only)]
pub(crate) async fn read(args: Read, cx: Context) -> Result<Output, ToolError> {
    let root = cx.shared::<Root>()?;
    let (mut text, piece) = cx.blocking(move || piece(&root, &args.path, args.offset)).await?;
    if let Some(next) = piece.next_offset {
        text.push_str(&format!("\n(cut here; read on with offset={next})"));
    }
    Output::text(text).structured(piece)
}

fn piece(root: &Root, path: &str, offset: u64) -> Result<(String, Piece), ToolError> {
    let relative = root.relative(path)?;
    let failed = |error| refusal(&relative, error);
    // Without NONBLOCK, opening a named pipe would block the call until a writer appears.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let mut file = root.dir.open_with(&relative, &options).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(ToolError::new(format!("`{}` is no file; `list` shows what is", relative.display())));
    }
    if offset > metadata.len() {
        let bytes = metadata.len();
        return Err(ToolError::new(format!(
            "offset {offset} lies behind the end: the file has {bytes} bytes"
        )));
    }
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_TEXT_BYTES as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.contains(&0) {
        return Err(ToolError::new("this is a binary file; only text can be read"));
    }
    let goes_on = offset + (bytes.len() as u64) < metadata.len();
    if goes_on {
        bytes.truncate(whole_characters(&bytes));
    }
    let next = offset + bytes.len() as u64;
    let piece = Piece { next_offset: goes_on.then_some(next), bytes: metadata.len() };
    Ok((String::from_utf8_lossy(&bytes).into_owned(), piece))
}

/// The length of the prefix that ends with a whole character, of a text that may be cut within one.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        // A character has at most four bytes; an earlier error is invalid text, not a cut.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}
