//! Two rules that others publish, written anew from their description, to measure against.

/// `OpenTalon`'s rule: six patterns, as written, each match masked by as many `*` as it has bytes.
pub(crate) fn mask_six_literals(text: &str) -> String {
    let mut out = text.to_owned();
    for literal in ["[tool_call]", "[tool_use]", "<tool_call>", "<function_call>"] {
        out = out.replace(literal, &"*".repeat(literal.len()));
    }
    for (key, closes) in [("\"type\"", "\"function\""), ("\"tool_calls\"", "[")] {
        let mut from = 0;
        while let Some(start) = out[from..].find(key).map(|found| from + found) {
            let behind = out[start + key.len()..].trim_start();
            let value =
                behind.strip_prefix(':').map(str::trim_start).and_then(|value| value.strip_prefix(closes));
            let end = value.map_or(start + key.len(), |rest| out.len() - rest.len());
            if value.is_some() {
                out.replace_range(start..end, &"*".repeat(end - start));
            }
            from = end;
        }
    }
    out
}

/// The way of `ZeroClaw` and others: width and angles are folded one character for one, and special tokens
/// from a list, in any case, are replaced by a word. The list is of the length of theirs; the tokens are the
/// best known.
pub(crate) fn replace_folded_tokens(text: &str) -> String {
    const TOKENS: [&str; 14] = [
        "<|im_start|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "[inst]",
        "[/inst]",
        "<<sys>>",
        "<</sys>>",
        "<tool_call>",
    ];
    let folded: Vec<char> = text.chars().map(fold).collect();
    let original: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < original.len() {
        let token = TOKENS.iter().find(|token| {
            folded.len() - at >= token.len() && token.chars().eq(folded[at..at + token.len()].iter().copied())
        });
        match token {
            Some(token) => {
                out.push_str(REPLACEMENT);
                at += token.len();
            }
            None => {
                out.push(original[at]);
                at += 1;
            }
        }
    }
    out
}

const REPLACEMENT: &str = "[REMOVED]";

fn fold(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c).to_ascii_lowercase(),
        '〈' | '‹' | '⟨' | '\u{2329}' => '<',
        '〉' | '›' | '⟩' | '\u{232a}' => '>',
        other => other.to_ascii_lowercase(),
    }
}

/// How many places one of these rules changed.
pub(crate) fn replacements(before: &str, after: &str) -> usize {
    let runs = |text: &str| text.split(|c| c != '*').filter(|run| run.len() >= 10).count();
    let words = |text: &str| text.matches(REPLACEMENT).count();
    (runs(after) + words(after)).saturating_sub(runs(before) + words(before))
}
