//! Reads the JSON object around an offset, to find the neighbouring keys.

/// Siblings of `type` that make an object a call.
const CALL_SIBLINGS: [&str; 9] = [
    "function",
    "arguments",
    "args",
    "input",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "parameters",
    "server_label",
];
/// Siblings that calls have besides `name`. An object with a name and nothing but these is a call; an ABI or
/// a syntax tree has others.
const PLAIN_SIBLINGS: [&str; 6] = ["type", "name", "id", "index", "status", "role"];

/// Keywords of JSON Schema and OpenAPI that say what values there may be.
const SCHEMA_CONSTRAINTS: [&str; 9] =
    ["type", "$ref", "properties", "items", "enum", "const", "oneOf", "anyOf", "allOf"];
/// Keywords that stand beside those.
const SCHEMA_NOTES: [&str; 23] = [
    "title",
    "description",
    "default",
    "required",
    "format",
    "nullable",
    "additionalProperties",
    "propertyNames",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
    "$defs",
];

/// How much of the text may be read to find the siblings of one `type`, in bytes each way. An ABI entry has
/// about 500; a longer object counts as a call.
pub(super) const MAX_OBJECT: usize = 4096;

/// What the other keys of an object say.
pub(super) struct Siblings {
    call: bool,
    name: bool,
    plain: bool,
    /// One of them says what values a schema allows.
    constrains: bool,
    /// All of them are keywords of a schema.
    schema: bool,
}

impl Default for Siblings {
    fn default() -> Self {
        Self { call: false, name: false, plain: true, constrains: false, schema: true }
    }
}

impl Siblings {
    pub(super) fn add(&mut self, key: &[u8]) {
        let is = |known: &&str| known.as_bytes().eq_ignore_ascii_case(key);
        self.call |= CALL_SIBLINGS.iter().any(is) || key.contains(&b'\\') || !key.is_ascii();
        self.name |= key.eq_ignore_ascii_case(b"name");
        self.plain &= PLAIN_SIBLINGS.iter().any(is);
        let constrains = SCHEMA_CONSTRAINTS.iter().any(|known| known.as_bytes() == key);
        self.constrains |= constrains;
        self.schema &= constrains || SCHEMA_NOTES.iter().any(|known| known.as_bytes() == key);
    }

    /// Whether an object with these keys and a `type` of calls may be a call.
    pub(super) fn may_make_call(&self) -> bool {
        self.call || (self.name && self.plain)
    }

    /// Whether an object with exactly these keys describes values, as in the schema of an API with calls. A
    /// call has a name or arguments, which are no keywords.
    pub(super) fn make_schema(&self) -> bool {
        self.constrains && self.schema
    }
}

/// Reads strict JSON in both directions from an offset between two tokens.
pub(super) struct Reader<'t, 'b> {
    bytes: &'t [u8],
    escapes: usize,
    budget: &'b mut usize,
}

impl<'t, 'b> Reader<'t, 'b> {
    /// `escapes` is the number of backslashes in front of the quotes that delimit strings.
    pub(super) fn new(bytes: &'t [u8], escapes: usize, budget: &'b mut usize) -> Self {
        Self { bytes, escapes, budget }
    }

    /// Reads to the brace that closes the object.
    pub(super) fn forward(&mut self, from: usize, siblings: &mut Siblings) -> Option<()> {
        let end = self.bytes.len().min(from + MAX_OBJECT);
        let (mut at, mut depth) = (from, 0usize);
        while at < end {
            *self.budget = self.budget.checked_sub(1)?;
            match self.bytes[at] {
                b'}' if depth == 0 => return Some(()),
                b']' if depth == 0 => return None,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b'"' | b'\\' => {
                    if let Some(space) = self.escaped_space(at) {
                        at += space;
                        continue;
                    }
                    let content = self.quote_at(at)?;
                    let close = self.closing_quote(content, end)?;
                    at = close + self.escapes + 1;
                    if depth == 0
                        && self.bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
                    {
                        siblings.add(&self.bytes[content..close]);
                    }
                    continue;
                }
                byte if is_plain(byte) => {}
                _ => {
                    at += literal_length(&self.bytes[at..end])?;
                    continue;
                }
            }
            at += 1;
        }
        None
    }

