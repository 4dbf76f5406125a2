//! `memory.search`

use std::collections::BTreeMap;

use talon_guard::Raw;
use talon_store::{MemoryQuery, PageRequest, StoredMemory, WORKFLOW_TAG};

use super::arguments::{tags_argument, text_argument};
use super::error::MemoryToolError;
use super::tools::MemoryTools;
use super::{keywords, owner};
use crate::driver::Caller;

/// The longest query: all words have to match, so more words find less.
const MAX_QUERY_BYTES: usize = 500;
/// The most memories that a search shows.
const MAX_FOUND: usize = 10;
/// How many memories are scanned: some belong to others.
const MAX_SCANNED: u32 = 100;
/// How much of a memory is shown; longer ones were imported.
const MAX_SHOWN_BYTES: usize = 700;

impl MemoryTools {
    pub(super) async fn search(
        &self,
        caller: &Caller,
        args: &BTreeMap<String, String>,
    ) -> Result<String, MemoryToolError> {
        let query = text_argument(args, "query", MAX_QUERY_BYTES)?;
        let tags = tags_argument(args)?;
        let is_wanted = |memory: &StoredMemory| {
            owner::is_visible_to(memory, &caller.sender) && tags.iter().all(|tag| memory.tags.contains(tag))
        };
        let all = MemoryQuery { text: Some(query.to_owned()), tags: tags.clone(), source: None };
        let mut found = match self.memory.search(&all, &PageRequest::first(MAX_SCANNED)).await {
            Ok(page) => page.items,
            Err(talon_store::Error::Invalid { .. }) => return Err(MemoryToolError::NoWords),
            Err(error) => return Err(error.into()),
        };
        found.retain(is_wanted);
        // Models search with sentences.
        if found.is_empty() {
            let words = keywords::extract(query);
            let owner = owner::tag(&caller.sender);
            found = self.memory.related(&words, Some(&owner), MAX_FOUND * 2).await?;
            found.retain(is_wanted);
        }
        if found.is_empty() {
            return Ok("Nothing is remembered that has these words.".to_owned());
        }
        found.truncate(MAX_FOUND);
        Ok(found.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// `2026-11-22 [preference] Ada likes tea`
fn line(memory: &StoredMemory) -> String {
    let day: String = memory.last_used.to_string().chars().take(10).collect();
    let tags: Vec<&str> = owner::content_tags(memory).into_iter().collect();
    let content = Raw::from(memory.content.as_str()).line_within(MAX_SHOWN_BYTES);
    match &memory.workflow {
        Some(workflow) => format!("{day} [{WORKFLOW_TAG}] {} ({})", content.as_str(), workflow.outcome),
        None => format!("{day} [{}] {}", tags.join(", "), content.as_str()),
    }
}
