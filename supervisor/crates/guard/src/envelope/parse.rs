//! Parses a block that came over a wire.

use talon_sanitize::{FamilyCounts, Sanitizer};

use super::nonce::Nonce;
use super::{ERROR, NAME, QUOTE_MARK, STRUCTURED, Wrapped, is_attribute_value};

/// The number of decimal digits of the largest byte count.
const MAX_DIGITS: usize = 20;

impl Wrapped {
    /// For a client that got a block from a supervisor: returns it with its type if it is exactly one
    /// envelope of one of the modes, which closes once, at its end, and contains only sanitized text.
    /// Anything else is plain text.
    ///
    /// It checks the form only: not whether a supervisor made the block, but whether one could have.
    ///
    /// ```
    /// use talon_guard::{Sanitizer, Wrapped};
    ///
    /// let sanitizer = Sanitizer::default();
    /// assert!(Wrapped::parse("[plugin_output]\nhello\n[/plugin_output]", &sanitizer).is_some());
    /// assert!(Wrapped::parse("[plugin_output]\n<|im_start|>\n[/plugin_output]", &sanitizer).is_none());
    /// assert!(Wrapped::parse("hello", &sanitizer).is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str, sanitizer: &Sanitizer) -> Option<Self> {
        let (header, rest) = text.split_once('\n')?;
        let attributes = header.strip_prefix('[')?.strip_prefix(NAME)?.strip_suffix(']')?;
        let nonce = if attributes.is_empty() { None } else { Some(nonce_of(attributes)?) };
        let inside = rest.strip_suffix(&delimiter("\n[/", NAME, nonce))?;
        if nonce.is_some_and(|nonce| {
            text.matches(nonce).count() != if has_structured(inside, nonce) { 4 } else { 2 }
        }) {
            return None;
        }
        let (content, structured) = match split_structured(inside, nonce) {
            Some((content, structured)) => (content, Some(structured)),
            None => (inside, None),
        };
        // As it is shown: a quoted line may be harmless only because of its mark.
        let clean = sanitizer.is_clean(content)
            && structured.is_none_or(|json| is_clean_json(json, nonce.is_some(), sanitizer));
        clean.then(|| Self(text.to_owned()))
    }
}

/// Parses ` nonce=… plugin=… call=… bytes=… truncated=…` and returns the nonce. The middle two may be
/// missing.
fn nonce_of(attributes: &str) -> Option<&str> {
    let is_hex = |value: &str| value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_digits = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit());
    let mut rest = attributes;
    let nonce =
        take_attribute(&mut rest, "nonce").filter(|value| value.len() == Nonce::LENGTH && is_hex(value))?;
    for optional in ["plugin", "call"] {
        if take_attribute(&mut rest, optional).is_some_and(|value| !is_attribute_value(value)) {
            return None;
        }
    }
    take_attribute(&mut rest, "bytes")
        .filter(|value| (1..=MAX_DIGITS).contains(&value.len()) && is_digits(value))?;
    take_attribute(&mut rest, "truncated").filter(|value| matches!(*value, "yes" | "no"))?;
    rest.is_empty().then_some(nonce)
}

/// The value of an attribute, if it is the next one.
fn take_attribute<'a>(rest: &mut &'a str, name: &str) -> Option<&'a str> {
    let value = rest.strip_prefix(' ')?.strip_prefix(name)?.strip_prefix('=')?;
    let end = value.find(' ').unwrap_or(value.len());
    *rest = &value[end..];
    Some(&value[..end])
}

/// `[/name nonce=…]`, with `open` before the name.
fn delimiter(open: &str, name: &str, nonce: Option<&str>) -> String {
    match nonce {
        Some(nonce) => format!("{open}{name} nonce={nonce}]"),
        None => format!("{open}{name}]"),
    }
}

fn has_structured(inside: &str, nonce: &str) -> bool {
    split_structured(inside, Some(nonce)).is_some()
}

/// Content and structured content, if there is any. Sanitized text contains no such delimiter, so the first
/// one is the host's; if it is not, the text before or behind it is not clean.
fn split_structured<'a>(inside: &'a str, nonce: Option<&str>) -> Option<(&'a str, &'a str)> {
    let rest = inside.strip_suffix(&delimiter("\n[/", STRUCTURED, nonce))?;
    let open = delimiter("[", STRUCTURED, nonce) + "\n";
    let at = rest.find(&open)?;
    let content = match &rest[..at] {
        "" => "",
        content => content.strip_suffix("\n\n")?,
    };
    Some((content, &rest[at + open.len()..]))
}

fn is_clean_json(json: &str, may_be_quoted: bool, sanitizer: &Sanitizer) -> bool {
    let unquoted = unquote(json).filter(|_| may_be_quoted);
    let json = unquoted.as_deref().unwrap_or(json);
    sanitizer.sanitize_json(json, &mut FamilyCounts::default()).is_some_and(|inert| inert == *json)
}

/// The text of a quotation, if it is one: every line begins with the mark, except for `error:` and the host's
/// notices.
fn unquote(text: &str) -> Option<String> {
    let text = text.strip_prefix(ERROR).and_then(|rest| rest.strip_prefix('\n')).unwrap_or(text);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        match line.strip_prefix(QUOTE_MARK) {
            Some(quoted) => lines.push(quoted),
            None if line.starts_with("[truncated: ") || line.starts_with("\"truncated: ") => lines.push(line),
            None => return None,
        }
    }
    Some(lines.join("\n"))
}
