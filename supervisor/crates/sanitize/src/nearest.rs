//! "Did you mean": the names nearest to one that does not exist.

/// Suggestions in one message: enough to include the right one, few enough to read.
const MAX_SUGGESTIONS: usize = 3;

/// Names considered. More would make a refusal more expensive than a call; names further back are not
/// suggested.
const MAX_CANDIDATES: usize = 1000;

/// Names are at most 64 characters by contract. The comparison is quadratic in the length, and a longer name
/// is hardly a typing error.
const MAX_COMPARED_CHARS: usize = 80;

/// The shortest text that counts as a part of a name: most names contain any one or two letters.
const MIN_CONTAINED_BYTES: usize = 3;

/// The nearest names, nearest first; empty if none is near.
///
/// Near means at most one edit in three characters, or that it contains the text: people know a model by the
/// middle of its name. Case does not matter, and `-`, `_`, `.`, `:` and spaces are equal. Models also leave
/// out the plugin's part of a tool's name (`plugin__action`), so a name with the same action is near, too.
#[must_use]
pub fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Vec<String> {
    if name.is_empty() || name.len() > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let folded = fold(name);
    let allowed = (folded.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = candidates
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len() <= MAX_COMPARED_CHARS)
        .filter_map(|candidate| {
            let other = fold(candidate);
            let distance = match other.split_once("__") {
                Some((_, action)) if action == folded => 0,
                _ => strsim::osa_distance(&folded, &other),
            };
            let contained = folded.len() >= MIN_CONTAINED_BYTES && other.contains(&folded);
            (contained || distance <= allowed).then_some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    near.dedup_by_key(|(_, candidate)| *candidate);
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(_, candidate)| candidate.to_owned()).collect()
}

fn fold(name: &str) -> String {
    name.chars()
        .map(|c| if matches!(c, '-' | '.' | ':' | ' ') { '_' } else { c.to_ascii_lowercase() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_was_probably_meant() {
        let names = ["search", "list-files", "read_range"];
        assert_eq!(nearest("serach", names.into_iter()), ["search"]);
        assert_eq!(nearest("list_files", names.into_iter()), ["list-files"]);
        assert_eq!(nearest("Search", names.into_iter()), ["search"]);
        assert!(nearest("quantum", names.into_iter()).is_empty());
    }

    #[test]
    fn slips_and_parts_of_names_are_near() {
        let names =
            ["openai/gpt-4o", "openai/gpt-4o-mini", "small", "anthropic/claude-sonnet-4", "ollama/qwen3:8b"];
        let near = |text| nearest(text, names.into_iter());
        assert_eq!(near("openai/gpt4o-mini")[0], "openai/gpt-4o-mini");
        assert_eq!(near("smal"), ["small"]);
        assert_eq!(near("sonnet"), ["anthropic/claude-sonnet-4"]);
        assert_eq!(near("Ollama/Qwen3_8B"), ["ollama/qwen3:8b"]);
        assert!(near("").is_empty());
        assert!(near("x").is_empty());
        assert!(near(&"x".repeat(10_000)).is_empty());
    }

    #[test]
    fn is_bounded() {
        let names: Vec<String> = (0..10_000).map(|i| format!("name{i}")).collect();
        assert!(nearest("name", names.iter().map(String::as_str)).len() <= MAX_SUGGESTIONS);
        assert!(nearest(&"n".repeat(1_000_000), names.iter().map(String::as_str)).is_empty());
    }
}
