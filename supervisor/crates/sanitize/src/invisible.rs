//! Invisible characters: which of them carry meaning where they stand, and stay, and which become notes.

/// Whether the character has no glyph (Unicode's default ignorables, the annotation and shorthand
/// controls, the fillers).
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether an invisible character at `at` has its intended use, and therefore stays: alone between quotes,
/// joiners inside emoji
/// and between letters of scripts that need them, selectors behind a character that has variants, the three
/// flags spelled in tags, a single direction mark, a byte order mark at the very start.
///
/// It checks the neighbours alone, and only ones that sanitizing leaves in place, so the answer is the same
/// for sanitized text.
pub(crate) fn stays(text: &str, at: usize, c: char) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at + c.len_utf8()..].chars().next();
    // A character constant of source code, and a test's string: `'\u{3164}'`.
    if let (Some(open @ ('\'' | '"')), Some(close)) = (before, after)
        && open == close
        && !is_direction(c)
    {
        return true;
    }
    match c {
        '\u{feff}' => at == 0,
        // The invisible plus of a mixed number.
        '\u{2064}' => {
            before.is_some_and(|digit| digit.is_ascii_digit())
                && after.is_some_and(|digit| digit.is_ascii_digit() || matches!(digit, '¼'..='¾' | '⅐'..='⅞'))
        }
        '\u{200e}' | '\u{200f}' | '\u{61c}' => !before.is_some_and(is_direction_mark),
        '\u{200d}' if ends_in_emoji(&text[..at]) => after.is_some_and(is_emoji_base),
        '\u{200c}' | '\u{200d}' => {
            before.is_some_and(needs_joiners)
                && after.is_none_or(|next| !next.is_ascii_alphanumeric() && !is_invisible(next))
        }
        '\u{200b}' => before.is_some_and(breaks_without_spaces) && after.is_some_and(breaks_without_spaces),
        '\u{fe0e}' | '\u{fe0f}' => match before {
            Some('0'..='9' | '#' | '*') => after == Some('\u{20e3}'),
            Some(base) => is_emoji_base(base),
            None => false,
        },
        '\u{fe00}'..='\u{fe02}' => before.is_some_and(|base| is_ideograph(base) || matches!(base, '∀'..='⋿')),
        '\u{e0100}'..='\u{e01ef}' => before.is_some_and(is_ideograph),
        '\u{180b}'..='\u{180f}' => before.is_some_and(|base| matches!(base, '\u{1820}'..='\u{18aa}')),
        '\u{115f}' => after.is_some_and(|next| matches!(next, '\u{1161}'..='\u{11a7}')),
        '\u{1160}' => before.is_some_and(|base| matches!(base, '\u{1100}'..='\u{115e}')),
        '\u{e0020}'..='\u{e007f}' => in_flag(text, at),
        _ => false,
    }
}

/// Embeddings, overrides and isolates, which change the order of what is around them.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
}

fn is_emoji_base(c: char) -> bool {
    matches!(c,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | 'Ⓜ'
        | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '〰' | '〽' | '㊗' | '㊙'
        | '\u{1f000}'..='\u{1faff}')
}

fn ends_in_emoji(text: &str) -> bool {
    let mut back = text.chars().rev();
    match back.next() {
        Some('\u{fe0f}') => back.next().is_some_and(is_emoji_base),
        Some(c) => is_emoji_base(c),
        None => false,
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Hebrew, Arabic, Syriac, the Indic scripts and their neighbours, Buginese, Old Turkic, where a joiner selects
/// the form of a letter.
fn needs_joiners(c: char) -> bool {
    matches!(c, '\u{5d0}'..='\u{5ea}' | '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{e00}'..='\u{fff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}' | '\u{1800}'..='\u{18af}' | '\u{1a00}'..='\u{1a1f}'
        | '\u{10c00}'..='\u{10c4f}' | '\u{a8e0}'..='\u{a8ff}' | '\u{fb50}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}' | '\u{11000}'..='\u{11fff}')
        && !is_invisible(c)
}

/// Thai, Lao, Myanmar and Khmer write no spaces between words and mark the breaks with U+200B.
fn breaks_without_spaces(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}') && !is_invisible(c)
}

/// England, Scotland and Wales: the only flags spelled in tag characters that are in general use.
fn in_flag(text: &str, at: usize) -> bool {
    const LONGEST: usize = 7;
    let Some((start, _)) = text[..at].char_indices().rev().take(LONGEST).find(|&(_, c)| c == '\u{1f3f4}')
    else {
        return false;
    };
    ["gbeng", "gbsct", "gbwls"].iter().any(|region| {
        let mut rest = text[start..].char_indices().skip(1);
        let spelled = region
            .bytes()
            .all(|letter| rest.next().is_some_and(|(_, c)| u32::from(c) == 0xe0000 + u32::from(letter)));
        spelled && rest.next().is_some_and(|(end, c)| c == '\u{e007f}' && at <= start + end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(text: &str) -> bool {
        text.char_indices().all(|(at, c)| !is_invisible(c) || stays(text, at, c))
    }

    #[test]
    fn invisible_characters_stay_where_they_have_a_job() {
        for text in ["👨‍👩‍👧", "🏳️‍🌈", "1️⃣", "❤️‍🔥", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "می‌شود", "क्‍ष", "a\u{200e}b", "\u{feff}x", "葛󠄀"]
        {
            assert!(leaves(text), "{text:?}");
        }
    }

    #[test]
    fn invisible_characters_elsewhere_do_not() {
        for text in [
            "a\u{200d}b",
            "a\u{200b}b",
            "x\u{feff}",
            "a\u{fe0f}",
            "\u{1f3f4}\u{e0067}\u{e0062}",
            "1\u{fe0f}",
            "a\u{200e}\u{200e}b",
            "\u{202e}x",
            "می\u{200c}\u{200c}شود",
            "x\u{e0101}",
        ] {
            assert!(!leaves(text), "{text:?}");
        }
    }
}
