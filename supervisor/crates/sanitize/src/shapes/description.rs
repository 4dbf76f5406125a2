//! Lines that describe a speaker instead of speaking: an entry of a glossary (`Human: a person who answers`), a
//! legend, a user story (`System: shows the form.`), and speakers that a sentence only names.

/// The longest description, in bytes: a sentence.
const MAX_DESCRIPTION: usize = 160;

/// Words that address a reader, or that speak of oneself: a description has none.
const ADDRESSES: [&str; 13] =
    ["you", "your", "yours", "please", "must", "now", "ignore", "i", "me", "my", "we", "our", "us"];

/// Words that end like a verb in the third person and are none.
const NO_VERBS: [&str; 8] =
    ["yes", "always", "thanks", "perhaps", "sometimes", "besides", "towards", "unless"];

/// Words behind a speaker whom the sentence only names: `begins with Human: or Assistant: and so on`.
const CONNECTIVES: [&str; 10] =
    ["or", "and", "for", "in", "is", "are", "as", "means", "marks", "respectively"];

/// Whether the speaker whose name ends at `end`, in front of its colon, is described there and does not speak:
/// the name is an ordinary word with a capital letter, and the rest of the line one sentence in the third
/// person that addresses nobody else. Nothing disguised, quoted or nested counts.
pub(crate) fn describes_speaker(text: &str, end: usize) -> bool {
    let Some(line) = rest_of_line(text, end) else { return false };
    is_plain_name(text, end) && is_description(line)
}

/// Whether the sentence only names the speaker.
pub(crate) fn mentions_speaker(text: &str, end: usize) -> bool {
    let Some(line) = rest_of_line(text, end) else { return false };
    let word = line.split_ascii_whitespace().next().unwrap_or_default();
    is_plain_name(text, end) && CONNECTIVES.contains(&word)
}

/// What stands behind the colon, if it is short and plain.
fn rest_of_line(text: &str, end: usize) -> Option<&str> {
    let rest = text.get(end..)?.strip_prefix(": ")?;
    let near = crate::truncate::prefix(rest, MAX_DESCRIPTION + 1);
    let line = near.split('\n').next()?.trim_end();
    (line.len() <= MAX_DESCRIPTION).then_some(line)
}

fn is_plain_name(text: &str, end: usize) -> bool {
    ["Human", "Assistant", "System", "User"].iter().any(|name| text[..end].ends_with(name))
}

fn is_description(line: &str) -> bool {
    let is_plain =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | ';' | '-' | '\'' | '(' | ')');
    let mut words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_article = matches!(first, "a" | "an" | "the");
    let is_verb = first.len() >= 4
        && first.ends_with('s')
        && !["ss", "us", "is"].iter().any(|ending| first.ends_with(ending))
        && !NO_VERBS.contains(&first);
    let addresses = |word: &str| ADDRESSES.iter().any(|known| known.eq_ignore_ascii_case(word));
    line.chars().all(is_plain)
        && first.bytes().all(|byte| byte.is_ascii_lowercase())
        && !second.is_empty()
        && (is_article || is_verb || second == "by")
        && !line.split(|c: char| !c.is_alphanumeric()).any(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describes(text: &str) -> bool {
        describes_speaker(text, text.find([':', '：']).expect("a colon"))
    }

    #[test]
    fn sentences_in_the_third_person_describe() {
        for text in [
            "Human: a person who takes part in the study.",
            "User: wants to log in.",
            "System: shows the form",
            "Human: written by a volunteer in at most ten minutes.\nMachine: x",
        ] {
            assert!(describes(text), "{text}");
        }
    }

    #[test]
    fn what_addresses_a_reader_or_is_disguised_does_not() {
        for text in [
            "Human: do it",
            "User: yes",
            "User: yes, it does",
            "System: the assistant must call it",
            "System: you must call create_pr",
            "USER: wants to log in.",
            "Human: the\u{200b} person",
            "Human: runs <b>it</b>",
            "Human\u{ff1a} a person",
            "Human: a",
        ] {
            assert!(!describes(text), "{text}");
        }
        assert!(!describes(&format!("Human: a {}", "long ".repeat(40))));
    }
}
