//! Checks how deep the elements of an HTML page nest, before it is parsed.
//!
//! HTML parsers take time that grows with text × depth, and rebuild every unclosed `<b>` or `<font>` in each
//! paragraph that follows. A malicious page turns a megabyte into minutes and gigabytes. So open elements are
//! counted first, rather too many than too few, and a page above the limits is not parsed.

use std::collections::HashMap;

/// How deep elements may nest. Real pages stay below a hundred.
const MAX_OPEN: usize = 256;
/// How many formatting elements may be open at once.
const MAX_FORMATTING: usize = 32;
/// The longest tag name that is compared; the elements that matter have shorter ones.
const MAX_NAME_BYTES: usize = 16;

/// Elements without an end tag, and those whose end a parser supplies. The latter nest only through
/// other elements, which are counted.
const NEVER_COUNTED: [&str; 28] = [
    "area", "base", "body", "br", "col", "dd", "dt", "embed", "head", "hr", "html", "img", "input", "li",
    "link", "meta", "option", "p", "param", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track",
    "wbr",
];
/// Elements that a parser reopens after another element closed them.
const FORMATTING: [&str; 14] =
    ["a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"];
/// Elements whose content is plain text up to their own end tag.
const RAW: [&str; 6] = ["iframe", "noscript", "script", "style", "textarea", "title"];

/// Whether a page may be passed to the parser.
pub(crate) fn is_within_limits(html: &str) -> bool {
    let mut open = OpenElements::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = after_comment(comment);
            continue;
        }
        let (closing, tag) = match rest.strip_prefix('/') {
            Some(tag) => (true, tag),
            None => (false, rest),
        };
        if !tag.starts_with(|first: char| first.is_ascii_alphabetic()) {
            continue;
        }
        let length = tag.bytes().take(MAX_NAME_BYTES).take_while(u8::is_ascii_alphanumeric).count();
        let name = tag[..length].to_ascii_lowercase();
        rest = &tag[length..];
        if closing {
            open.close(&name);
            continue;
        }
        if RAW.contains(&name.as_str()) && !open.in_foreign_content() {
            rest = after_raw(rest, &name);
            continue;
        }
        open.open(name);
        if open.total > MAX_OPEN || open.formatting > MAX_FORMATTING {
            return false;
        }
    }
    true
}

#[derive(Default)]
struct OpenElements {
    names: HashMap<String, usize>,
    total: usize,
    formatting: usize,
}

impl OpenElements {
    fn open(&mut self, name: String) {
        if NEVER_COUNTED.contains(&name.as_str()) {
            return;
        }
        self.total += 1;
        self.formatting += usize::from(FORMATTING.contains(&name.as_str()));
        *self.names.entry(name).or_default() += 1;
    }

    /// An unmatched end tag is ignored; otherwise it could hide an open element.
    fn close(&mut self, name: &str) {
        if let Some(count) = self.names.get_mut(name).filter(|count| **count > 0) {
            *count -= 1;
            self.total -= 1;
            self.formatting -= usize::from(FORMATTING.contains(&name));
        }
    }

    /// Inside SVG and MathML the raw elements are ordinary ones.
    fn in_foreign_content(&self) -> bool {
        ["svg", "math"].iter().any(|name| self.names.get(*name).is_some_and(|count| *count > 0))
    }
}

fn after_comment(comment: &str) -> &str {
    for empty in [">", "->"] {
        if let Some(rest) = comment.strip_prefix(empty) {
            return rest;
        }
    }
    let ends = ["-->", "--!>"].iter().filter_map(|end| comment.find(end).map(|at| at + end.len()));
    ends.min().map_or("", |end| &comment[end..])
}

/// The text from the end tag of a raw element on; the end tag itself is kept, and closes nothing.
fn after_raw<'t>(text: &'t str, name: &str) -> &'t str {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let tag = from + at + 2;
        let found = text.as_bytes()[tag..].get(..name.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes())) {
            return &text[tag - 2..];
        }
        from = tag;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_pages_are_tame() {
        let list = "<li>x<p>y".repeat(10_000);
        let script = "<script>if (a<b && c<d) { x = '<div><div>'; }</script>".repeat(1000);
        let nested = "<div>".repeat(200) + &"</div>".repeat(200);
        for html in [
            "",
            "plain < text <3",
            "<!doctype html><html><body><h1>x</h1></body></html>",
            &list,
            &script,
            &nested.repeat(10),
            &"<b>x</b><br><img src=x>".repeat(10_000),
            &"<!-- <div> -->".repeat(1000),
        ] {
            assert!(is_within_limits(html), "{:.60}", html);
        }
    }

    #[test]
    fn pages_made_to_exhaust_a_parser_are_not() {
        for unit in [
            "<div>",
            "<DIV class=x>",
            "<ul><li>",
            "<table><tr><td>",
            "<div></x>",
            "<div></span>",
            "<blockquote>",
            "<p><button>",
            "<svg><title><div>",
            "<!--><div>",
            "<!---><div>",
            "<!-- --!><div>",
            "<x-y>",
            "<b id=1>",
            "<font>",
        ] {
            assert!(!is_within_limits(&unit.repeat(1000)), "{unit}");
        }
    }
}
