//! `memory.save`

use std::collections::BTreeMap;

use talon_guard::Raw;
use talon_store::{MemoryQuery, NewMemory, PageRequest, WORKFLOW_TAG};

use super::remembering::source;
use super::tools::{MemoryTools, Said, tags, text};
use super::whose;
use crate::driver::Caller;

/// The longest memory: a few sentences. It is recalled into a prompt that has some 200 tokens for all of them; a document belongs into a
/// file.
const MAX_BYTES: usize = 2000;
/// Tags of one memory.
pub(super) const MAX_TAGS: usize = 8;
/// Of one tag.
pub(super) const MAX_TAG_BYTES: usize = 64;
/// Memories that one session may save. A model that saves every sentence, or is made to, fills nobody's store.
pub(super) const MAX_A_SESSION: u32 = 50;
/// What it is, where the model does not say.
const FACT: &str = "fact";
/// How many memories with the same words are looked at for the same one.
const SAME: u32 = 20;

impl MemoryTools {
    pub(super) async fn save(&self, caller: &Caller, args: &BTreeMap<String, String>) -> Said {
        let content = text(args, "content", MAX_BYTES)?;
        let mut tags = tags(args)?;
        if tags.iter().any(|tag| tag == WORKFLOW_TAG || tag.starts_with(whose::TAG)) {
            return Err("tags: workflow and sender:… are not for you to give".to_owned());
        }
        if tags.is_empty() {
            tags.push(FACT.to_owned());
        }
        let content = self.inert(content);
        let own = whose::tag(&caller.sender);
        let source = source(caller);
        if self.is_known(&content, &own).await? {
            return Ok("This was remembered already.".to_owned());
        }
        let of_session = MemoryQuery { source: Some(source.clone()), ..MemoryQuery::default() };
        let page = self.memory.search(&of_session, &PageRequest::first(MAX_A_SESSION * 2)).await;
        let saved = page.map_err(|error| not_now(&error))?.items;
        if saved.iter().filter(|memory| memory.workflow.is_none()).count() >= MAX_A_SESSION as usize {
            return Err(format!(
                "this conversation has saved {MAX_A_SESSION} memories, and that is the most; tell the user, who can forget some with \
                 `talon memory forget`"
            ));
        }
        tags.push(own);
        let memory = NewMemory { content, tags: tags.into_iter().collect(), source, workflow: None };
        let kept = self.memory.remember(memory).await.map_err(|error| not_now(&error))?.memory;
        Ok(format!("Remembered, as {}.", kept.id))
    }

    /// What is kept is inert already, by the built-in rules and the operator's.
    fn inert(&self, content: &str) -> String {
        self.guard.sanitizer().sanitize(Raw::from(content), &mut Default::default()).into_string()
    }

    /// Models like to save the same thing again.
    async fn is_known(&self, content: &str, own: &str) -> Result<bool, String> {
        let query = MemoryQuery {
            text: Some(content.to_owned()),
            tags: vec![own.to_owned()],
            ..MemoryQuery::default()
        };
        match self.memory.search(&query, &PageRequest::first(SAME)).await {
            Ok(page) => Ok(page.items.iter().any(|memory| memory.content == content)),
            // Nothing in it is a word.
            Err(talon_store::Error::Invalid { .. }) => Ok(false),
            Err(error) => Err(not_now(&error)),
        }
    }
}

/// For the model; the store's own words are for the log.
pub(super) fn not_now(error: &talon_store::Error) -> String {
    tracing::warn!(target: "agent", %error, "the memory cannot be reached");
    if error.is_retryable() {
        "the memory cannot be reached now; go on without, or try again later".to_owned()
    } else {
        "the memory does not take that; go on without".to_owned()
    }
}
