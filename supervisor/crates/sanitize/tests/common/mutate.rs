//! Disguises of one control string with random parameters: what is written differently, where, and how.

use super::random::Random;

/// One kind of disguise.
type Mutation = (&'static str, fn(&mut Random, &str) -> String);

const MUTATIONS: [Mutation; 14] = [
    ("case", case),
    ("white space", white_space),
    ("invisible", invisible),
    ("look-alike letters", letters),
    ("look-alike brackets", punctuation),
    ("width", width),
    ("references", references),
    ("escapes", escapes),
    ("percent", percents),
    ("terminal", terminal),
    ("nested", nested),
    ("comment", comment),
    ("combining marks", combining),
    ("plain", |_, token| token.to_owned()),
];

/// The token under a random disguise, and its name.
pub(crate) fn mutate(random: &mut Random, token: &str) -> (&'static str, String) {
    let (name, apply) = random.pick(&MUTATIONS);
    (name, apply(random, token))
}

/// Whether [`mutate`] with this seed writes characters as escapes of several.
pub(crate) fn is_encoding(seed: u64) -> bool {
    matches!(Random::new(seed).pick(&MUTATIONS).0, "references" | "escapes" | "percent")
}

/// The order of disguises on one token. Inside an escape a comment is none, and the other case of a look-alike
/// may be another letter's.
pub(crate) fn rank(seed: u64) -> usize {
    match Random::new(seed).pick(&MUTATIONS).0 {
        "comment" => 0,
        "case" => 1,
        _ => 2,
    }
}

/// Whether [`mutate`] with this seed puts the token into itself.
pub(crate) fn is_nesting(seed: u64) -> bool {
    Random::new(seed).pick(&MUTATIONS).0 == "nested"
}

/// The token with `insert` at some random places between its characters.
fn scatter(random: &mut Random, token: &str, mut insert: impl FnMut(&mut Random) -> String) -> String {
    let length = token.chars().count();
    let places: Vec<usize> = (0..1 + random.below(3)).map(|_| 1 + random.below(length.max(2) - 1)).collect();
    let mut out = String::new();
    for (index, c) in token.chars().enumerate() {
        if places.contains(&index) {
            out.push_str(&insert(random));
        }
        out.push(c);
    }
    out
}

/// The token with some, or all, of its characters written otherwise.
fn rewrite(random: &mut Random, token: &str, mut write: impl FnMut(&mut Random, char) -> String) -> String {
    let share = 1 + random.below(4);
    let mut out = String::new();
    for c in token.chars() {
        if random.below(4) < share {
            out.push_str(&write(random, c));
        } else {
            out.push(c);
        }
    }
    out
}

fn case(random: &mut Random, token: &str) -> String {
    match random.below(3) {
        0 => token.to_uppercase(),
        1 => token.to_lowercase(),
        _ => rewrite(random, token, |_, c| {
            if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
        }),
    }
}

fn white_space(random: &mut Random, token: &str) -> String {
    const SPACES: [&str; 10] =
        [" ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{2028}", "\u{2009}", "\u{85}"];
    // Backticks and number signs that stand apart open nothing.
    let body = token.trim_start_matches(['`', '#', '｀', '＃']);
    let run = &token[..token.len() - body.len()];
    run.to_owned() + &scatter(random, body, |random| random.pick(&SPACES).to_owned())
}

fn invisible(random: &mut Random, token: &str) -> String {
    const INVISIBLES: [char; 20] = [
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{2060}',
        '\u{2062}',
        '\u{feff}',
        '\u{ad}',
        '\u{34f}',
        '\u{180e}',
        '\u{fe0f}',
        '\u{fe01}',
        '\u{115f}',
        '\u{3164}',
        '\u{ffa0}',
        '\u{61c}',
        '\u{200e}',
        '\u{202e}',
        '\u{2069}',
        '\u{e0041}',
        '\u{e01ef}',
    ];
    scatter(random, token, |random| (0..1 + random.below(3)).map(|_| random.pick(&INVISIBLES)).collect())
}

fn letters(random: &mut Random, token: &str) -> String {
    const ALIKE: [(char, &str); 16] = [
        ('a', "аαａ𝐚ⓐ"),
        ('c', "сϲⅽ𝚌"),
        ('e', "еεｅ𝑒"),
        ('h', "нհｈ"),
        ('i', "іιｉⅰ"),
        ('k', "кκⓚ"),
        ('l', "ⅼｌӏ"),
        ('m', "мⅿ𝗆"),
        ('n', "ոｎ𝓷"),
        ('o', "оοօｏ"),
        ('p', "рρｐ"),
        ('r', "гｒ𝔯"),
        ('s', "ѕｓſ"),
        ('t', "тτｔ"),
        ('u', "υսｕ"),
        ('x', "хχⅹ"),
    ];
    rewrite(random, token, |random, c| {
        let lower = c.to_ascii_lowercase();
        match ALIKE.iter().find(|(plain, _)| *plain == lower) {
            Some((_, alike)) => random.pick(&alike.chars().collect::<Vec<_>>()).to_string(),
            None => c.to_string(),
        }
    })
}

fn punctuation(random: &mut Random, token: &str) -> String {
    const ALIKE: [(char, &str); 7] = [
        ('<', "‹〈⟨❮《＜«﹤"),
        ('>', "›〉⟩❯》＞»﹥"),
        ('[', "［【〔⟦〖"),
        (']', "］】〕⟧〗"),
        ('|', "｜│∣ǀ¦"),
        ('"', "“”＂"),
        (':', "：﹕"),
    ];
    rewrite(random, token, |random, c| match ALIKE.iter().find(|(plain, _)| *plain == c) {
        Some((_, alike)) => random.pick(&alike.chars().collect::<Vec<_>>()).to_string(),
        None => c.to_string(),
    })
}

fn width(random: &mut Random, token: &str) -> String {
    rewrite(random, token, |_, c| {
        let wide = if c.is_ascii_graphic() { char::from_u32(u32::from(c) + 0xfee0) } else { None };
        wide.unwrap_or(c).to_string()
    })
}

fn references(random: &mut Random, token: &str) -> String {
    let (style, depth) = (random.below(5), random.below(3));
    rewrite(random, token, |_, c| {
        let code = u32::from(c);
        let name = match c {
            '<' => "lt",
            '>' => "gt",
            '"' => "quot",
            '[' => "lsqb",
            ']' => "rsqb",
            '|' => "vert",
            _ => "",
        };
        let body = match style {
            0 if !name.is_empty() => name.to_owned(),
            1 => format!("#x{code:x}"),
            2 => format!("#X{code:X}"),
            3 => format!("#0{code}"),
            _ => format!("#{code}"),
        };
        format!("&{}{body};", "amp;".repeat(depth))
    })
}

fn escapes(random: &mut Random, token: &str) -> String {
    let style = random.below(3);
    rewrite(random, token, |_, c| match style {
        0 => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        1 => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        _ if matches!(c, '<' | '[' | '"' | '/') => format!("\\{c}"),
        _ => c.to_string(),
    })
}

fn percents(random: &mut Random, token: &str) -> String {
    let (upper, depth) = (random.below(2) == 0, random.below(3));
    rewrite(random, token, |_, c| {
        if !c.is_ascii_graphic() {
            return c.to_string();
        }
        let (lead, code) = ("25".repeat(depth), u32::from(c));
        if upper { format!("%{lead}{code:02X}") } else { format!("%{lead}{code:02x}") }
    })
}

fn terminal(random: &mut Random, token: &str) -> String {
    scatter(random, token, |random| {
        let number = random.below(108);
        match random.below(7) {
            0 => format!("\u{1b}[{number}m"),
            1 => format!("\u{1b}[38;2;{number};{number};0m\u{1b}[0m"),
            2 => format!("\u{9b}{number}m"),
            3 => format!("\u{1b}[{number}C"),
            4 => format!("\u{1b}]0;title {number}\u{7}"),
            5 => format!("\u{1b}]8;;https://example.org/{}\u{1b}\\", "page/".repeat(random.below(40))),
            _ => "x\u{8}".to_owned(),
        }
    })
}

fn nested(random: &mut Random, token: &str) -> String {
    let once = scatter(random, token, |_| token.to_owned());
    if random.below(3) == 0 { scatter(random, token, |_| once.clone()) } else { once }
}

fn comment(random: &mut Random, token: &str) -> String {
    // Whoever reads JSON removes no comments of a page.
    if token.starts_with('"') {
        return token.to_owned();
    }
    scatter(random, token, |random| {
        let body = random.pick(&["", " ", " x ", " a longer remark, with > and -- in it "]);
        format!("<!--{body}-->")
    })
}

fn combining(random: &mut Random, token: &str) -> String {
    scatter(random, token, |random| {
        random.pick(&['\u{301}', '\u{335}', '\u{338}', '\u{20d2}', '\u{489}']).to_string()
    })
}
