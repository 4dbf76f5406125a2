//! `search`: lines that match a regular expression.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Serialize;
use talon_sdk::{Context, Output, ToolError};

use crate::walk::files;
use crate::workspace::Workspace;

/// Matches unless `max_results` says otherwise: about as many as a model can look through.
const DEFAULT_RESULTS: u32 = 50;
/// The most matches that can be asked for.
const MAX_RESULTS: u32 = 300;
/// The most lines of context on each side of a match.
const MAX_CONTEXT: u32 = 10;
/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1000;
/// How large a compiled pattern may get; patterns such as `\w{1000}` are refused here.
const MAX_REGEX_BYTES: usize = 10 << 20;
/// How much of one line is kept, in bytes; lines of minified files can be megabytes long.
const MAX_LINE_BYTES: usize = 400;
/// How much text is kept in total. Together with the same text in the structured content it stays below the
/// host's 64 KiB.
const MAX_TEXT_BYTES: usize = 24 << 10;
/// What a line costs besides its text and path: the surrounding keys in the structured content.
const LINE_OVERHEAD_BYTES: usize = 64;
/// How much of a file is in memory at once. A file with a longer line is skipped.
const HEAP_BYTES: usize = 4 << 20;

#[talon_sdk::args]
pub(crate) struct Search {
    /// A regular expression in Rust's syntax, matched line by line.
    pattern: String,
    /// A directory or file below the root; the whole root unless given.
    path: Option<String>,
    /// Only files like this, for example *.rs, or !*.md for all others.
    glob: Option<String>,
    /// How many matches at most: 50 unless given, up to 300.
    max_results: Option<u32>,
    /// Lines of context before and after each match: 0 unless given, up to 10.
    #[serde(default)]
    context: u32,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    case_insensitive: bool,
}

/// Finds lines that match a regular expression. Skips binary files, hidden files and what .gitignore names.
#[talon_sdk::tool(read_only)]
pub(crate) async fn search(args: Search, cx: Context) -> Result<Output, ToolError> {
    let workspace = cx.shared::<Workspace>()?;
    let call = cx.clone();
    let found = cx.blocking(move || find(&workspace, &args, call)).await?;
    Output::text(found.text()).structured(found)
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct SearchResults {
    lines: Vec<Line>,
    matches: u32,
    files_searched: u64,
    /// Binary files, files with lines too long, files that could not be read.
    files_skipped: u64,
    /// Whether there may be more matches than these.
    truncated: bool,
}

#[derive(Debug, Serialize)]
struct Line {
    path: PathBuf,
    line: u64,
    text: String,
    is_match: bool,
}

impl SearchResults {
    fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            let mark = if line.is_match { ':' } else { '-' };
            text.push_str(&format!("{}{mark}{}{mark} {}\n", line.path.display(), line.line, line.text));
        }
        let searched = format!("{} files searched, {} skipped", self.files_searched, self.files_skipped);
        text.push_str(&match (self.matches, self.truncated) {
            (0, false) => format!("no matches; {searched}"),
            (matches, false) => format!("{matches} matches; {searched}"),
            (matches, true) => {
                format!("stopped after {matches} matches; narrow the pattern, path or glob to see others")
            }
        });
        text
    }
}

fn find(workspace: &Workspace, args: &Search, cx: Context) -> Result<SearchResults, ToolError> {
    let matcher = matcher(args)?;
    let max_results = args.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
    let context = args.context.min(MAX_CONTEXT) as usize;
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .memory_map(MmapChoice::never())
        .heap_limit(Some(HEAP_BYTES))
        .before_context(context)
        .after_context(context)
        .build();
    let mut found = SearchResults::default();
    let mut room = MAX_TEXT_BYTES;
    for path in files(workspace, args.path.as_deref(), args.glob.as_deref(), cx.clone())? {
        let Ok(file) = workspace.file(&path) else {
            found.files_skipped += 1;
            continue;
        };
        let left = max_results - found.matches;
        let mut sink =
            Collector { path, lines: Vec::new(), matches: 0, left, room, full: false, binary: false };
        let searched = searcher.search_reader(&matcher, Cancellable { file, cx: cx.clone() }, &mut sink);
        if cx.is_cancelled() {
            break;
        }
        if searched.is_err() || sink.binary {
            found.files_skipped += 1;
            continue;
        }
        found.files_searched += 1;
        found.matches += sink.matches;
        found.lines.append(&mut sink.lines);
        room = sink.room;
        if sink.full || found.matches == max_results {
            found.truncated = true;
            return Ok(found);
        }
    }
    if cx.is_cancelled() {
        return Err(ToolError::new("the search was cancelled; narrow the path or glob to make it faster"));
    }
    Ok(found)
}

fn matcher(args: &Search) -> Result<RegexMatcher, ToolError> {
    if args.pattern.is_empty() || args.pattern.len() > MAX_PATTERN_BYTES {
        return Err(ToolError::new(format!("a pattern has 1 to {MAX_PATTERN_BYTES} bytes")));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(args.case_insensitive)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_REGEX_BYTES)
        .build(&args.pattern)
        .map_err(|error| ToolError::new(format!("pattern: {error}")))
}

/// Collects the lines of one file until a limit is reached.
struct Collector {
    path: PathBuf,
    lines: Vec<Line>,
    matches: u32,
    left: u32,
    room: usize,
    full: bool,
    binary: bool,
}

impl Collector {
    fn keep(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) -> bool {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINE_BYTES)]);
        let mut text = text.trim_end_matches(['\n', '\r']).to_owned();
        if bytes.len() > MAX_LINE_BYTES {
            text.push('…');
        }
        let cost = text.len() + self.path.as_os_str().len() + LINE_OVERHEAD_BYTES;
        if cost > self.room {
            self.full = true;
            return false;
        }
        self.room -= cost;
        self.lines.push(Line { path: self.path.clone(), line: number.unwrap_or(0), text, is_match });
        true
    }
}

impl Sink for Collector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.left == 0 {
            self.full = true;
            return Ok(false);
        }
        if !self.keep(matched.line_number(), matched.bytes(), true) {
            return Ok(false);
        }
        self.matches += 1;
        self.left -= 1;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.keep(context.line_number(), context.bytes(), false))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}

/// Stops reading a large file when the call is cancelled.
struct Cancellable {
    file: File,
    cx: Context,
}

impl Read for Cancellable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cx.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}
