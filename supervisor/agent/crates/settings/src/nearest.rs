//! The names that look most like one that does not exist.

/// So many are named: more of them help nobody to see the slip.
const MAX_NEAREST: usize = 3;

/// Compared up to here. A longer text is no slip of a name, and comparing takes time by the product of the lengths.
const MAX_COMPARED_CHARS: usize = 200;

/// The nearest of the names, the nearest first; none if nothing is near.
///
/// Near is what a third of the letters separates, or what begins with or holds the word: people know a model by the middle of
/// its name.
pub(crate) fn nearest<'n>(asked: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let asked = fold(asked);
    let length = asked.chars().count();
    if length == 0 || length > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let folded = fold(name);
            let distance = strsim::osa_distance(&asked, &folded);
            // Of a single letter nothing is told by what holds it.
            let held = length >= 3 && folded.contains(&asked);
            (held || distance <= length.div_ceil(3)).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup_by_key(|(_, name)| *name);
    near.into_iter().take(MAX_NEAREST).map(|(_, name)| name.to_owned()).collect()
}

/// As people mix them up.
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
        let near = |asked| nearest(asked, names.into_iter());
        assert_eq!(near("openai/gpt4o-mini")[0], "openai/gpt-4o-mini");
        assert_eq!(near("smal"), ["small"]);
        assert_eq!(near("sonnet"), ["anthropic/claude-sonnet-4"]);
        assert_eq!(near("Ollama/Qwen3_8B"), ["ollama/qwen3:8b"]);
        assert!(near("").is_empty());
        assert!(near("x").is_empty());
        assert!(near(&"x".repeat(10_000)).is_empty());
    }
}
