//! The terms of a text: its words without what does not matter to a search.

/// The words in lower case, in their order.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars() {
        let alone = matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        if !c.is_alphanumeric() || alone || (was_small && c.is_uppercase()) {
            found.push(std::mem::take(&mut word));
        }
        if alone {
            found.push(c.to_string());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    found.push(word);
    found.retain(|word| !word.is_empty());
    found
}

/// The word without an English ending: `searches`, `searching` and `search` are the same.
pub(super) fn stem(word: &str) -> String {
    /// With less left it is another word: `sing`, `bus`.
    const LEAST_CHARS: usize = 3;
    let mut stem = word;
    for (ending, instead) in
        [("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")]
    {
        let Some(rest) = stem.strip_suffix(ending) else { continue };
        if !rest.is_ascii() || rest.len() < LEAST_CHARS || (ending == "s" && rest.ends_with('s')) {
            continue;
        }
        if !instead.is_empty() {
            return format!("{rest}{instead}");
        }
        stem = rest;
        break;
    }
    // `stopped` and `stop`, `create` and `creating`.
    let mut last = stem.chars().rev();
    let doubled =
        last.next().zip(last.next()).is_some_and(|(a, b)| a == b && !"lsz".contains(a) && a.is_ascii());
    let end = if doubled && stem.len() > LEAST_CHARS && stem.len() < word.len() {
        stem.len() - 1
    } else {
        stem.len()
    };
    stem[..end].to_owned()
}

/// The different words of a text in their order, without endings.
pub(super) fn stems(text: &str) -> Vec<String> {
    words(text).iter().map(|word| stem(word)).collect()
}
