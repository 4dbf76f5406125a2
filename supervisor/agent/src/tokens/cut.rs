//! Truncates tool output to its budget.
//!
//! The envelope stays whole: its first line says `truncated=yes` where it says anything, its last line is
//! never changed. Only the text between them is truncated, at a place where the sanitizer allows it, and
//! replaced by a notice. Structured content is dropped as a whole, since half of it is not JSON. The result
//! is checked against the rules for a block again, so that truncation cannot produce a block that no guard
//! would have made.

use std::fmt::Write as _;

use talon_guard::pages::READ_MORE;
use talon_guard::{QUOTE_MARK, Sanitizer, Wrapped};

use super::counter::{TokenCounter, fit};

/// How often to retry with less, if the notice and the sanitizer's truncation still leave too many tokens.
const MAX_TRIES: usize = 6;

/// Truncates a text without an envelope, such as the agent's own, between two characters, with a notice.
#[must_use]
pub fn plain(text: &str, tokens: usize, counter: &dyn TokenCounter) -> String {
    if counter.count(text) <= tokens {
        return text.to_owned();
    }
    let notice = notice(text.len(), "");
    let kept = fit(counter, text, tokens.saturating_sub(counter.count(&notice)));
    format!("{}{}", &text[..kept], self::notice(text.len() - kept, ""))
}

/// Truncates a block to a number of tokens. If not even envelope and notice fit, they alone remain. With a
/// `handle` the notice says how to read on.
#[must_use]
pub fn block(
    block: &Wrapped,
    tokens: usize,
    handle: Option<&str>,
    counter: &dyn TokenCounter,
    sanitizer: &Sanitizer,
) -> Wrapped {
    if counter.count(block) <= tokens {
        return block.clone();
    }
    let Some(parts) = BlockParts::of(block, handle) else {
        // A block is parsed by its marker lines.
        return empty(block.len(), sanitizer);
    };
    let around = counter.count(&parts.with("", parts.content.len() + parts.structured));
    let mut room = tokens.saturating_sub(around);
    for _ in 0..MAX_TRIES {
        let kept = sanitizer.safe_cut(parts.content, fit(counter, parts.content, room));
        let kept = whole_lines(&parts.content[..kept], parts.is_quoted());
        let shorter = parts.with(kept, parts.content.len() - kept.len() + parts.structured);
        let count = counter.count(&shorter);
        if count <= tokens || room == 0 {
            return Wrapped::parse(&shorter, sanitizer).unwrap_or_else(|| empty(block.len(), sanitizer));
        }
        room = room.saturating_sub(count - tokens);
    }
    let nothing = parts.with("", parts.content.len() + parts.structured);
    Wrapped::parse(&nothing, sanitizer).unwrap_or_else(|| empty(block.len(), sanitizer))
}

/// The text of a block without its envelope, in which a notice's offsets count: content, then structured
/// content. `None` if it is no block.
#[must_use]
pub fn text(block: &str) -> Option<String> {
    let parts = BlockParts::of(block, None)?;
    let mut text = parts.content.to_owned();
    if !parts.json.is_empty() {
        text.push('\n');
        text.push_str(parts.json);
    }
    Some(text)
}

/// The plugin that a block names as its writer.
#[must_use]
pub fn plugin(block: &str) -> Option<&str> {
    let header = block.lines().next()?;
    header.split(' ').find_map(|attribute| attribute.strip_prefix("plugin="))
}

/// A parsed block.
struct BlockParts<'b> {
    /// ` nonce=…`, or nothing.
    nonce: &'b str,
    /// The attributes between nonce and `bytes`.
    who: &'b str,
    content: &'b str,
    /// Structured content.
    json: &'b str,
    /// Bytes of structured content with its delimiters.
    structured: usize,
    /// For reading on.
    handle: Option<&'b str>,
}

impl<'b> BlockParts<'b> {
    fn of(block: &'b str, handle: Option<&'b str>) -> Option<Self> {
        let (header, rest) = block.split_once('\n')?;
        let attributes = header.strip_prefix("[plugin_output")?.strip_suffix(']')?;
        let (nonce, who) = match attributes.find(" bytes=") {
            Some(bytes) => {
                let nonce = attributes[1..].find(' ').map_or(attributes.len(), |at| at + 1);
                (&attributes[..nonce], attributes.get(nonce..bytes)?)
            }
            None => ("", ""),
        };
        let inside = rest.strip_suffix(&format!("\n[/plugin_output{nonce}]"))?;
        // Neutralized text cannot contain this delimiter, so the first one is the guard's.
        let (opens, closes) = (format!("[structured{nonce}]\n"), format!("\n[/structured{nonce}]"));
        let (content, json) = match inside.find(&opens) {
            Some(at) if inside.ends_with(&closes) => {
                let json = inside.get(at + opens.len()..inside.len() - closes.len()).unwrap_or_default();
                (inside[..at].trim_end_matches('\n'), json)
            }
            _ => (inside, ""),
        };
        Some(Self { nonce, who, content, json, structured: inside.len() - content.len(), handle })
    }

    fn is_quoted(&self) -> bool {
        self.content.starts_with(QUOTE_MARK) || self.content.starts_with("error:\n· ")
    }

    fn with(&self, kept: &str, left_out: usize) -> String {
        let mut out = format!("[plugin_output{}{}", self.nonce, self.who);
        if !self.nonce.is_empty() {
            let marks = if self.is_quoted() { kept.lines().count() * QUOTE_MARK.len() } else { 0 };
            // Writing to a String does not fail.
            let _ = write!(out, " bytes={} truncated=yes", kept.len().saturating_sub(marks));
        }
        let between = if kept.is_empty() { "" } else { "\n" };
        let more =
            self.handle.map(|handle| format!("; {READ_MORE} handle={handle} offset={} reads on", kept.len()));
        let notice = notice(left_out, &more.unwrap_or_default());
        let _ = write!(out, "]\n{kept}{between}{notice}\n[/plugin_output{}]", self.nonce);
        out
    }
}

/// Whole lines of a quotation, each with its mark: an incomplete mark would have no effect.
fn whole_lines(kept: &str, is_quoted: bool) -> &str {
    let last = kept.rfind('\n').map_or(0, |at| at + 1);
    if is_quoted && QUOTE_MARK.starts_with(&kept[last..]) {
        kept[..last].trim_end_matches('\n')
    } else {
        kept
    }
}

fn notice(bytes: usize, more: &str) -> String {
    format!("[truncated: cut to the model's budget, {bytes} bytes left out{more}]")
}

/// An envelope that contains only the notice.
fn empty(bytes: usize, sanitizer: &Sanitizer) -> Wrapped {
    let bare = format!("[plugin_output]\n{}\n[/plugin_output]", notice(bytes, ""));
    Wrapped::parse(&bare, sanitizer).expect("a notice of our own is inert")
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
