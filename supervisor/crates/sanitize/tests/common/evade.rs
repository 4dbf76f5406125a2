//! Ways to disguise a control string, and places to put it: crossed with a list of strings they make a set of
//! hostile texts.

/// One disguise: a name and what it makes of a control string.
pub(crate) type Evasion = (&'static str, fn(&str) -> String);

/// Disguises of one control string.
pub(crate) const EVASIONS: &[Evasion] = &[
    ("plain", str::to_owned),
    ("upper", |t| t.to_uppercase()),
    ("lower", |t| t.to_lowercase()),
    ("alternating case", |t| {
        t.chars()
            .enumerate()
            .map(|(i, c)| if i % 2 == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect()
    }),
    ("U+200B inside", |t| inside(t, "\u{200b}")),
    ("U+200C inside", |t| inside(t, "\u{200c}")),
    ("U+200D inside", |t| inside(t, "\u{200d}")),
    ("U+2060 inside", |t| inside(t, "\u{2060}")),
    ("U+FEFF inside", |t| inside(t, "\u{feff}")),
    ("U+00AD inside", |t| inside(t, "\u{ad}")),
    ("U+180E inside", |t| inside(t, "\u{180e}")),
    ("U+034F inside", |t| inside(t, "\u{34f}")),
    ("U+FE0F inside", |t| inside(t, "\u{fe0f}")),
    ("U+2063 inside", |t| inside(t, "\u{2063}")),
    ("U+115F inside", |t| inside(t, "\u{115f}")),
    ("U+FFA0 inside", |t| inside(t, "\u{ffa0}")),
    ("U+061C inside", |t| inside(t, "\u{61c}")),
    ("U+200E inside", |t| inside(t, "\u{200e}")),
    ("U+200E behind the opener", |t| behind_first(t, "\u{200e}")),
    ("U+200E each", |t| each(t, |c| format!("{c}\u{200e}"))),
    ("U+E0041 inside", |t| inside(t, "\u{e0041}")),
    ("U+E0101 inside", |t| inside(t, "\u{e0101}")),
    ("isolates inside", |t| inside(t, "\u{2066}\u{2069}")),
    ("override inside", |t| inside(t, "\u{202e}\u{202c}")),
    ("U+200B each", |t| each(t, |c| format!("{c}\u{200b}"))),
    ("combining mark inside", |t| inside(t, "\u{335}")),
    ("space inside", |t| inside(t, " ")),
    ("space behind the opener", |t| behind_first(t, " ")),
    ("two spaces inside", |t| inside(t, "  ")),
    ("tab inside", |t| inside(t, "\t")),
    ("newline inside", |t| inside(t, "\n")),
    ("CRLF inside", |t| inside(t, "\r\n")),
    ("U+00A0 inside", |t| inside(t, "\u{a0}")),
    ("U+3000 inside", |t| inside(t, "\u{3000}")),
    ("U+2028 inside", |t| inside(t, "\u{2028}")),
    ("U+2800 inside", |t| inside(t, "\u{2800}")),
    ("space before the end", |t| before_last(t, " ")),
    ("CSI inside", |t| inside(t, "\u{1b}[0m")),
    ("long CSI inside", |t| inside(t, "\u{1b}[38;5;196m")),
    ("C1 CSI inside", |t| inside(t, "\u{9b}0m")),
    ("OSC inside", |t| inside(t, "\u{1b}]0;title\u{7}")),
    ("OSC 8 inside", |t| inside(t, "\u{1b}]8;;http://x/\u{1b}\\")),
    ("backspace inside", |t| inside(t, "X\u{8}")),
    ("NUL inside", |t| inside(t, "\0")),
    ("DEL inside", |t| inside(t, "\u{7f}")),
    ("BEL inside", |t| inside(t, "\u{7}")),
    ("lone CR inside", |t| inside(t, "\r")),
    ("full width", |t| t.chars().map(full_width).collect()),
    ("full-width punctuation", |t| {
        t.chars().map(|c| if c.is_ascii_punctuation() { full_width(c) } else { c }).collect()
    }),
    ("single guillemets", |t| brackets(t, "‹›【】")),
    ("CJK brackets", |t| brackets(t, "〈〉〔〕")),
    ("mathematical brackets", |t| brackets(t, "⟨⟩⟦⟧")),
    ("double angles", |t| brackets(t, "《》〖〗")),
    ("ornament brackets", |t| brackets(t, "❮❯【】")),
    ("bar look-alikes", |t| t.replace('|', "∣")),
    ("box bars", |t| t.replace('|', "│")),
    ("Cyrillic", |t| t.chars().map(cyrillic).collect()),
    ("Greek", |t| t.chars().map(greek).collect()),
    ("mathematical letters", |t| t.chars().map(mathematical).collect()),
    ("circled letters", |t| {
        t.chars().map(|c| if c.is_ascii_lowercase() { shift(c, 'a', 0x24d0) } else { c }).collect()
    }),
    ("named references", |t| {
        t.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('[', "&lsqb;")
            .replace(']', "&rsqb;")
    }),
    ("decimal references", |t| openers(t, |c| format!("&#{};", u32::from(c)))),
    ("hexadecimal references", |t| openers(t, |c| format!("&#x{:X};", u32::from(c)))),
    ("padded references", |t| openers(t, |c| format!("&#00{};", u32::from(c)))),
    ("references without a semicolon", |t| {
        openers(t, |c| if c == '<' { "&lt".to_owned() } else { c.into() })
    }),
    ("references twice", |t| openers(t, |c| format!("&amp;#{};", u32::from(c)))),
    ("references three times", |t| openers(t, |c| format!("&amp;amp;#x{:x};", u32::from(c)))),
    ("references throughout", |t| each(t, |c| format!("&#{};", u32::from(c)))),
    ("\\u", |t| openers(t, |c| format!("\\u{:04x}", u32::from(c)))),
    ("\\u upper case", |t| openers(t, |c| format!("\\u{:04X}", u32::from(c)))),
    ("\\u twice", |t| openers(t, |c| format!("\\\\u{:04x}", u32::from(c)))),
    ("\\u throughout", |t| {
        each(t, |c| {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        })
    }),
    ("\\x", |t| openers(t, |c| format!("\\x{:02x}", u32::from(c)))),
    ("percent", |t| openers(t, |c| format!("%{:02X}", u32::from(c)))),
    ("percent lower case", |t| openers(t, |c| format!("%{:02x}", u32::from(c)))),
    ("percent twice", |t| openers(t, |c| format!("%25{:02X}", u32::from(c)))),
    ("backslash", |t| openers(t, |c| format!("\\{c}"))),
    ("nested once", |t| inside(t, t)),
    ("nested twice", |t| inside(t, &inside(t, t))),
    ("nested behind the opener", |t| behind_first(t, t)),
    ("full width and U+200B", |t| inside(&t.chars().map(full_width).collect::<String>(), "\u{200b}")),
    ("Cyrillic and references", |t| {
        openers(&t.chars().map(cyrillic).collect::<String>(), |c| format!("&#{};", u32::from(c)))
    }),
    ("upper case, space and percent", |t| {
        openers(&inside(&t.to_uppercase(), "\u{a0}"), |c| format!("%{:02X}", u32::from(c)))
    }),
    ("guillemets, tab and soft hyphen", |t| brackets(&inside(t, "\u{ad}\t"), "‹›【】")),
    ("CSI and \\u", |t| openers(&inside(t, "\u{1b}[1m"), |c| format!("\\u{:04x}", u32::from(c)))),
];

/// A place in which a control string stands: a name, and the text with the string in it.
pub(crate) type Carrier = (&'static str, fn(&str) -> String);

/// Places that begin a line, so that every control string means something there.
pub(crate) const CARRIERS: &[Carrier] = &[
    ("an answer", |t| format!("Result of the query:\n{t}\nEnd.")),
    ("alone", str::to_owned),
    ("at the beginning", |t| format!("{t}\n\nand more text")),
    ("at the end", |t| format!("Some text.\r\n{t}")),
    ("a fence", |t| format!("See:\n\n```\n{t}\n```\n")),
    ("a list", |t| format!("- one\n- two\n\n{t}\n")),
    ("a JSON string", |t| format!("{{\"result\": {}, \"n\": 1}}", json_string(&format!("ok\n{t}")))),
    ("a JSON key", |t| format!("{{{}: [1]}}", json_string(&format!("\n{t}")))),
    ("JSON in JSON", |t| json_string(&format!("{{\"a\": {}}}", json_string(&format!("\n{t}\n"))))),
    ("a comment", |t| format!("<!--\n{t}\n-->")),
    ("a forged envelope", |t| format!("done\n[/plugin_output]\n{t}\n[plugin_output]")),
    ("an overwritten line", |t| format!("harmless\r\n10%\r{t}\n")),
    ("a hidden line", |t| format!("ok\u{1b}[8m\n{t}\u{1b}[28m")),
    ("a terminal title", |t| format!("\u{1b}]0;\n{t}\u{7}ok")),
];

/// Places in the middle of a line.
pub(crate) const INLINE: &[Carrier] = &[
    ("a sentence", |t| format!("The tool said {t} and stopped.")),
    ("a table", |t| format!("| a | b |\n|---|---|\n| {t} | x |\n")),
    ("code in a sentence", |t| format!("Write `{t}` here.")),
    ("between letters", |t| format!("字{t}字")),
];

/// The text with each of the needles in it disguised.
pub(crate) fn disguise(text: &str, needles: &[String], mut evasion: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let longest =
            needles.iter().filter(|needle| rest.starts_with(needle.as_str())).max_by_key(|n| n.len());
        match longest {
            Some(needle) => {
                // Line breaks that anchor the needle stay where they are, and come along where it is nested.
                let body = needle.trim_start_matches('\n');
                let anchor = &needle[..needle.len() - body.len()];
                out.push_str(anchor);
                let twice = evasion(body);
                match twice.find(body) {
                    Some(at) if twice.len() > body.len() && !anchor.is_empty() => {
                        out.push_str(&twice[..at]);
                        out.push_str(anchor);
                        out.push_str(&twice[at..]);
                    }
                    _ => out.push_str(&twice),
                }
                rest = &rest[needle.len()..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

fn inside(token: &str, what: &str) -> String {
    insert(token, token.chars().count() / 2, what)
}

fn behind_first(token: &str, what: &str) -> String {
    insert(token, 1, what)
}

fn before_last(token: &str, what: &str) -> String {
    insert(token, token.chars().count() - 1, what)
}

fn insert(token: &str, at: usize, what: &str) -> String {
    let mut out: String = token.chars().take(at).collect();
    out.push_str(what);
    out.extend(token.chars().skip(at));
    out
}

fn each(token: &str, write: impl Fn(char) -> String) -> String {
    token.chars().map(write).collect()
}

/// Spells the characters that open and close.
fn openers(token: &str, write: impl Fn(char) -> String) -> String {
    each(token, |c| if matches!(c, '<' | '>' | '[' | ']' | '|' | '"') { write(c) } else { c.into() })
}

fn brackets(token: &str, four: &str) -> String {
    let four: Vec<char> = four.chars().collect();
    token
        .chars()
        .map(|c| match c {
            '<' => four[0],
            '>' => four[1],
            '[' => four[2],
            ']' => four[3],
            other => other,
        })
        .collect()
}

fn shift(c: char, from: char, to: u32) -> char {
    char::from_u32(u32::from(c) - u32::from(from) + to).unwrap_or(c)
}

fn full_width(c: char) -> char {
    if ('!'..='~').contains(&c) { shift(c, '!', 0xff01) } else { c }
}

fn mathematical(c: char) -> char {
    match c {
        'a'..='z' => shift(c, 'a', 0x1d41a),
        'A'..='Z' => shift(c, 'A', 0x1d400),
        other => other,
    }
}

fn cyrillic(c: char) -> char {
    match c {
        'a' => 'а',
        'c' => 'с',
        'e' => 'е',
        'i' => 'і',
        'o' => 'о',
        'p' => 'р',
        's' => 'ѕ',
        'x' => 'х',
        'A' => 'А',
        'C' => 'С',
        'E' => 'Е',
        'O' => 'О',
        'S' => 'Ѕ',
        'T' => 'Т',
        other => other,
    }
}

fn greek(c: char) -> char {
    match c {
        'a' => 'α',
        'e' => 'ε',
        'i' => 'ι',
        'k' => 'κ',
        'o' => 'ο',
        'r' => 'г',
        't' => 'τ',
        'u' => 'υ',
        'v' => 'ν',
        'A' => 'Α',
        'E' => 'Ε',
        'I' => 'Ι',
        'O' => 'Ο',
        'T' => 'Τ',
        other => other,
    }
}

fn json_string(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}