    /// Reads back to the brace that opens the object.
    pub(super) fn backward(&mut self, to: usize, siblings: &mut Siblings) -> Option<()> {
        let begin = to.saturating_sub(MAX_OBJECT);
        let (mut at, mut depth) = (to, 0usize);
        let mut key_next = false;
        while at > begin {
            *self.budget = self.budget.checked_sub(1)?;
            let byte = self.bytes[at - 1];
            match byte {
                b'{' if depth == 0 => return Some(()),
                b'[' if depth == 0 => return None,
                b'}' | b']' => depth += 1,
                b'{' | b'[' => depth -= 1,
                b'"' => {
                    let close = (at - 1).checked_sub(self.escapes)?;
                    self.quote_at(close)?;
                    let open = self.opening_quote(close, begin)?;
                    if key_next && depth == 0 {
                        siblings.add(&self.bytes[open + self.escapes + 1..close]);
                    }
                    key_next = false;
                    at = open;
                    continue;
                }
                byte if is_plain(byte) => {}
                _ => {
                    let length = self.bytes[begin..at].iter().rev().take_while(|&&b| is_literal(b)).count();
                    if length == 0 || literal_length(&self.bytes[at - length..at])? != length {
                        return None;
                    }
                    key_next = false;
                    at -= length;
                    continue;
                }
            }
            if !byte.is_ascii_whitespace() {
                key_next = byte == b':';
            }
            at -= 1;
        }
        None
    }

    /// `\n` and the like between the tokens of JSON inside a JSON string.
    fn escaped_space(&self, at: usize) -> Option<usize> {
        let run = self.bytes[at..].iter().take(self.escapes + 1).take_while(|&&byte| byte == b'\\').count();
        (run > 0 && run == self.escapes && matches!(self.bytes.get(at + run), Some(b'n' | b'r' | b't')))
            .then_some(run + 1)
    }

    /// Where the string's content begins, if its delimiter stands exactly here.
    fn quote_at(&self, at: usize) -> Option<usize> {
        let quote = at + self.escapes;
        let clean = at == 0 || self.bytes[at - 1] != b'\\';
        (clean
            && self.bytes.get(quote) == Some(&b'"')
            && self.bytes[at..quote].iter().all(|&byte| byte == b'\\'))
        .then_some(quote + 1)
    }

    fn closing_quote(&mut self, content: usize, end: usize) -> Option<usize> {
        let mut backslashes = 0;
        for at in content..end {
            *self.budget = self.budget.checked_sub(1)?;
            match self.bytes[at] {
                b'\\' => backslashes += 1,
                b'"' if backslashes == self.escapes => return Some(at - backslashes),
                // With no escapes around, an even run of backslashes ends in front of a real quote.
                b'"' if self.escapes == 0 && backslashes % 2 == 0 => return Some(at),
                b'"' if backslashes < self.escapes => return None,
                b'\n' => return None,
                _ => backslashes = 0,
            }
            if self.bytes[at] == b'"' {
                backslashes = 0;
            }
        }
        None
    }

    fn opening_quote(&mut self, close: usize, begin: usize) -> Option<usize> {
        let mut at = close;
        while at > begin {
            *self.budget = self.budget.checked_sub(1)?;
            at -= 1;
            match self.bytes[at] {
                b'"' => {
                    let backslashes =
                        self.bytes[begin..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
                    *self.budget = self.budget.checked_sub(backslashes)?;
                    if backslashes == self.escapes || self.escapes == 0 && backslashes % 2 == 0 {
                        return Some(at - self.escapes);
                    }
                    if backslashes < self.escapes {
                        return None;
                    }
                    at -= backslashes;
                }
                b'\n' => return None,
                _ => {}
            }
        }
        None
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b':')
}

fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// The length of the number, `true`, `false` or `null` that the bytes begin with.
fn literal_length(bytes: &[u8]) -> Option<usize> {
    /// Numbers of more digits prove nothing.
    const MAX_LITERAL: usize = 64;
    let length = bytes.iter().take(MAX_LITERAL).take_while(|&&byte| is_literal(byte)).count();
    let literal = &bytes[..length];
    let number = literal.first().is_some_and(|&byte| byte.is_ascii_digit() || byte == b'-')
        && literal.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    (number || matches!(literal, b"true" | b"false" | b"null")).then_some(length)
}
