//! What a line begins with.

use super::inline::InlineStyles;

/// The shortest fence of a code block.
const MIN_FENCE: usize = 3;
/// The longest marker, or indentation before one: six `#`, or a number of a list.
const MAX_MARKER_BYTES: usize = 9;
/// A fence with a longer rest of the line is no fence, so that little is held back.
const MAX_FENCE_LINE_BYTES: usize = 200;

/// What a line begins with.
#[derive(Debug)]
pub(super) enum LineStart {
    /// More text is needed.
    Undecided,
    /// A line that opens a code block, with its line break.
    Fence { line: usize, fence: String, language: String },
    /// Bytes of a marker, and the style of what follows.
    Text { marker: usize, styles: InlineStyles },
}

/// Looks at the beginning of a line.
pub(super) fn line_start(held: &str, is_end: bool) -> LineStart {
    let indent = held.len() - held.trim_start_matches([' ', '\t']).len();
    let rest = &held[indent..];
    let plain = LineStart::Text { marker: 0, styles: InlineStyles::default() };
    let Some(first) = rest.chars().next() else {
        return if is_end || indent > MAX_MARKER_BYTES { plain } else { LineStart::Undecided };
    };
    if indent > MAX_MARKER_BYTES {
        return plain;
    }
    if let '`' | '~' = first {
        return fence_line(held, indent, first, is_end).unwrap_or(plain);
    }
    let marker = match first {
        '#' => rest.len() - rest.trim_start_matches('#').len(),
        '-' | '*' | '+' | '>' => 1,
        '0'..='9' => {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            match rest[digits..].chars().next() {
                Some('.' | ')') => digits + 1,
                None if !is_end && digits < MAX_MARKER_BYTES => return LineStart::Undecided,
                _ => return plain,
            }
        }
        _ => return plain,
    };
    match rest[marker..].chars().next() {
        Some(' ') if marker <= MAX_MARKER_BYTES => LineStart::Text {
            marker: indent + marker + 1,
            styles: InlineStyles::of_line(first == '#' && marker <= 6),
        },
        Some('\r' | '\n') if first == '>' => {
            LineStart::Text { marker: indent + marker, styles: InlineStyles::default() }
        }
        None if !is_end && marker <= MAX_MARKER_BYTES => LineStart::Undecided,
        _ => plain,
    }
}

/// The line as one that opens a code block; `None`: it does not.
fn fence_line(held: &str, indent: usize, letter: char, is_end: bool) -> Option<LineStart> {
    let rest = &held[indent..];
    let fence = rest.len() - rest.trim_start_matches(letter).len();
    match rest.find('\n') {
        Some(end) if fence < MIN_FENCE || end > MAX_FENCE_LINE_BYTES => None,
        Some(end) => {
            let info = rest[fence..end].trim();
            // Code in a line may have three backticks, too.
            if letter == '`' && info.contains('`') {
                return None;
            }
            let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
            Some(LineStart::Fence { line: indent + end + 1, fence: rest[..fence].to_owned(), language })
        }
        None if is_end || rest.len() > MAX_FENCE_LINE_BYTES => None,
        None if fence < MIN_FENCE && fence < rest.len() => None,
        None => Some(LineStart::Undecided),
    }
}

/// Whether the line closes a code block that this fence opened.
pub(super) fn closes(line: &str, fence: &str) -> bool {
    let line = line.trim();
    let letter = fence.chars().next().unwrap_or('`');
    line.len() >= fence.len() && line.chars().all(|c| c == letter)
}
