//! Folds one character to the ASCII character that it passes for.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// What symbols such as `✿` fold to: not an ASCII character. A name between two of them may be syntax.
pub(crate) const SYMBOL: u8 = 0x81;

/// What a character looks like to a reader who folds width, font, case and look-alikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folded {
    /// Removed: a combining mark on a letter that is read without it.
    Nothing,
    /// A lower-case ASCII character; white space other than a line break is `b' '`, every line break `b'\n'`.
    One(u8),
    /// Several ASCII characters (`ﬁ`, `⒜`).
    Several([u8; 4]),
    /// Anything else.
    Other,
}

/// Folds one visible character. The caller handles invisible ones, see [`crate::invisible`].
pub(crate) fn fold(c: char) -> Folded {
    if c.is_ascii() {
        return Folded::One(match c {
            '\n' => b'\n',
            '\t' | '\r' | '\x0b' | '\x0c' => b' ',
            other => other.to_ascii_lowercase() as u8,
        });
    }
    if let Some(ascii) = look_alike(c) {
        return Folded::One(ascii);
    }
    if c.is_whitespace() || c == '\u{2800}' {
        return Folded::One(b' ');
    }
    // Latin and Cyrillic ones.
    if matches!(c, '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}') {
        return Folded::Nothing;
    }
    if is_symbol(c) {
        return Folded::One(SYMBOL);
    }
    compatibility(c)
}

/// Geometric shapes, miscellaneous symbols and dingbats.
pub(crate) fn is_symbol(c: char) -> bool {
    matches!(c, '\u{25a0}'..='\u{27bf}')
}

/// The compatibility decomposition of one character without its accents, if it ends in ASCII.
fn compatibility(c: char) -> Folded {
    // Scripts without compatibility forms: Cyrillic to Georgian, Hangul syllables and the ideographs. Most
    // non-ASCII text is in these, and needs no table lookup.
    if matches!(c, '\u{370}'..='\u{10ff}' | '\u{3400}'..='\u{9fff}' | '\u{a000}'..='\u{d7ff}' | '\u{20000}'..='\u{323af}')
    {
        return Folded::Other;
    }
    let mut out = [0u8; 4];
    let mut len = 0;
    for part in core::iter::once(c).nfkd() {
        if is_combining_mark(part) || part == '\u{2044}' {
            continue;
        }
        let part = look_alike(part).map_or(part, char::from);
        if !part.is_ascii() || len == out.len() {
            return Folded::Other;
        }
        out[len] = part.to_ascii_lowercase() as u8;
        len += 1;
    }
    match len {
        0 => Folded::Nothing,
        1 => Folded::One(out[0]),
        _ => Folded::Several(out),
    }
}

/// Characters that look like an ASCII character but have no compatibility mapping to it.
fn look_alike(c: char) -> Option<u8> {
    punctuation(c).or_else(|| letter(c))
}

/// The punctuation, or line break, that the character passes for. All ways to write an opener are here.
pub(crate) fn punctuation(c: char) -> Option<u8> {
    Some(match c {
        '\u{85}' | '\u{2028}' | '\u{2029}' => b'\n',
        '‹' | '\u{2329}' | '\u{3008}' | '⟨' | '❬' | '❮' | '❰' | '﹤' | '＜' | '˂' | 'ᐸ' | '⧼' | '≺' | '«'
        | '《' | '◁' | '◀' | '◃' | '◂' | '⟪' | '≪' | '︿' | '︽' | '⦑' | '⋖' => b'<',
        '›' | '\u{232a}' | '\u{3009}' | '⟩' | '❭' | '❯' | '❱' | '﹥' | '＞' | '˃' | 'ᐳ' | '⧽' | '≻' | '»'
        | '》' | '▷' | '▶' | '▹' | '▸' | '⟫' | '≫' | '﹀' | '︾' | '⦒' | '⋗' => b'>',
        '［' | '【' | '〔' | '〖' | '〘' | '〚' | '⟦' | '⁅' | '﹝' | '﹇' | '︹' | '︻' | '❲' | '⦋' | '⦗'
        | '⟬' | '「' | '『' | '｢' | '︗' | '⸢' => b'[',
        '］' | '】' | '〕' | '〗' | '〙' | '〛' | '⟧' | '⁆' | '﹞' | '﹈' | '︺' | '︼' | '❳' | '⦌' | '⦘'
        | '⟭' | '」' | '』' | '｣' | '︘' | '⸣' => b']',
        '｜' | '￨' | '│' | '┃' | '╎' | '╏' | '┆' | '┇' | '┊' | '┋' | '║' | '❘' | '❙' | '❚' | '¦' | 'ǀ'
        | '∣' | '‖' | '∥' | '⏐' | '︱' | '︳' | '丨' | '׀' | 'ⵏ' | '⎮' | '⎪' | '▏' | '▕' => {
            b'|'
        }
        '：' | '﹕' | '꞉' | '∶' | 'ː' | '։' | '׃' | '︓' | '˸' | 'ꓽ' => b':',
        '／' | '⁄' | '∕' | '⧸' | '╱' | '⟋' => b'/',
        '＼' | '﹨' | '∖' | '⧵' | '⧹' | '╲' => b'\\',
        '＃' | '﹟' => b'#',
        '～' | '〜' | '∼' | '˜' | '∽' => b'~',
        '｀' | 'ˋ' | '\u{1fef}' => b'`',
        '＂' | '“' | '”' | '„' | '‟' | '″' | '‶' | 'ʺ' | 'ˮ' | '〃' | '〝' | '〞' | '〟' => {
            b'"'
        }
        '＿' | '﹍' | '﹎' | '﹏' | '‗' | 'ˍ' | '▁' | '︴' => b'_',
        '＝' | '﹦' | '꞊' | '゠' => b'=',
        '‐' | '‑' | '‒' | '–' | '—' | '―' | '−' | '－' | '﹣' | '˗' => b'-',
        '｛' | '﹛' | '❴' | '⦃' => b'{',
        '｝' | '﹜' | '❵' | '⦄' => b'}',
        '＆' | '﹠' => b'&',
        '％' | '﹪' => b'%',
        '；' | '﹔' | '\u{37e}' | '︔' => b';',
        _ => return None,
    })
}

