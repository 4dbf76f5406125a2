//! `memory.search`

use talon_guard::Raw;
use talon_store::{MemoryQuery, PageRequest, StoredMemory, WORKFLOW_TAG};

use super::arguments::{tags_argument, text_argument};
use super::error::MemoryToolError;
use super::tools::MemoryTools;
use super::{hybrid, keywords, owner};
use crate::driver::BuiltinCall;

/// The longest query: all words have to match, so more words find less.
const MAX_QUERY_BYTES: usize = 500;
/// The most memories that a search shows.
const MAX_FOUND: usize = 10;
/// How many memories are scanned: some belong to others.
const MAX_SCANNED: u32 = 100;
/// How much of a memory is shown; longer ones were imported.
const MAX_SHOWN_BYTES: usize = 700;

impl MemoryTools {
    pub(super) async fn search(&self, call: &BuiltinCall) -> Result<String, MemoryToolError> {
        let BuiltinCall { caller, args, pins, .. } = call;
        let query = text_argument(args, "query", MAX_QUERY_BYTES)?;
        let tags = tags_argument(args)?;
        let is_wanted = |memory: &StoredMemory| {
            owner::is_visible_to(memory, &caller.sender) && tags.iter().all(|tag| memory.tags.contains(tag))
        };
        let owner = owner::tag(&caller.sender);
        let by_meaning = async {
            match &self.index {
                Some(index) => index.near(pins, query, &owner, true, MAX_FOUND * 2).await,
                None => Ok(Vec::new()),
            }
        };
        let (by_words, by_meaning) =
            tokio::join!(self.find_words(query, &tags, &owner, is_wanted), by_meaning);
        let (mut near, why) = match by_meaning {
            Ok(near) => (near, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        near.retain(is_wanted);
        let by_words = match by_words {
            Err(MemoryToolError::NoWords) if !near.is_empty() => Vec::new(),
            found => found?,
        };
        let mut found = hybrid::fuse(by_words, near);
        found.truncate(MAX_FOUND);
        let mut lines: Vec<String> = found.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("Nothing is remembered that has these words.".to_owned());
        }
        lines.extend(why.map(|why| format!("(Searched by words alone: {why}. Other words may find more.)")));
        Ok(lines.join("\n"))
    }

    /// What has all words of a query, or else some of them.
    async fn find_words(
        &self,
        query: &str,
        tags: &[String],
        owner: &str,
        is_wanted: impl Fn(&StoredMemory) -> bool,
    ) -> Result<Vec<StoredMemory>, MemoryToolError> {
        let all = MemoryQuery { text: Some(query.to_owned()), tags: tags.to_vec(), source: None };
        let mut found = match self.memory.search(&all, &PageRequest::first(MAX_SCANNED)).await {
            Ok(page) => page.items,
            Err(talon_store::Error::Invalid { .. }) => return Err(MemoryToolError::NoWords),
            Err(error) => return Err(error.into()),
        };
        found.retain(&is_wanted);
        // Models search with sentences.
        if found.is_empty() {
            let words = keywords::extract(query);
            found = self.memory.related(&words, Some(owner), MAX_FOUND * 2).await?;
            found.retain(&is_wanted);
        }
        Ok(found)
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
