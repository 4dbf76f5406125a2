//! A second opinion: decodes text to the end and looks for needles, sharing no code with the crate.
//!
//! It is slow and plain on purpose. Whatever order a reader might undo the evasions in, it repeats all of
//! them until nothing changes.

use unicode_normalization::UnicodeNormalization;

/// Everything undone: invisibles and escapes out, NFKC, look-alikes, entities, JSON and percent spellings,
/// case, white space.
pub(crate) fn decode_fully(text: &str) -> String {
    let mut current = text.to_owned();
    for _ in 0..12 {
        let next = decode_once(&current);
        if next == current {
            break;
        }
        current = next;
    }
    current.chars().filter(|c| !c.is_whitespace()).collect()
}

fn decode_once(text: &str) -> String {
    let stripped = strip_terminal(text);
    let visible: String = stripped.chars().filter(|&c| !invisible(c)).collect();
    let folded: String = visible.nfkc().flat_map(|c| fold(c).to_lowercase()).map(fold).collect();
    entities(&backslashes(&percents(&folded)))
}

fn strip_terminal(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            '\u{9b}' => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            '\u{8}' => {
                out.pop();
            }
            c if c.is_control() && !c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

pub(crate) fn invisible(c: char) -> bool {
    matches!(u32::from(c), 0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0
        | 0xe0000..=0xe0fff)
}

fn fold(c: char) -> char {
    match c {
        '‹' | '\u{2329}' | '\u{3008}' | '⟨' | '❮' | '《' | '«' => '<',
        '›' | '\u{232a}' | '\u{3009}' | '⟩' | '❯' | '》' | '»' => '>',
        '【' | '〔' | '⟦' | '〖' => '[',
        '】' | '〕' | '⟧' | '〗' => ']',
        '│' | '∣' | 'ǀ' | '¦' => '|',
        'а' => 'a',
        'е' => 'e',
        'о' => 'o',
        'р' => 'p',
        'с' => 'c',
        'х' => 'x',
        'у' => 'y',
        'і' => 'i',
        'ѕ' => 's',
        'н' => 'h',
        'т' => 't',
        'м' => 'm',
        'к' => 'k',
        'в' => 'b',
        'ο' => 'o',
        'α' => 'a',
        'ε' => 'e',
        'ι' => 'i',
        'τ' => 't',
        'ν' => 'v',
        'ρ' => 'p',
        'υ' => 'u',
        'κ' => 'k',
        '“' | '”' => '"',
        '▁' => '▁',
        other => other,
    }
}

fn percents(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 3)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')));
        match (bytes[at], code) {
            (b'%', Some(code)) if (0x20..0x7f).contains(&code) => {
                out.push(code);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).expect("only ASCII was replaced")
}

fn backslashes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let code = tail
            .strip_prefix('u')
            .and_then(|hex| hex.get(..4))
            .filter(|hex| !hex.starts_with('+'))
            .and_then(|hex| u32::from_str_radix(hex, 16).ok());
        if let Some(c) = code.and_then(char::from_u32) {
            out.push(c);
            rest = &tail[5..];
        } else if tail.starts_with(['"', '/', '<', '[', '\\']) {
            rest = tail;
            if rest.starts_with('\\') {
                out.push('\\');
                rest = &rest[1..];
            }
        } else if tail.starts_with(['n', 'r', 't']) {
            out.push('\n');
            rest = &tail[1..];
        } else {
            out.push('\\');
            rest = tail;
        }
    }
    out + rest
}

fn entities(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let length = tail.find(|c: char| !c.is_ascii_alphanumeric() && c != '#').unwrap_or(tail.len());
        let body = &tail[..length];
        let c = match body.strip_prefix('#') {
            Some(number) => match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => number.parse().ok(),
            }
            .and_then(char::from_u32),
            None => match body {
                "lt" => Some('<'),
                "gt" => Some('>'),
                "amp" => Some('&'),
                "quot" => Some('"'),
                "lsqb" | "lbrack" => Some('['),
                "rsqb" | "rbrack" => Some(']'),
                "vert" | "verbar" => Some('|'),
                _ => None,
            },
        };
        // Only the oldest references work without their semicolon.
        let legacy = body.starts_with('#') || matches!(body, "lt" | "gt" | "amp" | "quot");
        let c = c.filter(|_| legacy || tail[length..].starts_with(';'));
        match c {
            Some(c) => {
                out.push(c);
                rest = &tail[length..];
                rest = rest.strip_prefix(';').unwrap_or(rest);
            }
            None => {
                out.push('&');
                rest = tail;
            }
        }
    }
    out + rest
}