fn letter(c: char) -> Option<u8> {
    Some(match c {
        'а' | 'А' | 'α' | 'Α' | 'ɑ' | 'ᴀ' => b'a',
        'в' | 'В' | 'ь' | 'Ь' | 'β' | 'Β' | 'ʙ' => b'b',
        'с' | 'С' | 'ς' | 'ϲ' | 'Ϲ' | 'ᴄ' | 'ᴐ' => b'c',
        'ԁ' | 'Ԁ' | 'ɗ' | 'ᴅ' => b'd',
        'е' | 'Е' | 'ё' | 'Ё' | 'ε' | 'Ε' | 'є' | 'Є' | 'ҽ' | 'ᴇ' => b'e',
        'ƒ' | 'ꜰ' | 'ϝ' => b'f',
        'ɡ' | 'ց' | 'ɢ' | 'Ԍ' | 'ԍ' => b'g',
        'н' | 'Н' | 'һ' | 'Һ' | 'Η' | 'հ' | 'ʜ' => b'h',
        'і' | 'І' | 'ї' | 'Ї' | 'ι' | 'Ι' | 'ı' | 'ɩ' | 'ɪ' => b'i',
        'ј' | 'Ј' | 'ϳ' | 'ᴊ' => b'j',
        'к' | 'К' | 'κ' | 'Κ' | 'ᴋ' => b'k',
        'ӏ' | 'Ӏ' | 'ʟ' | 'ⅼ' => b'l',
        'м' | 'М' | 'Μ' | 'ᴍ' => b'm',
        'п' | 'η' | 'Ν' | 'ո' | 'ɴ' => b'n',
        'о' | 'О' | 'ο' | 'Ο' | 'օ' | 'σ' | 'ᴏ' => b'o',
        'р' | 'Р' | 'ρ' | 'Ρ' | 'ᴘ' => b'p',
        'ԛ' | 'Ԛ' | 'զ' => b'q',
        'г' | 'ʀ' | 'ᴦ' => b'r',
        'ѕ' | 'Ѕ' | 'ꜱ' => b's',
        'т' | 'Т' | 'τ' | 'Τ' | 'ᴛ' => b't',
        'υ' | 'μ' | 'ս' | 'ʋ' | 'ᴜ' => b'u',
        'ν' | 'ѵ' | 'Ѵ' | 'ᴠ' => b'v',
        'ԝ' | 'Ԝ' | 'ω' | 'ѡ' | 'ᴡ' => b'w',
        'х' | 'Х' | 'χ' | 'Χ' => b'x',
        'у' | 'У' | 'ү' | 'Ү' | 'γ' | 'Υ' | 'ʏ' => b'y',
        'Ζ' | 'ᴢ' => b'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_font_script_and_case_fold_to_ascii() {
        for (c, ascii) in [
            ('Ｔ', b't'),
            ('𝓽', b't'),
            ('ſ', b's'),
            ('\u{212a}', b'k'),
            ('О', b'o'),
            ('ⓤ', b'u'),
            ('＜', b'<'),
        ] {
            assert_eq!(fold(c), Folded::One(ascii), "{c}");
        }
        assert_eq!(fold('ﬁ'), Folded::Several(*b"fi\0\0"));
        assert_eq!(fold('é'), Folded::One(b'e'));
        assert_eq!(fold('字'), Folded::Other);
        assert_eq!(fold('·'), Folded::Other);
    }
}
