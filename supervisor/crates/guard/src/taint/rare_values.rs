//! Finds values that are rare enough to be recognized though they are short: e-mail addresses, long numbers,
//! identifiers.

/// How much of a text is searched, in bytes. The values that an attacker wants to be sent somewhere stand in
/// what a model reads first; the search stays below the time that sanitizing the same text takes.
const MAX_SEARCHED: usize = 16 * 1024;

/// How many values of one text count. A page of identifiers says little by each of them, and would evict others
/// from the table.
const MAX_VALUES: usize = 64;

/// The shortest identifier and number, in letters and digits: dates, times, versions, sizes and ports are
/// shorter, keys and identifiers of databases longer.
const MIN_IDENTIFIER: usize = 12;

/// The shortest e-mail address, in letters and digits: `ada@x.example` has 11; shorter ones are no addresses of
/// people.
const MIN_ADDRESS: usize = 8;

/// The longest value: longer ones are found by their n-grams.
const MAX_VALUE: usize = 64;

/// How many different letters and digits an identifier has at least. Numbers have some ten.
const MIN_DIFFERENT: u32 = 6;

/// A part of so many letters is a word, and the value a name such as `x86_64-unknown-linux-gnu`.
const MIN_WORD: usize = 5;

/// So many bytes are checked at once for what a rare value has: enough for vector instructions, few enough that
/// little is read twice.
const BLOCK: usize = 32;

/// Passes the letters and digits of each rare value, in lower case, to `found`.
pub(super) fn rare_values(text: &str, mut found: impl FnMut(&[u8])) {
    let text = talon_sanitize::prefix(text, MAX_SEARCHED).as_bytes();
    let (mut from, mut count) = (0, 0);
    while let Some(at) = find_digit_or_at(text, from) {
        let start = text[from..at].iter().rposition(|byte| !is_part(*byte)).map_or(from, |i| from + i + 1);
        let end = text[at..].iter().position(|byte| !is_part(*byte)).map_or(text.len(), |i| at + i);
        from = end;
        let value = &text[start..end];
        if value.len() < MIN_ADDRESS || value.len() > 2 * MAX_VALUE || !is_rare(value) {
            continue;
        }
        let mut letters = [0; MAX_VALUE];
        let mut length = 0;
        let counted = value.iter().filter(|byte| byte.is_ascii_alphanumeric());
        for (slot, byte) in letters.iter_mut().zip(counted) {
            *slot = byte.to_ascii_lowercase();
            length += 1;
        }
        found(&letters[..length]);
        count += 1;
        if count == MAX_VALUES {
            return;
        }
    }
}

/// Where the next digit or `@` stands: every rare value has one, and most words of prose have none.
fn find_digit_or_at(text: &[u8], from: usize) -> Option<usize> {
    let is_wanted = |byte: &u8| byte.is_ascii_digit() || *byte == b'@';
    let mut start = from;
    for block in text[from..].chunks(BLOCK) {
        // Without an early end, which would keep the compiler from using vector instructions.
        if block.iter().fold(false, |any, byte| any | is_wanted(byte)) {
            return block.iter().position(is_wanted).map(|i| start + i);
        }
        start += block.len();
    }
    None
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'.' | b'_' | b'+' | b'-')
}

fn is_rare(value: &[u8]) -> bool {
    let letters = value.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    if letters > MAX_VALUE {
        return false;
    }
    let mut sides = value.split(|byte| *byte == b'@');
    if let (Some(name), Some(host), None) = (sides.next(), sides.next(), sides.next()) {
        let dotted = host.iter().position(|byte| *byte == b'.').is_some_and(|dot| dot > 0);
        return letters >= MIN_ADDRESS && dotted && name.first().is_some_and(u8::is_ascii_alphanumeric);
    }
    if letters < MIN_IDENTIFIER || !value.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let is_word = |part: &[u8]| part.len() >= MIN_WORD && part.iter().all(u8::is_ascii_alphabetic);
    let mut different = 0u128;
    for byte in value.iter().filter(|byte| byte.is_ascii_alphanumeric()) {
        different |= 1 << (byte.to_ascii_lowercase() - b'0');
    }
    different.count_ones() >= MIN_DIFFERENT && !value.split(|byte| !byte.is_ascii_alphanumeric()).any(is_word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        rare_values(text, |letters| all.push(String::from_utf8_lossy(letters).into_owned()));
        all
    }

    #[test]
    fn addresses_identifiers_and_long_numbers_are_rare() {
        assert_eq!(
            found("Mail ada@x.example or use AKIAIOSFODNN7EXAMPLE, order 4829-1177-3056-1."),
            ["adaxexample", "akiaiosfodnn7example", "4829117730561"]
        );
        assert_eq!(found("id=01HZX5K8Q2M7, 9f86d081-884c"), ["01hzx5k8q2m7", "9f86d081884c"]);
    }

    #[test]
    fn words_dates_versions_and_names_are_not() {
        let text = "On 2026-11-24 at 10:00:01 version 1.24.0-rc.1 of x86_64-unknown-linux-gnu was released by \
                    someone; 000000000000 and port 8080, internationalization, foo@bar, a@b.c.";
        assert_eq!(found(text), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn a_search_by_blocks_finds_what_a_search_of_all_parts_finds(text in "[a-d1-9@. \\-]{0,200}") {
            let parts = text.split(|c: char| !u8::try_from(c).is_ok_and(is_part)).map(str::as_bytes);
            let rare = parts.filter(|part| (MIN_ADDRESS..=2 * MAX_VALUE).contains(&part.len()) && is_rare(part));
            let letters = |part: &[u8]| part.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
            let all: Vec<_> = rare.map(|part| String::from_utf8(letters(part)).expect("ASCII")).collect();
            prop_assert_eq!(found(&text), all);
        }
    }

    #[test]
    fn the_search_is_bounded() {
        assert_eq!(found(&"4829117730561 ".repeat(1000)).len(), MAX_VALUES);
        assert!(found(&format!("{}4829117730561", " ".repeat(MAX_SEARCHED))).is_empty());
        assert!(found(&"a1b2c3d4e5f6".repeat(100)).is_empty());
    }
}
