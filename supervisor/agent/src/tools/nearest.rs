//! Suggests names similar to one that does not exist.

/// The most suggestions: enough to contain the intended one, few enough to read.
const MAX_SUGGESTIONS: usize = 3;
/// The longest name that is compared: comparing is quadratic in the length, and tool names have at most 64 characters.
const MAX_COMPARED_CHARS: usize = 80;

/// The nearest names, nearest first; empty if none is near. Near is one edit in three characters; case, `-` and `_` make no
/// difference. Models also leave out the plugin's part of a name, or put a dot into it: a name that ends alike is near, too.
pub(super) fn nearest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Vec<String> {
    if name.is_empty() || name.len() > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let folded = fold(name);
    let allowed = (folded.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = candidates
        .filter(|candidate| candidate.len() <= MAX_COMPARED_CHARS)
        .filter_map(|candidate| {
            let other = fold(candidate);
            let distance = match other.split_once("__") {
                Some((_, action)) if action == folded => 0,
                _ => strsim::osa_distance(&folded, &other),
            };
            (distance <= allowed).then_some((distance, candidate))
        })
        .collect();
    near.sort_unstable();
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(_, candidate)| candidate.to_owned()).collect()
}

fn fold(name: &str) -> String {
    name.chars().map(|c| if matches!(c, '-' | '.' | ' ') { '_' } else { c.to_ascii_lowercase() }).collect()
}
