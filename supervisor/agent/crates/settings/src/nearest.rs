//! The names most similar to one that does not exist.

/// The most suggestions: enough to contain the intended name, few enough to read.
const MAX_NEAREST: usize = 3;

/// The longest name that is compared: comparing is quadratic in the length, and a longer text is no typing error.
const MAX_COMPARED_CHARS: usize = 200;

/// The nearest of the names, nearest first; empty if none is near.
///
/// A name is near if at most a third of the letters differ, or if it contains the text: people know a model by the middle
/// of its name.
pub(crate) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let text = fold(text);
    let length = text.chars().count();
    if length == 0 || length > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let folded = fold(name);
            let distance = strsim::osa_distance(&text, &folded);
            // Most names contain any one or two letters.
            let contained = length >= 3 && folded.contains(&text);
            (contained || distance <= length.div_ceil(3)).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup_by_key(|(_, name)| *name);
    near.into_iter().take(MAX_NEAREST).map(|(_, name)| name.to_owned()).collect()
}

/// Case and separators make no difference.
fn fold(name: &str) -> String {
    name.to_lowercase().replace(['_', ':', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
