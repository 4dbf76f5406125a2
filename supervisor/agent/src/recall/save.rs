//! `memory.save`

use talon_guard::Raw;
use talon_store::{MemoryQuery, NewMemory, PageRequest, WORKFLOW_TAG};

use super::arguments::{tags_argument, text_argument};
use super::error::MemoryToolError;
use super::limits::MAX_PER_SESSION;
use super::memory_index::LOCAL_TAG;
use super::owner;
use super::store_recall::source;
use super::tools::MemoryTools;
use crate::driver::{BuiltinCall, is_confined};

/// The longest memory: a few sentences. The prompt has about 200 tokens for all memories; a document belongs
/// into a file.
const MAX_BYTES: usize = 2000;
/// The kind of a memory if the model gives none.
const FACT: &str = "fact";
/// How many memories with the same words are compared to find a duplicate.
const MAX_DUPLICATE_CANDIDATES: u32 = 20;

impl MemoryTools {
    pub(super) async fn save(&self, call: &BuiltinCall) -> Result<String, MemoryToolError> {
        let BuiltinCall { caller, args, pins, .. } = call;
        let content = text_argument(args, "content", MAX_BYTES)?;
        let mut tags = tags_argument(args)?;
        if tags.iter().any(|tag| tag == WORKFLOW_TAG || tag.starts_with(owner::TAG)) {
            return Err(MemoryToolError::ReservedTag);
        }
        if tags.is_empty() {
            tags.push(FACT.to_owned());
        }
        let content = self.neutralize(content);
        let own = owner::tag(&caller.sender);
        let source = source(caller);
        if self.is_known(&content, &own).await? {
            return Ok("This was remembered already.".to_owned());
        }
        let of_session = MemoryQuery { source: Some(source.clone()), ..MemoryQuery::default() };
        let saved = self.memory.search(&of_session, &PageRequest::first(MAX_PER_SESSION * 2)).await?.items;
        if saved.iter().filter(|memory| memory.workflow.is_none()).count() >= MAX_PER_SESSION as usize {
            return Err(MemoryToolError::SessionFull);
        }
        tags.push(own);
        if is_confined(pins) {
            tags.push(LOCAL_TAG.to_owned());
        }
        let memory = NewMemory { content, tags: tags.into_iter().collect(), source, workflow: None };
        let stored = self.memory.remember(memory).await?.memory;
        if let Some(index) = &self.index {
            index.notify();
        }
        Ok(format!("Remembered, as {}.", stored.id))
    }

    /// Neutralizes what is stored, by the built-in rules and the operator's.
    fn neutralize(&self, content: &str) -> String {
        self.guard.sanitizer().sanitize(Raw::from(content), &mut Default::default()).into_string()
    }

    /// Whether the memory is already stored: models like to save the same thing again.
    async fn is_known(&self, content: &str, own: &str) -> Result<bool, MemoryToolError> {
        let query = MemoryQuery {
            text: Some(content.to_owned()),
            tags: vec![own.to_owned()],
            ..MemoryQuery::default()
        };
        match self.memory.search(&query, &PageRequest::first(MAX_DUPLICATE_CANDIDATES)).await {
            Ok(page) => Ok(page.items.iter().any(|memory| memory.content == content)),
            // The text has no words.
            Err(talon_store::Error::Invalid { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
