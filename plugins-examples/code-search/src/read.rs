//! `read_range`: some lines of one file.

use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::Serialize;
use talon_sdk::{Context, Output, ToolError};

use crate::workspace::Workspace;

/// Lines unless `end` is given.
const DEFAULT_LINES: u64 = 200;
/// The most lines at once.
const MAX_LINES: u64 = 2000;
/// The most text at once, in bytes; stays below the host's 64 KiB with the line numbers.
const MAX_TEXT_BYTES: usize = 40 << 10;

#[talon_sdk::args]
pub(crate) struct ReadRange {
    /// A file below the root.
    path: String,
    /// The first line, counted from 1.
    #[serde(default = "first")]
    start: u64,
    /// The last line; 200 lines unless given, 2000 at most.
    end: Option<u64>,
}

fn first() -> u64 {
    1
}

/// What was read, without the text.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Range {
    path: String,
    start: u64,
    /// The last existing line; one less than `start` when there is none.
    end: u64,
    /// Whether the file continues after `end`.
    more: bool,
}

/// Reads some lines of a text file, with their numbers.
#[talon_sdk::tool(read_only)]
pub(crate) async fn read_range(args: ReadRange, cx: Context) -> Result<Output, ToolError> {
    if args.start == 0 {
        return Err(ToolError::new("lines count from 1"));
    }
    let end = args.end.unwrap_or_else(|| args.start.saturating_add(DEFAULT_LINES - 1));
    if end < args.start {
        return Err(ToolError::new(format!("end ({end}) comes before start ({})", args.start)));
    }
    let end = end.min(args.start.saturating_add(MAX_LINES - 1));
    let workspace = cx.shared::<Workspace>()?;
    let call = cx.clone();
    let (text, range) = cx
        .blocking(move || {
            let relative = workspace.relative(&args.path)?;
            let file = workspace.file(&relative)?;
            let (text, last, more) = read(file, args.start, end, &call)?;
            Ok((text, Range { path: args.path, start: args.start, end: last, more }))
        })
        .await?;
    let text = if text.is_empty() { format!("the file ends before line {}", range.start) } else { text };
    Output::text(text).structured(range)
}

/// The lines from `start` to `end`, numbered; the last line's number; whether more follow.
///
/// Reads in chunks and keeps only the requested lines: a file may be one line of a gigabyte.
fn read(file: File, start: u64, end: u64, cx: &Context) -> Result<(String, u64, bool), ToolError> {
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut text: Vec<u8> = Vec::new();
    let mut number = 1;
    let mut at_line_start = true;
    let mut last = start - 1;
    loop {
        if cx.is_cancelled() {
            return Err(ToolError::new("the reading was cancelled"));
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((String::from_utf8_lossy(&text).into_owned(), last, false));
        }
        if number > end {
            return Ok((String::from_utf8_lossy(&text).into_owned(), last, true));
        }
        let piece = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(newline) => &buffer[..=newline],
            None => buffer,
        };
        if piece.contains(&0) {
            return Err(ToolError::new("this is a binary file; only text can be read"));
        }
        if number >= start {
            let prefix = if at_line_start { format!("{number}\t") } else { String::new() };
            let room = MAX_TEXT_BYTES.saturating_sub(text.len() + prefix.len());
            if room < piece.len() {
                text.extend_from_slice(prefix.as_bytes());
                text.extend_from_slice(&piece[..room]);
                let cut = "…\n(cut here; read the rest with a later start)".to_owned();
                return Ok((String::from_utf8_lossy(&text).into_owned() + &cut, number, true));
            }
            text.extend_from_slice(prefix.as_bytes());
            text.extend_from_slice(piece);
            last = number;
        }
        at_line_start = piece.ends_with(b"\n");
        number += u64::from(at_line_start);
        let used = piece.len();
        reader.consume(used);
    }
}
