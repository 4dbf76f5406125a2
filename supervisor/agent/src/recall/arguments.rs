//! The arguments of the memory tools.

use std::collections::BTreeMap;

/// The most tags of a memory.
const MAX_TAGS: usize = 8;
/// The longest tag.
const MAX_TAG_BYTES: usize = 64;
/// A required text of at most so many bytes. The schema was checked already; this also covers other callers.
pub(super) fn text_argument<'a>(
    args: &'a BTreeMap<String, String>,
    name: &str,
    most: usize,
) -> Result<&'a str, String> {
    match args.get(name).map(|text| text.trim()) {
        None | Some("") => Err(format!("{name} is missing")),
        Some(text) if text.len() > most => {
            Err(format!("{name} has {} bytes and may have {most}", text.len()))
        }
        Some(text) => Ok(text),
    }
}

/// The tags of a call: a JSON list, as lists travel, or comma-separated words, as models write them anyway.
pub(super) fn tags_argument(args: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let Some(written) = args.get("tags").filter(|written| !written.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let all: Vec<String> = match serde_json::from_str(written) {
        Ok(list) => list,
        Err(_) if written.trim_start().starts_with(['[', '{']) => {
            return Err("tags is no list of texts; write it like [\"preference\"]".to_owned());
        }
        Err(_) => written.split(',').map(str::to_owned).collect(),
    };
    let mut tags: Vec<String> = all.iter().map(|tag| tag.trim().to_lowercase()).collect();
    tags.retain(|tag| !tag.is_empty());
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        return Err(format!("there are {} tags; at most {}", tags.len(), MAX_TAGS));
    }
    for tag in &tags {
        if tag.len() > MAX_TAG_BYTES || tag.chars().any(char::is_control) {
            return Err("a tag is a word or two: at most 64 bytes, on one line".to_owned());
        }
    }
    Ok(tags)
}
