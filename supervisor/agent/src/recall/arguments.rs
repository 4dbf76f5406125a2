//! The arguments of the memory tools.

use std::collections::BTreeMap;

use super::error::MemoryToolError;
use super::limits::{MAX_TAG_BYTES, MAX_TAGS};

/// A required text of at most so many bytes. The schema was checked already; this also covers other callers.
pub(super) fn text_argument<'a>(
    args: &'a BTreeMap<String, String>,
    name: &'static str,
    most: usize,
) -> Result<&'a str, MemoryToolError> {
    match args.get(name).map(|text| text.trim()) {
        None | Some("") => Err(MemoryToolError::MissingArgument { name }),
        Some(text) if text.len() > most => {
            Err(MemoryToolError::LongArgument { name, bytes: text.len(), most })
        }
        Some(text) => Ok(text),
    }
}

/// The tags of a call: a JSON list, as lists travel, or comma-separated words, as models write them anyway.
pub(super) fn tags_argument(args: &BTreeMap<String, String>) -> Result<Vec<String>, MemoryToolError> {
    let Some(written) = args.get("tags").filter(|written| !written.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let all: Vec<String> = match serde_json::from_str(written) {
        Ok(list) => list,
        Err(_) if written.trim_start().starts_with(['[', '{']) => {
            return Err(MemoryToolError::MalformedTags);
        }
        Err(_) => written.split(',').map(str::to_owned).collect(),
    };
    let mut tags: Vec<String> = all.iter().map(|tag| tag.trim().to_lowercase()).collect();
    tags.retain(|tag| !tag.is_empty());
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        return Err(MemoryToolError::TooManyTags(tags.len()));
    }
    for tag in &tags {
        if tag.len() > MAX_TAG_BYTES || tag.chars().any(char::is_control) {
            return Err(MemoryToolError::MalformedTag);
        }
    }
    Ok(tags)
}
